"""Bayesian coreset: a weighted batch whose expected log-likelihood approximates the pool's.

Active coresets by Frank-Wolfe, ACS-FW (Pinsler et al. 2019, Algorithm 1). With posterior atoms a_j,
sigma_j = ||a_j||, sigma = sum_j sigma_j and L = sum_j a_j, minimise ||L - sum_j w_j a_j||^2 over
w >= 0 with sum_j w_j sigma_j = sigma. In the shares c_j = w_j sigma_j / sigma this is a simplex
over the unit atoms u_j = a_j / sigma_j, which approximate L / sigma, independent of scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.core.arrays import row_chunks, top_k
from sabal.core.checks import check_whole
from sabal.errors import counted
from sabal.pools.pool import ArrayPool
from sabal.selection import Selection
from sabal.sparse.atoms import VANISHING, Atoms, clipped_warning
from sabal.sparse.operators import Operator
from sabal.sparse.problem import pool_posterior_atoms
from sabal.strategies.base import Strategy, make_selection

ITERATIONS_PER_ITEM = 10  # the default maximum number of iterations per item of the budget
TIE = 1e-6  # cosines this close are ties (the precision of float32); the lower row is taken
MIN_DECREASE = 1e-6  # a relative decrease of the residual below this is a rounding error

ROUNDING = 1e-12
"""A residual below this share of sigma, or an atom below this many nats, is a rounding error."""


@dataclass(frozen=True, kw_only=True)
class BayesianCoreset(Strategy):
    """Frank-Wolfe on posterior atoms until it has found b distinct items (ACS-FW).

    Frank-Wolfe returns to the same items, so b iterations find fewer than b of them; the paper
    queries these. Here it continues until there are b, or until the residual no longer decreases:
    in few dimensions a handful of items represent the pool. The rest of the batch has the largest
    <residual, a_j> / sigma_j (the largest sigma_j if the residual is a rounding error; items
    without an atom last), and a warning is issued.

    Parameters
    ----------
    max_iterations : int, optional
        The maximum number of iterations, 10 * budget by default. Each is one pass, O(n K).

    Notes
    -----
    `weights` are those of Frank-Wolfe, scaled to a mean of 1 over the items it found; topped-up
    items weigh 1. (The paper sets all weights to 1 once the batch is known.) `scores` are
    <residual, a_j> / sigma_j when the item was first picked, as a share of sigma.
    """

    name: ClassVar[str] = "bayesian-coreset"
    needs: ClassVar[tuple[str, ...]] = ("log_probs",)
    paper: ClassVar[str] = "Pinsler et al. 2019, Algorithm 1"
    cost: ClassVar[str] = "O(n K (C + iterations))"

    max_iterations: int | None = None

    def __post_init__(self) -> None:
        if self.max_iterations is not None:
            check_whole(self.max_iterations, "max_iterations")

    def select(self, pool: ArrayPool, budget: int, rng: np.random.Generator) -> Selection:
        """Return Frank-Wolfe picks in order of first appearance, then the rest of the batch."""
        atoms = pool_posterior_atoms(pool)
        sigma_N = _norms(atoms)
        limit = self.max_iterations or ITERATIONS_PER_ITEM * budget
        found = _FrankWolfe(atoms.operator, sigma_N)
        while len(found.picks) < budget and found.iterations < limit and found.step():
            pass

        picks = np.array(found.picks, dtype=np.int64)
        weights = found.weights(picks)
        chosen, scores = picks, np.array(found.pick_scores)
        warnings = clipped_warning(atoms.clipped)
        missing = budget - picks.size
        if missing:
            rest = np.setdiff1d(np.arange(pool.size), picks)
            key_N, score_N = found.ranking()
            rest = rest[top_k(key_N[rest], missing)]
            chosen = np.concatenate([picks, rest])
            scores = np.concatenate([scores, score_N[rest]])
            weights = np.concatenate([weights, np.ones(missing)])
            warnings = (
                *warnings,
                f"{found.outcome()}: {missing} of the {budget} items are a top-up of weight 1",
            )
        return make_selection(
            self,
            pool,
            chosen,
            scores,
            weights=weights,
            evidence={
                "iterations": found.iterations,
                "frank_wolfe_items": int(picks.size),
                "topped_up_items": missing,
                "items_without_atom": int(np.count_nonzero(sigma_N == 0)),
                "relative_residual": found.relative_residual,
            },
            warnings=warnings,
        )


class _FrankWolfe:
    """Frank-Wolfe over the unit atoms u_j = a_j / sigma_j, towards L / sigma, from the origin."""

    def __init__(self, operator: Operator, sigma_N: np.ndarray) -> None:
        self.operator = operator
        self.sigma_N = sigma_N
        total, sigma = _total(operator), float(sigma_N.sum())
        # If no item has an atom, their sum is a rounding error.
        self.target = total / sigma if sigma > 0 else np.zeros_like(total)
        self.point = np.zeros_like(self.target)
        self.share_N = np.zeros(sigma_N.size)
        self.picks: list[int] = []
        self.pick_scores: list[float] = []
        self.iterations = 0
        self.stalled = False

    @property
    def relative_residual(self) -> float:
        """||L - L(w)|| / ||L||; 0 if L is 0."""
        return self._residual_norm() / (float(np.linalg.norm(self.target)) or 1.0)

    @property
    def finished(self) -> bool:
        """Whether the residual is a rounding error."""
        return self._residual_norm() <= ROUNDING

    def _residual_norm(self) -> float:
        return float(np.linalg.norm(self.target - self.point))

    def _cosines(self) -> np.ndarray:
        """Return <residual, a_j> / (||residual|| sigma_j); -inf for items without an atom."""
        # A residual of unit length does not lose precision in float32.
        direction = (self.target - self.point) / self._residual_norm()
        product_N = self.operator.correlate(direction)
        cosine_N = np.full(product_N.shape, -np.inf)
        return np.divide(product_N, self.sigma_N, out=cosine_N, where=self.sigma_N > 0)

    def step(self) -> bool:
        """Run one iteration (Algorithm 1, lines 5 to 7); return False if it changes nothing."""
        if self.finished:
            return False
        self.iterations += 1
        cosine_N = self._cosines()
        item = int(np.argmax(cosine_N >= cosine_N.max() - TIE))  # line 5
        vertex = self.operator.take(np.array([item])).combine(np.ones(1)) / self.sigma_N[item]
        towards, before = vertex - self.point, self._residual_norm()
        length = float(towards @ towards)
        slope = float(towards @ (self.target - self.point))
        gamma = float(np.clip(slope / length, 0.0, 1.0)) if length > 0 else 0.0  # line 6
        if gamma == 0.0:
            return False
        if item not in self.picks:
            self.picks.append(item)
            self.pick_scores.append(float(cosine_N[item]) * before)
        self.share_N *= 1.0 - gamma  # line 7, in shares: w_j = sigma c_j / sigma_j
        self.share_N[item] += gamma
        self.point = (1.0 - gamma) * self.point + gamma * vertex
        self.stalled = self._residual_norm() > (1.0 - MIN_DECREASE) * before
        return not self.stalled

    def weights(self, picks: np.ndarray) -> np.ndarray:
        """Return the weights w_j of `picks`, scaled to a mean of 1."""
        if picks.size == 0:
            return np.ones(0)
        weights = self.share_N[picks] / self.sigma_N[picks]
        return weights / weights.mean()

    def ranking(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the sort keys of further items, and scores <residual, a_j> / (sigma sigma_j)."""
        if self.finished:
            return self.sigma_N, np.zeros(self.sigma_N.size)
        cosine_N = self._cosines()
        score_N = np.where(self.sigma_N > 0, cosine_N * self._residual_norm(), 0.0)
        return np.round(cosine_N / TIE), score_N

    def outcome(self) -> str:
        """Return how the search ended, for a warning."""
        if not np.any(self.sigma_N):
            return "no item has an atom, as the posterior samples do not differ"
        if self.finished or self.stalled:
            return f"the whole pool is represented by {counted(len(self.picks), 'item')}"
        return f"{self.iterations} Frank-Wolfe iterations found {len(self.picks)} distinct items"


def _norms(atoms: Atoms) -> np.ndarray:
    """Return sigma_j = ||a_j||; 0 for atoms that are rounding errors."""
    sigma_N = np.sqrt(atoms.operator.norms_squared())
    variance_N = np.zeros_like(sigma_N) if atoms.variance_N is None else atoms.variance_N
    return np.where(sigma_N > np.maximum(ROUNDING, VANISHING * np.sqrt(variance_N)), sigma_N, 0.0)


def _total(operator: Operator) -> np.ndarray:
    """Return sum_j a_j in float64, as the residual is a small difference."""
    total = np.zeros(operator.atom_shape)
    for rows in row_chunks(operator.size, 8 * int(np.prod(operator.atom_shape))):
        chunk = operator.take(np.arange(rows.start, rows.stop))
        total += chunk.combine(np.ones(chunk.size))
    return total
