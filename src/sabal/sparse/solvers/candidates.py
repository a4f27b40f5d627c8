"""Picks among a few candidates, on small arrays: no atom is touched but the one that is picked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sabal.sparse.items import Best, Ranking
from sabal.sparse.operators import Block
from sabal.sparse.problem import Problem


@dataclass(frozen=True)
class PickedBlock:
    """Items in pick order, with their atoms, weights, scores and bonuses.

    falls: by how much f fell with each pick.
    """

    items: np.ndarray
    atoms: Block
    weights: np.ndarray
    scores: np.ndarray
    bonus: np.ndarray
    falls: np.ndarray


class Candidates:
    """The best items of a pass, in the order of their indices.

    What is carried for each is the product gamma <a_j, r> with the residual; a pick changes it by
    the products with one atom, a column of the Gram matrix.
    """

    def __init__(
        self, problem: Problem, ranking: Ranking, best: Best, residual: np.ndarray
    ) -> None:
        self._problem = problem
        self._ranking = ranking
        self._indices_K = best.indices
        self._bonus_K = ranking.terms.bonus(best.uncertainty)
        self._curvature_K = ranking.terms.curvature(best.norms_squared)
        self._free_K = np.ones(best.indices.size, dtype=bool)
        self._atoms = problem.items.gather(best.indices)
        self.look(residual)

    def look(self, residual: np.ndarray) -> None:
        """Start from a residual."""
        self._product_K = self._atoms.correlate(self._problem.fidelity * residual)

    def pick(self, count: int) -> PickedBlock:
        """`count` picks by line 3 of Algorithm 1; each adjusts the weights of all of them."""
        product_K, beta = self._product_K.copy(), self._problem.beta
        columns_LK = np.empty((count, product_K.size))
        picked: list[int] = []
        weights, scores, falls = np.zeros(count), np.zeros(count), np.zeros(count)
        for k in range(count):
            decrease_K = self._ranking.decrease(product_K, self._bonus_K, self._curvature_K)
            decrease_K[~self._free_K] = -np.inf
            j = int(np.argmax(decrease_K))
            self._free_K[j] = False
            picked.append(j)
            scores[k] = decrease_K[j]
            columns_LK[k] = self._problem.fidelity * self._atoms.products_with(j)
            columns = columns_LK[: k + 1]
            before = weights[: k + 1].copy()
            product_S = product_K[picked]
            # Lines 4 and 5: the best step along the new weight.
            slope, curvature = beta + product_K[j], self._curvature_K[j]
            step = np.zeros(k + 1)
            step[k] = slope / curvature if curvature > 0 else 0.0
            product_K -= step[k] * columns[k]
            # Lines 6 and 7: de-bias over the block, clip. Algorithm 4 with the Gram matrix.
            now = before + step
            gram_SS = columns[:, picked]
            downhill = product_K[picked] - beta * (now - 1.0)
            bend = float(downhill @ (gram_SS @ downhill)) + beta * float(downhill @ downhill)
            mu = float(downhill @ downhill) / bend if bend > 0 else 0.0
            adjusted = np.maximum(now + mu * downhill, 0.0)
            product_K -= (adjusted - now) @ columns
            weights[: k + 1] = adjusted
            falls[k] = self._fall(before, adjusted, product_S, gram_SS) + self._bonus_K[j]
        positions = np.array(picked)
        return PickedBlock(
            items=self._indices_K[positions],
            atoms=self._atoms.gather(positions).to_numpy(),
            weights=weights,
            scores=scores,
            bonus=self._bonus_K[positions],
            falls=falls,
        )

    def _fall(
        self, before: np.ndarray, after: np.ndarray, product: np.ndarray, gram: np.ndarray
    ) -> float:
        """How much f_1 falls from weights `before` to `after`; the last one joins S."""
        change = after - before
        beta, outside = self._problem.beta, self._problem.beta_outside
        bias = 2.0 * float(change @ product) - float(change @ (gram @ change))
        regulariser = beta * float(np.sum((before[:-1] - 1.0) ** 2) - np.sum((after - 1.0) ** 2))
        return bias + regulariser + outside
