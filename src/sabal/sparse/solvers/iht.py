"""Algorithm 2: proximal iterative hard thresholding, the whole batch at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sabal.core.checks import check_choice, check_number, check_whole
from sabal.sparse.items import Best, Proximity, SparseWeights
from sabal.sparse.problem import Problem
from sabal.sparse.solvers.solution import Solution, solution_of

PROXES = ("exact", "paper")


@dataclass(frozen=True)
class ProximalIHT:
    """Proximal iterative hard thresholding (Algorithm 2 of the paper).

    prox: "exact" takes the true minimum of line 6, "paper" the rule that its appendix prints
        (see `items.Proximity`).
    iterations, tol: at most this many; stop when ||w - w'|| < tol ||w||.

    The objective does not fall monotonically, so the best iterate is returned, not the last. An
    iteration is one pass: a block is read once for the gradient and for its sum over the atoms.
    """

    prox: str = "exact"
    iterations: int = 300
    tol: float = 1e-5

    def __post_init__(self) -> None:
        check_choice(self.prox, "prox", PROXES)
        check_whole(self.iterations, "iterations")
        check_number(self.tol, "tol")

    def solve(self, problem: Problem) -> Solution:
        """Minimise f over batches of `problem.budget` items."""
        nothing = SparseWeights(np.zeros(0, dtype=np.int64), np.zeros(0))
        w, z = nothing, nothing
        # Sums over atoms are carried beside the weights: a pass is needed for gradients only.
        w_sum, z_sum = np.zeros_like(problem.target), np.zeros_like(problem.target)
        best: tuple[float, Best, np.ndarray] | None = None
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
        return solution_of(
            problem, chosen.indices, weights, chosen.scores, passes=len(history), history=history
        )
