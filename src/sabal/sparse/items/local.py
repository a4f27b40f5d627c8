"""Items that this process can read: arrays in memory, or rows on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sabal.core.arrays import segments_of, top_k
from sabal.sparse.items.queries import Best, Proximity, Ranking, SparseWeights, Survey
from sabal.sparse.operators import Block, Operator


class LocalItems:
    """Items with an operator and an uncertainty each.

    variance_N: V_j where it is known: next to it, small atoms are told from rounding.
    segments: see `arrays.SEGMENTS`; those of the whole pool if this is a part of one.
    """

    def __init__(
        self,
        operator: Operator,
        uncertainty_N: np.ndarray,
        *,
        variance_N: np.ndarray | None = None,
        clipped: int = 0,
        input_bytes: int | None = None,
        memory: int | None = None,
        segments: Sequence[slice] | None = None,
    ) -> None:
        self.operator = operator
        self.uncertainty_N = uncertainty_N
        self.input_bytes = input_bytes
        self.memory = memory
        self.segments = segments_of(operator.size) if segments is None else list(segments)
        self.norms_squared_N = np.empty(operator.size)
        self._survey = self._look(variance_N, clipped)

    @property
    def size(self) -> int:
        """The number of items."""
        return self.operator.size

    @property
    def atom_bytes(self) -> int:
        """What one gathered atom takes."""
        return self.operator.atom_bytes

    @property
    def dear(self) -> bool:
        """Whether a pass computes the atoms anew."""
        return self.operator.dear

    def survey(self) -> Survey:
        """Sums over all items."""
        return self._survey

    def _look(self, variance_N: np.ndarray | None, clipped: int) -> Survey:
        """A pass: the norms, and the sums."""
        sums = np.zeros((len(self.segments), *self.operator.atom_shape))
        for number, rows, block in self.operator.blocks(self.segments):
            self.norms_squared_N[rows] = block.norms_squared()
            sums[number] += block.combine(np.ones(rows.stop - rows.start))
        return Survey(
            sizes=np.array([part.stop - part.start for part in self.segments]),
            atoms=sums,
            norms_squared=self._sums(self.norms_squared_N),
            uncertainty=self._sums(self.uncertainty_N),
            variance=np.zeros(len(sums)) if variance_N is None else self._sums(variance_N),
            clipped=clipped,
            rounding=self.operator.rounding,
        )

    def _sums(self, values_N: np.ndarray) -> np.ndarray:
        return np.array([values_N[rows].sum() for rows in self.segments])

    def best(
        self, direction: np.ndarray | None, ranking: Ranking, count: int, taken: np.ndarray
    ) -> Best:
        """A pass: the best `count` items for <a_j, direction>, but for those in `taken`.

        Without a direction all products are zero, and no atom is read.
        """
        taken = np.sort(taken)
        found, kept, floor = [], 0, -np.inf
        for rows, product in self._products(direction):
            bonus = ranking.terms.bonus(self.uncertainty_N[rows])
            curvature = ranking.terms.curvature(self.norms_squared_N[rows])
            decrease = ranking.decrease(product, bonus, curvature)
            low, high = np.searchsorted(taken, [rows.start, rows.stop])
            decrease[taken[low:high] - rows.start] = -np.inf
            # Who is no better than `count` earlier items need not be looked at again.
            chosen = np.flatnonzero(decrease > floor)
            found.append(self._best(rows.start + chosen, decrease[chosen], product[chosen]))
            kept += chosen.size
            if kept > 2 * count:
                found = [Best.join(found).top(count)]
                kept, floor = count, float(found[0].scores[-1])
        return Best.join(found).top(count)

    def _products(self, direction: np.ndarray | None) -> Iterator[tuple[slice, np.ndarray]]:
        """<a_j, direction> of every item, block by block."""
        if direction is None:
            for rows in self.segments:
                yield rows, np.zeros(rows.stop - rows.start)
            return
        for _, rows, block in self.operator.blocks(self.segments):
            yield rows, block.correlate(direction)

    def descend(self, direction: np.ndarray, z: SparseWeights, beta: float) -> LocalDescent:
        """A pass: the gradient 2 beta (z_j - 1) - 2 <a_j, direction> of every item."""
        parts = len(self.segments)
        totals = np.zeros((parts, *self.operator.atom_shape))
        squares, slopes = np.zeros(parts), np.zeros(parts)
        gradient_N = np.empty(self.size)
        for number, rows, block in self.operator.blocks(self.segments):
            inside = z.within(rows.start, rows.stop)
            away = np.full(rows.stop - rows.start, -1.0)
            away[inside.indices] += inside.values
            gradient = 2.0 * beta * away - 2.0 * block.correlate(direction)
            totals[number] += block.combine(gradient)
            squares[number] += gradient @ gradient
            slopes[number] += away @ gradient
            gradient_N[rows] = gradient
        return LocalDescent(self, z, gradient_N, totals, squares, slopes)

    def gather(self, indices: np.ndarray) -> Block:
        """The atoms at `indices`, where and as precise as they are."""
        return self.operator.gather(indices)

    def known(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The uncertainty and the squared norm of the items at `indices`."""
        return self.uncertainty_N[indices], self.norms_squared_N[indices]

    def _best(self, indices: np.ndarray, scores: np.ndarray, value: np.ndarray) -> Best:
        return Best(indices, scores, value, *self.known(indices))


@dataclass(frozen=True, eq=False)
class LocalDescent:
    """The gradient g of f_1 at z, with its sums by segment."""

    items: LocalItems
    z: SparseWeights
    gradient_N: np.ndarray
    totals: np.ndarray
    squares: np.ndarray
    slopes: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """sum_j g_j a_j."""
        return self.totals.sum(axis=0)

    @property
    def square(self) -> float:
        """sum_j g_j^2."""
        return float(self.squares.sum())

    @property
    def slope(self) -> float:
        """sum_j (z_j - 1) g_j."""
        return float(self.slopes.sum())

    def nearest(self, proximity: Proximity, count: int) -> Best:
        """The best `count` items at z - mu g."""
        point_N = -proximity.mu * self.gradient_N
        point_N[self.z.indices] += self.z.values
        scores_N = proximity.scores(point_N, self.items.uncertainty_N)
        chosen = top_k(scores_N, min(count, scores_N.size))
        known = self.items.known(chosen)
        return Best(chosen, scores_N[chosen], point_N[chosen], *known)
