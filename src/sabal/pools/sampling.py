"""Priority sampling: weighted samples of rows that do not depend on how a pool is sharded.

Priority sampling (Duffield, Lund & Thorup 2007): with u_i the size of row i and a uniform number
x_i, keep the `count` rows with the largest priorities u_i / x_i. With t the next priority, sizes of
max(u_i, t) for the kept rows and 0 for all others are unbiased for every set of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROUNDING = 1e-9  # sizes that differ by less than this share are equal


@dataclass(frozen=True)
class PrioritySample:
    """Rows in ascending order.

    Attributes
    ----------
    rows : array
        The rows.
    sizes : array
        The size that each represents, max(u_i, t).
    own_sizes : array
        The size of each, u_i.
    """

    rows: np.ndarray
    sizes: np.ndarray
    own_sizes: np.ndarray

    def largest(self, count: float, minimum: int) -> np.ndarray:
        """Return which of the rows are among the `count` largest of all rows, ties included.

        A sampled row stands for max(u_i, t) / u_i rows. At least `minimum` rows are returned, if
        there are so many.
        """
        order = np.argsort(-self.own_sizes, kind="stable")
        ordered = self.own_sizes[order]
        stands_for = np.divide(
            self.sizes[order], ordered, out=np.ones(ordered.size), where=ordered > 0
        )
        last = int(np.searchsorted(np.cumsum(stands_for), count * (1.0 - ROUNDING)))
        last = min(max(last, minimum - 1), ordered.size - 1)
        return self.own_sizes >= ordered[last] * (1.0 - ROUNDING)


def priorities(size_N: np.ndarray, start: int, seed: int) -> np.ndarray:
    """Return u_i / x_i of consecutive rows, the first of which is `start`."""
    return size_N / uniform_numbers(np.arange(start, start + size_N.size), seed)


def priority_sample(
    rows_K: np.ndarray, priority_K: np.ndarray, count: int, seed: int
) -> PrioritySample:
    """Return the sample of `count` rows out of the count + 1 with the largest priorities.

    Rows come best first. If there are no more than `count`, all are kept with their own sizes.
    """
    threshold = float(priority_K[count]) if rows_K.size > count else 0.0
    rows_M, priority_M = rows_K[:count], priority_K[:count]
    size_M = priority_M * uniform_numbers(rows_M, seed)
    order = np.argsort(rows_M)
    return PrioritySample(rows_M[order], np.maximum(size_M, threshold)[order], size_M[order])


def uniform_numbers(rows_N: np.ndarray, seed: int) -> np.ndarray:
    """Return a number in (0, 1) for each row, which depends only on its number and `seed`.

    Uses the mixing function of SplitMix64 (Steele, Lea & Flood 2014): a generator would have to go
    through the rows in order, and shards of a pool are processed independently.
    """
    golden = 0x9E3779B97F4A7C15
    # Unsigned integers wrap around, as intended here.
    z_N = (rows_N.astype(np.uint64) + np.uint64(1)) * np.uint64(golden)
    z_N ^= np.uint64(seed)
    z_N = (z_N ^ (z_N >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z_N = (z_N ^ (z_N >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z_N ^= z_N >> np.uint64(31)
    return ((z_N >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
