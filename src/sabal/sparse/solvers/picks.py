"""A batch that grows pick by pick: its items, their weights, and what is left of the target."""

from __future__ import annotations

import numpy as np

from sabal.sparse.operators import Block, Growing
from sabal.sparse.problem import Problem
from sabal.sparse.solvers.candidates import PickedBlock
from sabal.sparse.solvers.solution import Solution, solution_of

SETTLED = 1e-6
"""A gradient of the weights this small, next to the first one, is zero."""

STEPS = 4
"""Conjugate gradients come close in few steps, from weights that were fitted a block ago."""

LAST_STEPS = 12
"""More of them once the batch is complete."""


class Picks:
    """The picks so far. `residual` is b v - sum w_j a_j.

    in_float64: whether the atoms of the picks are kept in float64, or as precise as they come.
    """

    def __init__(self, problem: Problem, *, in_float64: bool) -> None:
        self.problem = problem
        self.items: list[int] = []
        self.residual = problem.target
        self._scores: list[float] = []
        self._history: list[float] = []
        self._weights = np.zeros(0)
        self._bonus = 0.0
        none = problem.items.gather(np.zeros(0, dtype=np.int64))
        self._support = Growing(none.to_host() if in_float64 else none.to_numpy(), problem.budget)

    @property
    def count(self) -> int:
        """How many picks there are."""
        return len(self.items)

    @property
    def missing(self) -> int:
        """How many picks the budget still has."""
        return self.problem.budget - self.count

    def add(self, item: int, atom: Block, score: float, bonus: float, curvature: float) -> None:
        """Algorithm 1, lines 4 to 7: the best step along the new weight, de-bias, clip."""
        problem = self.problem
        self.items.append(item)
        self._scores.append(score)
        self._bonus += bonus
        self._support.add(atom)
        slope = problem.gradient(atom, 0.0, self.residual)[0]
        step = -slope / (2.0 * curvature) if curvature > 0 else 0.0
        self.residual = self.residual - atom.combine(np.array([step]))
        weights = np.append(self._weights, step)
        self._weights, self.residual = problem.debias(self._support.atoms, weights, self.residual)
        self._history.append(problem.value(self._weights, self.residual, self._bonus))

    def extend(self, block: PickedBlock) -> None:
        """Take a block of picks, and fit the weights of all."""
        self.items.extend(block.items.tolist())
        self._scores.extend(block.scores.tolist())
        value = self._history[-1] if self._history else self._value_of_nothing()
        self._history.extend((value - np.cumsum(block.falls)).tolist())
        self._bonus += float(block.bonus.sum())
        self._support.add(block.atoms)
        self._weights = np.append(self._weights, block.weights)
        self._fit(STEPS if self.missing else LAST_STEPS)
        self._history[-1] = self.problem.value(self._weights, self.residual, self._bonus)

    def solution(self, passes: int) -> Solution:
        """The whole batch."""
        return solution_of(
            self.problem,
            np.asarray(self.items, dtype=np.int64),
            self._weights,
            np.asarray(self._scores),
            passes=passes,
            history=self._history,
        )

    def _fit(self, steps: int) -> None:
        """The best weights of all picks, by conjugate gradients; then clipped at zero.

        Minimises f_1 over S: (gamma A'A + beta I) w = gamma A' b v + beta 1, from where w is.
        """
        problem, atoms, weights = self.problem, self._support.atoms, self._weights
        residual = problem.target - atoms.combine(weights)
        downhill = -0.5 * problem.gradient(atoms, weights, residual)
        direction, square = downhill, float(downhill @ downhill)
        enough = SETTLED**2 * square
        for _ in range(steps):
            total = atoms.combine(direction)
            bent = atoms.correlate(problem.fidelity * total) + problem.beta * direction
            curvature = float(direction @ bent)
            if square <= enough or curvature <= 0:
                break
            weights = weights + square / curvature * direction
            downhill = downhill - square / curvature * bent
            before, square = square, float(downhill @ downhill)
            direction = downhill + square / before * direction
        self._weights = np.maximum(weights, 0.0)
        self.residual = problem.target - atoms.combine(self._weights)
        if weights.min() < 0:
            self._weights, self.residual = problem.debias(atoms, self._weights, self.residual)

    def _value_of_nothing(self) -> float:
        return self.problem.value(np.zeros(0), self.problem.target, 0.0)
