"""Algorithm 1: one item at a time, de-biased after every pick, with few passes over the pool."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sabal.arrays import top_k
from sabal.checks import check_choice, check_number, check_whole
from sabal.operators import Growing, Operator
from sabal.problem import Problem
from sabal.solvers.solution import Solution, solution_of

SCORES = ("optimal-step", "first-order")

CANDIDATES_PER_PICK = 64
"""How many candidates a pass gathers for each pick that follows it (K / L in method.md 5)."""

FEWEST_PICKS = 32
"""At least this many picks follow a pass (L in method.md 5)."""

RUNNERS_UP = 16
"""Among how many of the best a pick is decided in float64."""


@dataclass(frozen=True)
class Greedy:
    """Greedy selection (Algorithm 1 of the paper).

    score: "optimal-step" ranks by the decrease of the best step along an item's weight,
        -[-grad_j]_+^2 / (4 (gamma ||a_j||^2 + beta)) - bonus_j. "first-order" is the printed line
        3, step * grad_j - bonus_j, which ignores the size of the atom.
    step: tau of the printed line 3.
    refresh: picks per pass over the pool. 1 is Algorithm 1 to the letter. "auto" reads the pool
        every L picks and makes them among the 64 L best items of that read, with L of at least 32
        and sqrt(n) / 8; a pool no larger than 64 L is read once and every pick sees all of it.
    """

    score: str = "optimal-step"
    step: float = 1.0
    refresh: int | str = "auto"

    def __post_init__(self) -> None:
        check_choice(self.score, "score", SCORES)
        check_number(self.step, "step", above=0.0)
        if self.refresh != "auto":
            check_whole(self.refresh, "refresh")

    def solve(self, problem: Problem) -> Solution:
        """Pick `problem.budget` items."""
        n, budget = problem.size, problem.budget
        picks_per_pass, candidates = self._block(n, budget)
        chosen: list[int] = []
        scores: list[float] = []
        history: list[float] = []
        weights, residual = np.zeros(0), problem.target
        support = Growing(problem.atoms.take(np.zeros(0, dtype=np.int64)), budget)
        available_N = np.ones(n, dtype=bool)
        passes = 0
        while len(chosen) < budget:
            # A pass: the only place where the whole pool is read.
            decrease_N = self._decrease(problem, problem.atoms, slice(None), residual)
            candidates_K = top_k(
                np.where(available_N, decrease_N, -np.inf),
                min(candidates, n - len(chosen)),
            )
            passes += 1
            block = problem.atoms.gather(candidates_K)
            for _ in range(min(picks_per_pass, budget - len(chosen), candidates_K.size)):
                decrease_K = self._decrease(problem, block, candidates_K, residual)
                decrease_K[~available_N[candidates_K]] = -np.inf
                # The rounding of float32 does not decide: the best few are scored in float64.
                best_R = np.sort(candidates_K[top_k(decrease_K, min(RUNNERS_UP, decrease_K.size))])
                best_R = best_R[available_N[best_R]]
                runners_up = problem.atoms.take(best_R)
                decrease_R = self._decrease(problem, runners_up, best_R, residual)
                r = int(np.argmax(decrease_R))
                j = int(best_R[r])
                available_N[j] = False
                chosen.append(j)
                scores.append(float(decrease_R[r]))
                support.add(runners_up, r)
                weights, residual = _step_and_debias(problem, support, weights, residual, j)
                history.append(problem.value(np.asarray(chosen), weights, residual))
        return solution_of(
            problem,
            np.asarray(chosen, dtype=np.int64),
            weights,
            np.asarray(scores),
            passes=passes,
            history=history,
        )

    def _block(self, n: int, budget: int) -> tuple[int, int]:
        """Picks per pass (L), and how many candidates a pass gathers (K)."""
        if self.refresh == 1:
            return 1, RUNNERS_UP
        if self.refresh != "auto":
            picks = int(self.refresh)
        else:
            # b / L passes over n items and b picks among K = 64 L cost least when they cost alike.
            picks = max(FEWEST_PICKS, round(math.sqrt(n / CANDIDATES_PER_PICK)))
        candidates = CANDIDATES_PER_PICK * picks
        # A block that holds the whole pool never goes stale.
        return (budget, n) if n <= candidates and self.refresh == "auto" else (picks, candidates)

    def _decrease(
        self, problem: Problem, atoms: Operator, items: slice | np.ndarray, residual: np.ndarray
    ) -> np.ndarray:
        """By how much line 3 expects f to fall when an item joins S with weight zero so far."""
        gradient = problem.gradient(atoms, 0.0, residual)
        bonus = problem.bonus_N[items]
        if self.score == "first-order":
            return bonus - self.step * gradient
        downhill = np.maximum(-gradient, 0.0)
        curvature = problem.curvature_N[items]
        # No curvature means zero atoms and beta = 0: no step to gain from.
        gain = np.divide(
            downhill**2, 4.0 * curvature, out=np.zeros_like(downhill), where=curvature > 0
        )
        return gain + bonus


def _step_and_debias(
    problem: Problem, support: Growing, weights: np.ndarray, residual: np.ndarray, item: int
) -> tuple[np.ndarray, np.ndarray]:
    """Lines 5 to 7: the best step along the newest weight, then de-bias over S and clip."""
    atoms = support.atoms
    newest = atoms.with_factors(tuple(factor[-1:] for factor in atoms.factors))
    slope = problem.gradient(newest, 0.0, residual)[0]
    curvature = problem.curvature_N[item]
    step = -slope / (2.0 * curvature) if curvature > 0 else 0.0
    weights = np.append(weights, step)
    residual = residual - newest.combine(np.array([step]))
    return problem.debias(atoms, weights, residual)
