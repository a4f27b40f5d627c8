"""A batch that grows pick by pick: its items, their weights, and what is left of the target."""

from __future__ import annotations

import numpy as np

from sabal.operators import Growing, HostOperator
from sabal.problem import Problem
from sabal.solvers.solution import Solution, solution_of

SETTLED = 1e-6
"""A gradient of the weights this small, next to the first one, is zero."""

MOST_STEPS = 12
"""Conjugate gradients come close in few steps: few values of a batch's Gram matrix are large."""


class Picks:
    """The picks so far. `residual` is b v - sum w_j a_j, `available_N` tells who is left."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.items: list[int] = []
        self.scores: list[float] = []
        self.history: list[float] = []
        self.weights = np.zeros(0)
        self.residual = problem.target
        self.available_N = np.ones(problem.size, dtype=bool)
        self._support = Growing(problem.atoms.take(np.zeros(0, dtype=np.int64)), problem.budget)

    @property
    def missing(self) -> int:
        """How many picks the budget still has."""
        return self.problem.budget - len(self.items)

    def add(self, item: int, atom: HostOperator, row: int, score: float, adjusted: int) -> None:
        """Algorithm 1, lines 4 to 7: the best step along the new weight, de-bias, clip.

        adjusted: how many of the newest picks are de-biased; all of them in the paper.
        """
        problem = self.problem
        self.items.append(item)
        self.scores.append(score)
        self.available_N[item] = False
        self._support.add(atom, row)
        newest = self._newest(1)
        slope = problem.gradient(newest, 0.0, self.residual)[0]
        curvature = problem.curvature_N[item]
        step = -slope / (2.0 * curvature) if curvature > 0 else 0.0
        self.residual = self.residual - newest.combine(np.array([step]))
        weights = np.append(self.weights, step)
        older, newer = weights[:-adjusted], weights[-adjusted:]
        newer, self.residual = problem.debias(self._newest(adjusted), newer, self.residual)
        self.weights = np.concatenate([older, newer])
        self._record()

    def settle(self) -> None:
        """The best weights of all picks, by conjugate gradients; then clipped at zero.

        Minimises f_1 over S: (gamma A'A + beta I) w = gamma A' b v + beta 1, from where w is.
        """
        problem, atoms = self.problem, self._newest(len(self.items))
        weights = self.weights
        downhill = -0.5 * problem.gradient(atoms, weights, self.residual)
        direction, square = downhill, float(downhill @ downhill)
        enough = SETTLED**2 * square
        for _ in range(MOST_STEPS):
            total = atoms.combine(direction)
            bent = atoms.correlate(problem.fidelity * total) + problem.beta * direction
            curvature = float(direction @ bent)
            if square <= enough or curvature <= 0:
                break
            weights = weights + square / curvature * direction
            downhill = downhill - square / curvature * bent
            before, square = square, float(downhill @ downhill)
            direction = downhill + square / before * direction
        self.weights = np.maximum(weights, 0.0)
        # From the target, so that the rounding of many small updates does not add up.
        self.residual = problem.target - atoms.combine(self.weights)
        if weights.min() < 0:
            self.weights, self.residual = problem.debias(atoms, self.weights, self.residual)
        self.history.pop()
        self._record()

    def solution(self, passes: int) -> Solution:
        """The whole batch."""
        return solution_of(
            self.problem,
            np.asarray(self.items, dtype=np.int64),
            self.weights,
            np.asarray(self.scores),
            passes=passes,
            history=self.history,
        )

    def _newest(self, count: int) -> HostOperator:
        """The atoms of the newest `count` picks."""
        atoms = self._support.atoms
        return atoms.with_factors(tuple(f[len(f) - count :] for f in atoms.factors))

    def _record(self) -> None:
        value = self.problem.value(np.asarray(self.items), self.weights, self.residual)
        self.history.append(value)
