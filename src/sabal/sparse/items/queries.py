"""The questions that a pass over the pool is asked, and the answers: small, whatever the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sabal.core.arrays import top_k


@dataclass(frozen=True)
class Terms:
    """What makes the terms of f out of an item's norm and uncertainty (problem.py)."""

    fidelity: float
    beta: float
    alpha: float
    unit: float

    def bonus(self, uncertainty: np.ndarray) -> np.ndarray:
        """What f gains for an item's uncertainty."""
        return self.alpha * (uncertainty / self.unit)

    def curvature(self, norms_squared: np.ndarray) -> np.ndarray:
        """Gamma ||a_j||^2 + beta: half the second derivative of f along each weight."""
        return self.fidelity * norms_squared + self.beta


@dataclass(frozen=True)
class Ranking:
    """Algorithm 1, line 3: by how much f is expected to fall when an item joins S.

    score, step: see `sabal.Greedy`.
    """

    terms: Terms
    score: str
    step: float

    def decrease(self, product: np.ndarray, bonus: np.ndarray, curvature: np.ndarray) -> np.ndarray:
        """For items of weight zero so far; `product` is <a_j, gamma r>, the rest as in `Terms`."""
        gradient = -2.0 * (self.terms.beta + product)
        if self.score == "first-order":
            return bonus - self.step * gradient
        downhill = np.maximum(-gradient, 0.0)
        # No curvature means zero atoms and beta = 0: no step to gain from.
        gain = np.divide(
            downhill**2, 4.0 * curvature, out=np.zeros_like(downhill), where=curvature > 0
        )
        return gain + bonus


@dataclass(frozen=True)
class Proximity:
    """Algorithm 2, line 6: what S is the top b of, at the point s = z - mu gradient.

    "exact": items left out cost 1/2 [s_j]_+^2, so S is the top b of 1/2 [s_j]_+^2 + mu bonus_j with
    mu the step just taken. "paper": the b smallest of 1/2 [-s_j]_+^2 - bonus_j, as the appendix
    prints it, which forgets that cost and mu.
    """

    terms: Terms
    rule: str
    mu: float

    def scores(self, point: np.ndarray, uncertainty: np.ndarray) -> np.ndarray:
        """The larger, the better."""
        bonus = self.terms.bonus(uncertainty)
        if self.rule == "paper":
            return bonus - 0.5 * np.maximum(-point, 0.0) ** 2
        # Where no step could be taken s is zero, and any mu ranks the same.
        return 0.5 * np.maximum(point, 0.0) ** 2 + (self.mu or 1.0) * bonus


@dataclass(frozen=True)
class Best:
    """Some items, best first, with what they were ranked by and what is known of them.

    value: the product <a_j, gamma r> in a ranking, the point s_j in a proximal step.
    """

    indices: np.ndarray
    scores: np.ndarray
    value: np.ndarray
    uncertainty: np.ndarray
    norms_squared: np.ndarray

    def top(self, count: int) -> Best:
        """The best `count`; of equal ones, the lower index."""
        order = np.argsort(self.indices)
        return self._at(order[top_k(self.scores[order], min(count, order.size))])

    def without(self, indices: np.ndarray) -> Best:
        """Those that are not in `indices`."""
        return self._at(np.flatnonzero(~np.isin(self.indices, indices)))

    def in_order(self) -> Best:
        """The same items in the order of their indices."""
        return self._at(np.argsort(self.indices))

    def _at(self, places: np.ndarray) -> Best:
        return Best(
            self.indices[places],
            self.scores[places],
            self.value[places],
            self.uncertainty[places],
            self.norms_squared[places],
        )

    @staticmethod
    def join(parts: Sequence[Best]) -> Best:
        """All items of `parts`, in that order."""
        names = ("indices", "scores", "value", "uncertainty", "norms_squared")
        return Best(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True)
class Survey:
    """Sums over the pool, a row for each of its segments (see `arrays.SEGMENTS`).

    clipped: see `atoms.Atoms`. rounding: see `operators.Operator`.
    """

    sizes: np.ndarray
    atoms: np.ndarray
    norms_squared: np.ndarray
    uncertainty: np.ndarray
    variance: np.ndarray
    clipped: int = 0
    rounding: float = 0.0

    @property
    def size(self) -> int:
        """The number of items."""
        return int(self.sizes.sum())


@dataclass(frozen=True)
class SparseWeights:
    """Weights of a few items: `indices` in rising order, and their `values`."""

    indices: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, indices: np.ndarray, values: np.ndarray) -> SparseWeights:
        """Weights of distinct items in any order."""
        order = np.argsort(indices)
        return cls(indices[order], values[order])

    def at(self, indices: np.ndarray) -> np.ndarray:
        """The weights of `indices` (in any order); zero for those that have none."""
        if self.indices.size == 0:
            return np.zeros(indices.size)
        place = np.minimum(np.searchsorted(self.indices, indices), self.indices.size - 1)
        return np.where(self.indices[place] == indices, self.values[place], 0.0)

    def minus(self, other: SparseWeights, times: float = 1.0) -> SparseWeights:
        """These weights less `times` the other ones."""
        # A sort of two sorted runs; NumPy's union hashes every index, at ten times the cost.
        both = np.sort(np.concatenate([self.indices, other.indices]), kind="stable")
        indices = both[np.diff(both, prepend=-1) > 0]
        return SparseWeights(indices, self.at(indices) - times * other.at(indices))

    def within(self, start: int, stop: int) -> SparseWeights:
        """The weights of rows `start` to `stop`, counted from `start`."""
        low, high = np.searchsorted(self.indices, [start, stop])
        return SparseWeights(self.indices[low:high] - start, self.values[low:high])
