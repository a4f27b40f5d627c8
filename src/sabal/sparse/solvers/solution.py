"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sabal.sparse.problem import Problem


@dataclass(frozen=True, eq=False)
class Solution:
    """Exactly b distinct items with their weights, and how they were found.

    `objective` = `bias` - `variance` + the regulariser of the weights; `history` holds the
    objective after every pick or iteration; `passes` counts the reads of the whole pool.
    """

    indices: np.ndarray
    weights: np.ndarray
    scores: np.ndarray
    objective: float
    bias: float
    variance: float
    passes: int
    iterations: int
    history: np.ndarray


class Solver(Protocol):
    """Minimises a Problem."""

    def solve(self, problem: Problem) -> Solution:
        """The best batch this solver can find."""


def solution_of(
    problem: Problem,
    indices: np.ndarray,
    weights: np.ndarray,
    scores: np.ndarray,
    *,
    passes: int,
    history: list[float],
) -> Solution:
    """A Solution whose figures are computed from the items and weights themselves."""
    return Solution(
        indices=indices,
        weights=weights,
        scores=scores,
        **problem.figures(indices, weights),
        passes=passes,
        iterations=len(history),
        history=np.asarray(history),
    )
