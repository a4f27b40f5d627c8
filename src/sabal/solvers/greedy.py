"""Algorithm 1: one item at a time, with few passes over the pool."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sabal.arrays import top_k
from sabal.checks import check_choice, check_number, check_whole
from sabal.problem import Problem
from sabal.solvers.picks import Picks
from sabal.solvers.solution import Solution

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
        and sqrt(n) / 8; a pool no larger than 64 L is read once, every pick sees all of it, and
        that is Algorithm 1 again.
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
        to_the_letter, picks_per_pass, candidates = self._block(problem.size, problem.budget)
        picks = Picks(problem)
        passes = 0
        while picks.missing:
            # A pass: the only place where the whole pool is read.
            product_N = problem.atoms.correlate(problem.fidelity * picks.residual)
            decrease_N = self._decrease(problem, slice(None), product_N)
            candidates_K = top_k(
                np.where(picks.available_N, decrease_N, -np.inf),
                min(candidates, problem.size - len(picks.items)),
            )
            passes += 1
            count = min(picks_per_pass, picks.missing, candidates_K.size)
            if to_the_letter:
                self._pick_one_by_one(picks, candidates_K, count)
            else:
                self._pick_a_block(picks, candidates_K, product_N[candidates_K], count)
        return picks.solution(passes)

    def _pick_one_by_one(self, picks: Picks, candidates_K: np.ndarray, count: int) -> None:
        """Algorithm 1 to the letter: all weights are adjusted after every pick."""
        problem = picks.problem
        block = problem.atoms.gather(candidates_K)
        for _ in range(count):
            product_K = block.correlate(problem.fidelity * picks.residual)
            self._pick(picks, candidates_K, product_K, adjusted=len(picks.items) + 1)

    def _pick_a_block(
        self, picks: Picks, candidates_K: np.ndarray, product_K: np.ndarray, count: int
    ) -> None:
        """Picks that adjust the weights of their own block only; then all weights, and fully.

        Not from the paper, which adjusts all weights a little after every pick: that costs as much
        as the picks themselves once there are many, and ends further from the best weights.
        """
        problem = picks.problem
        block = problem.atoms.gather(candidates_K)
        for k in range(count):
            before = picks.residual
            self._pick(picks, candidates_K, product_K, adjusted=k + 1)
            change = picks.residual - before
            product_K = product_K + block.correlate(problem.fidelity * change)
        picks.settle()

    def _pick(
        self, picks: Picks, candidates_K: np.ndarray, product_K: np.ndarray, adjusted: int
    ) -> None:
        """Line 3 among the candidates, whose <a_j, gamma r> are `product_K`."""
        problem = picks.problem
        decrease_K = self._decrease(problem, candidates_K, product_K)
        decrease_K[~picks.available_N[candidates_K]] = -np.inf
        # The rounding of float32 does not decide: the best few are scored in float64.
        best_R = np.sort(candidates_K[top_k(decrease_K, min(RUNNERS_UP, decrease_K.size))])
        best_R = best_R[picks.available_N[best_R]]
        atoms_R = problem.atoms.take(best_R)
        product_R = atoms_R.correlate(problem.fidelity * picks.residual)
        decrease_R = self._decrease(problem, best_R, product_R)
        r = int(np.argmax(decrease_R))
        picks.add(int(best_R[r]), atoms_R, r, float(decrease_R[r]), adjusted)

    def _block(self, n: int, budget: int) -> tuple[bool, int, int]:
        """Whether it is Algorithm 1 to the letter, picks per pass (L), candidates of a pass (K)."""
        if self.refresh == 1:
            return True, 1, RUNNERS_UP
        if self.refresh != "auto":
            return False, int(self.refresh), CANDIDATES_PER_PICK * int(self.refresh)
        # b / L passes over n items and b picks among K = 64 L cost least when they cost alike.
        picks = max(FEWEST_PICKS, round(math.sqrt(n / CANDIDATES_PER_PICK)))
        if n <= CANDIDATES_PER_PICK * picks:
            # A block that holds the whole pool never goes stale.
            return True, budget, n
        return False, picks, CANDIDATES_PER_PICK * picks

    def _decrease(
        self, problem: Problem, items: slice | np.ndarray, product: np.ndarray
    ) -> np.ndarray:
        """By how much line 3 expects f to fall when an item joins S with weight zero so far.

        product: <a_j, gamma r> of the items.
        """
        gradient = -2.0 * (problem.beta + product)
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
