"""Algorithm 2: proximal iterative hard thresholding, the whole batch at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sabal.core.checks import check_choice, check_number, check_whole
from sabal.sparse.items import RankedItems, SparseWeights, Terms
from sabal.sparse.problem import Problem, Solution, make_solution

PROXES = ("exact", "line-6", "appendix")


@dataclass(frozen=True)
class Proximity:
    """Line 6: the score whose top b items form S, at the point s = z - mu gradient.

    Items left out cost 1/2 [s_j]_+^2. "line-6": the minimum of line 6 as the paper states it, which
    is the top b of 1/2 [s_j]_+^2 + bonus_j. "exact": the proximal step for f, in which the bonus is
    multiplied by the step mu just taken. "appendix": the rule that the appendix derives for line 6,
    the b smallest of 1/2 [-s_j]_+^2 - bonus_j, which omits that cost.
    """

    terms: Terms
    rule: str
    mu: float

    def scores(self, point: np.ndarray, uncertainty: np.ndarray) -> np.ndarray:
        """Return scores; the larger, the better."""
        bonus = self.terms.bonus(uncertainty)
        if self.rule == "appendix":
            return bonus - 0.5 * np.maximum(-point, 0.0) ** 2
        # Without a step s is zero, and any mu gives the same ranking.
        mu = 1.0 if self.rule == "line-6" else self.mu or 1.0
        return 0.5 * np.maximum(point, 0.0) ** 2 + mu * bonus


@dataclass(frozen=True)
class ProximalIHT:
    """Proximal iterative hard thresholding (Algorithm 2 of the paper).

    Parameters
    ----------
    prox : {"exact", "line-6", "appendix"}
        How line 6 chooses the batch: by the proximal step for f, by the minimum of line 6 as it is
        stated (without the step size), or by the rule that the appendix derives for it.
    iterations : int
        The maximum number of iterations.
    tol : float
        Stop when ||w - w'|| < tol ||w||.

    Notes
    -----
    The objective does not decrease monotonically, so the best iterate is returned, not the last.
    An iteration is one pass: a block is read once for the gradient and for its sum over the atoms.
    """

    prox: str = "exact"
    iterations: int = 300
    tol: float = 1e-5

    def __post_init__(self) -> None:
        check_choice(self.prox, "prox", PROXES)
        check_whole(self.iterations, "iterations")
        check_number(self.tol, "tol")

    def solve(self, problem: Problem) -> Solution:
        """Return a batch of `problem.budget` items."""
        nothing = SparseWeights(np.zeros(0, dtype=np.int64), np.zeros(0))
        w, z = nothing, nothing
        # Sums over atoms are kept with the weights, so only gradients need a pass.
        w_sum, z_sum = np.zeros_like(problem.target), np.zeros_like(problem.target)
        best: tuple[float, RankedItems, np.ndarray] | None = None
        history: list[float] = []
        for _ in range(self.iterations):
            previous, previous_sum = w, w_sum
            # Lines 4 and 5: the best step along the gradient at z.
            residual = problem.target - z_sum
            descent = problem.items.descend(problem.fidelity * residual, z, problem.beta)
            mu = problem.line_search(residual, descent.total, descent.slope, descent.square)
            # Lines 6 to 8: the best batch near s, its weights adjusted, none below zero.
            chosen = descent.nearest(Proximity(problem.terms, self.prox, mu), problem.budget)
            atoms = problem.items.gather(chosen.indices)
            weights = np.maximum(chosen.value, 0.0)
            residual = problem.target - atoms.combine(weights)
            weights, residual = problem.debias(atoms, weights, residual)
            del atoms  # before the next batch's are gathered
            w, w_sum = SparseWeights.of(chosen.indices, weights), problem.target - residual
            collected = problem.collected(chosen.uncertainty)
            objective = problem.value(weights, residual, collected)
            history.append(objective)
            if best is None or objective < best[0]:
                best = (objective, chosen, weights)
            # Lines 9 and 10: momentum.
            change = w.minus(previous)
            if np.linalg.norm(change.values) <= self.tol * np.linalg.norm(w.values):
                break
            change_sum = w_sum - previous_sum
            slope = float((w.at(change.indices) - 1.0) @ change.values)
            square = float(change.values @ change.values)
            tau = problem.line_search(residual, change_sum, slope, square)
            z, z_sum = w.minus(change, tau), w_sum - tau * change_sum
        assert best is not None  # iterations >= 1
        _, chosen, weights = best
        return make_solution(
            problem, chosen.indices, weights, chosen.scores, passes=len(history), history=history
        )
