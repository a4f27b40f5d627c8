"""The best weights of a given batch: non-negative least squares on S."""

from __future__ import annotations

import numpy as np

from sabal.sparse.problem import Problem, Solution, make_solution


def refit(problem: Problem, solution: Solution) -> Solution:
    """Return `solution` with the weights that minimise f over its items, w >= 0."""
    return make_solution(
        problem,
        solution.indices,
        best_weights(problem, solution.indices),
        solution.scores,
        passes=solution.passes,
        history=list(solution.history),
    )


def best_weights(problem: Problem, indices: np.ndarray) -> np.ndarray:
    """Return argmin_{w >= 0} gamma ||b v - sum_S w_j a_j||^2 + beta ||w - 1||^2.

    The normal matrix gamma A'A + beta I is b x b for any shape of atoms; its symmetric square root
    turns the problem into least squares, also for linearly dependent atoms.
    """
    from scipy.optimize import nnls

    atoms = problem.items.gather(indices).to_float64_numpy()
    normal_SS = problem.fidelity * atoms.gram() + problem.beta * np.eye(len(indices))
    right_S = atoms.correlate(problem.fidelity * problem.target) + problem.beta
    values, vectors = np.linalg.eigh(normal_SS)
    kept = values > values.max(initial=0.0) * len(indices) * np.finfo(np.float64).eps
    root = np.sqrt(values[kept])
    weights, _ = nnls(root[:, None] * vectors[:, kept].T, (vectors[:, kept].T @ right_S) / root)
    return weights
