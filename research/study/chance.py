"""What chance alone gives: how often a configuration seems to be behind the best of the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PERMUTATIONS = 400
LEVEL = 0.05


def behind_best(values_SK: NDArray[np.float64], level: float = LEVEL) -> bool:
    """Return whether the first column is significantly behind the best other column.

    Rows are seeds. The best column is the one with the largest mean; the test is Student's, of the
    paired differences, two-sided.
    """
    return bool(_behind(values_SK[None], level)[0])


def chance_of_behind(
    values_SK: NDArray[np.float64], rng: np.random.Generator, level: float = LEVEL
) -> float:
    """Return how often the first column would seem behind if all columns were equally good.

    The columns of every row are permuted at random. As the best of several is chosen after the
    fact, this is more than half of `level`.
    """
    repeated = np.repeat(values_SK[None], PERMUTATIONS, axis=0)
    return float(_behind(rng.permuted(repeated, axis=2), level).mean())


def _behind(values_RSK: NDArray[np.float64], level: float) -> NDArray[np.bool_]:
    from scipy.stats import t

    seeds = values_RSK.shape[1]
    if seeds < 2 or values_RSK.shape[2] < 2:
        return np.zeros(len(values_RSK), dtype=bool)
    best_R = values_RSK[:, :, 1:].mean(axis=1).argmax(axis=1) + 1
    gap_RS = values_RSK[:, :, 0] - values_RSK[np.arange(best_R.size), :, best_R]
    half_R = t.ppf(1 - level / 2, seeds - 1) * gap_RS.std(axis=1, ddof=1) / np.sqrt(seeds)
    return np.asarray(gap_RS.mean(axis=1) + half_R < 0)


def behind_any(values_SK: NDArray[np.float64], level: float = LEVEL) -> bool:
    """Return whether the first column is behind any other, allowing for all of them (Bonferroni).

    If all columns are equally good, chance gives this with a probability of at most half of
    `level`.
    """
    others = values_SK.shape[1] - 1
    pairs = (values_SK[:, [0, k]] for k in range(1, others + 1))
    return any(behind_best(pair, level / others) for pair in pairs)


def shared_values(
    found: dict[str, dict[int, float]], names: Sequence[str]
) -> NDArray[np.float64] | None:
    """Return the values of these configurations, (seeds, configurations), over shared seeds."""
    if any(name not in found for name in names):
        return None
    seeds = sorted(set.intersection(*(set(found[name]) for name in names)))
    if not seeds:
        return None
    return np.array([[found[name][seed] for name in names] for seed in seeds])
