"""Algorithm 2: proximal iterative hard thresholding, the whole batch at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sabal.checks import check_choice, check_number, check_whole
from sabal.problem import Problem
from sabal.solvers.solution import Solution, solution_of

PROXES = ("exact", "paper")


@dataclass(frozen=True)
class ProximalIHT:
    """Proximal iterative hard thresholding (Algorithm 2 of the paper).

    prox: "exact" takes the true minimum of line 6, "paper" the rule that its appendix prints
        (see `Problem.prox`).
    iterations, tol: at most this many; stop when ||w - w'|| < tol ||w||.

    The objective does not fall monotonically, so the best iterate is returned, not the last.
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
        n = problem.size
        w_N, z_N = np.zeros(n), np.zeros(n)
        # Sums over atoms are carried beside the weights: a pass is needed for gradients only.
        w_sum, z_sum = np.zeros_like(problem.target), np.zeros_like(problem.target)
        best: tuple[float, np.ndarray, np.ndarray, np.ndarray] | None = None
        history: list[float] = []
        passes = 0
        for _ in range(self.iterations):
            previous_N, previous_sum = w_N, w_sum
            # Lines 4 and 5: the best step along the gradient at z.
            residual = problem.target - z_sum
            gradient_N = problem.gradient(problem.atoms, z_N, residual)
            gradient_sum = problem.atoms.combine(gradient_N)
            passes += 2
            mu = problem.line_search(residual, z_N, gradient_N, gradient_sum)
            s_N = z_N - mu * gradient_N
            # Lines 6 to 8: the best batch near s, its weights adjusted, none below zero.
            chosen, scores = problem.prox(s_N, mu, self.prox)
            atoms = problem.atoms.take(chosen)
            weights = np.maximum(s_N[chosen], 0.0)
            residual = problem.target - atoms.combine(weights)
            weights, residual = problem.debias(atoms, weights, residual)
            w_N = np.zeros(n)
            w_N[chosen] = weights
            w_sum = problem.target - residual
            objective = problem.value(chosen, weights, residual)
            history.append(objective)
            if best is None or objective < best[0]:
                best = (objective, chosen, weights, scores)
            # Lines 9 and 10: momentum.
            change_N = w_N - previous_N
            if np.linalg.norm(change_N) <= self.tol * np.linalg.norm(w_N):
                break
            change_sum = w_sum - previous_sum
            tau = problem.line_search(residual, w_N, change_N, change_sum)
            z_N = w_N - tau * change_N
            z_sum = w_sum - tau * change_sum
        assert best is not None  # iterations >= 1
        return solution_of(problem, *best[1:], passes=passes, history=history)
