"""Algorithms 1 and 2 of the paper as printed, and with one correction added after another.

Each variant is one function. All of them share what the paper leaves open and Sabal decides: tau is
1, T is at most 300, and IHT stops when its weights have converged.

These functions serve measurement only: every step reads the whole pool, and weights are kept for
all n items, as printed. `sabal.Greedy` and `sabal.ProximalIHT` are the fast forms of the last
variant of each algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sabal.sparse.greedy import Ranking
from sabal.sparse.iht import Proximity
from sabal.sparse.items import LocalItems
from sabal.sparse.problem import Problem

ITERATIONS = 300
TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class WeightedBatch:
    """The items an algorithm requests, with their weights.

    Attributes
    ----------
    indices : ndarray of int
        The requested items.
    weights : ndarray of float
        Their weights.
    rises : int
        How often f increased from one iteration to the next.
    """

    indices: np.ndarray
    weights: np.ndarray
    rises: int = 0


class DenseProblem:
    """A problem with weights written out for all items of the pool.

    Parameters
    ----------
    problem : Problem
        The problem to solve.
    items : LocalItems
        The items of the problem, which must be in memory.
    """

    def __init__(self, problem: Problem, items: LocalItems) -> None:
        self.problem, self.items = problem, items
        self.bonus_N = problem.terms.bonus(self.items.uncertainty_N)

    def sum(self, w: np.ndarray) -> np.ndarray:
        """Return the sum of w_j a_j over the items with a nonzero weight."""
        support = np.flatnonzero(w)
        if support.size == w.size:
            return self.items.operator.combine(w)
        return self.items.gather(support).to_float64_numpy().combine(w[support])

    def residual(self, w: np.ndarray) -> np.ndarray:
        """Return B v - sum_j w_j a_j."""
        return self.problem.target - self.sum(w)

    def gradient(self, w: np.ndarray, residual: np.ndarray) -> np.ndarray:
        """Return the gradient of f_1 at w."""
        return self.problem.gradient(self.items.operator, w, residual)

    def line_search(self, u: np.ndarray, w: np.ndarray, residual: np.ndarray) -> float:
        """Return the step of LineSearch(u, w)."""
        slope, square = float((w - 1.0) @ u), float(u @ u)
        return self.problem.line_search(residual, self.sum(u), slope, square)

    def debias(self, w: np.ndarray, support: np.ndarray) -> np.ndarray:
        """Return De-bias(w) over `support`, with negative weights clipped to zero."""
        residual = self.residual(w)
        u = np.zeros_like(w)
        u[support] = self.gradient(w, residual)[support]
        return np.maximum(w - self.line_search(u, w, residual) * u, 0.0)

    def objective(self, batch: WeightedBatch) -> float:
        """Return f of a batch, minus the constant beta n.

        The batch may have fewer than b items. Items outside it have neither weight nor bonus.
        """
        w = np.zeros(self.items.size)
        w[batch.indices] = batch.weights
        bias = self.problem.bias(self.residual(w))
        return (
            bias
            + self.problem.beta * float(w @ (w - 2.0))
            - float(self.bonus_N[batch.indices].sum())
        )


def greedy_as_printed(dense: DenseProblem) -> WeightedBatch:
    """Run Algorithm 1 as printed.

    De-bias and the batch are restricted to nonzero weights: an item whose weight was clipped to
    zero is neither adjusted again nor requested.
    """
    return _greedy(dense, score="first-order", whole_batch=False)


def greedy_whole_batch(dense: DenseProblem) -> WeightedBatch:
    """Run Algorithm 1 with the set S carried along, so that it ends with b items."""
    return _greedy(dense, score="first-order", whole_batch=True)


def greedy_best_step(dense: DenseProblem) -> WeightedBatch:
    """Run Algorithm 1 ranking items by the decrease of the best step, not to first order."""
    return _greedy(dense, score="optimal-step", whole_batch=True)


def iht_as_printed(dense: DenseProblem) -> WeightedBatch:
    """Run Algorithm 2 as printed, which returns the nonzero weights of the last iterate."""
    return _iht(dense, whole_batch=False, best_iterate=False, prox="appendix")


def iht_whole_batch(dense: DenseProblem) -> WeightedBatch:
    """Run Algorithm 2 with a batch of b items."""
    return _iht(dense, whole_batch=True, best_iterate=False, prox="appendix")


def iht_best_iterate(dense: DenseProblem) -> WeightedBatch:
    """Run Algorithm 2 with a batch of b items, returning the best iterate instead of the last."""
    return _iht(dense, whole_batch=True, best_iterate=True, prox="appendix")


def iht_exact_step(dense: DenseProblem) -> WeightedBatch:
    """Run Algorithm 2 with all corrections, among them the exact minimum of line 6."""
    return _iht(dense, whole_batch=True, best_iterate=True, prox="exact")


@dataclass(frozen=True)
class AlgorithmVariant:
    """One of the two algorithms with some corrections.

    Attributes
    ----------
    name : str
        The correction that this variant adds to the one before it.
    algorithm : int
        1 or 2.
    run : callable
        Solves a problem.
    whole_batch : bool
        Whether the batch always has b items.
    """

    name: str
    algorithm: int
    run: Callable[[DenseProblem], WeightedBatch]
    whole_batch: bool = True


GREEDY = (
    AlgorithmVariant("Algorithm 1 as printed", 1, greedy_as_printed, whole_batch=False),
    AlgorithmVariant("(2) |S| = b", 1, greedy_whole_batch),
    AlgorithmVariant("(3) line 3: the best step", 1, greedy_best_step),
)
IHT = (
    AlgorithmVariant("Algorithm 2 as printed", 2, iht_as_printed, whole_batch=False),
    AlgorithmVariant("(2) |S| = b", 2, iht_whole_batch),
    AlgorithmVariant("(4) the best iterate", 2, iht_best_iterate),
    AlgorithmVariant("(1) line 6: the exact step", 2, iht_exact_step),
)


def _greedy(dense: DenseProblem, *, score: str, whole_batch: bool) -> WeightedBatch:
    problem, items = dense.problem, dense.items
    ranking = Ranking(problem.terms, score, 1.0)
    curvature_N = problem.terms.curvature(items.norms_squared_N)
    w = np.zeros(items.size)
    chosen: list[int] = []
    while len(chosen) < problem.budget:
        residual = dense.residual(w)
        product = items.operator.correlate(problem.fidelity * residual)
        decrease = ranking.decrease(product, dense.bonus_N, curvature_N)
        decrease[chosen] = -np.inf
        chosen.append(int(np.argmax(decrease)))
        unit = np.zeros_like(w)
        unit[chosen[-1]] = 1.0
        w = w - dense.line_search(unit, w, residual) * unit
        w = dense.debias(w, np.array(chosen) if whole_batch else np.flatnonzero(w))
    return _requested(np.array(chosen), w, whole_batch)


def _iht(dense: DenseProblem, *, whole_batch: bool, best_iterate: bool, prox: str) -> WeightedBatch:
    problem, items = dense.problem, dense.items
    w, z = np.zeros(items.size), np.zeros(items.size)
    iterates: list[WeightedBatch] = []
    values: list[float] = []
    for _ in range(ITERATIONS):
        previous, residual = w, dense.residual(z)
        gradient = dense.gradient(z, residual)
        mu = dense.line_search(gradient, z, residual)
        s = z - mu * gradient
        scores = Proximity(problem.terms, prox, mu).scores(s, items.uncertainty_N)
        chosen = np.argsort(-scores, kind="stable")[: problem.budget]
        w = np.zeros_like(s)
        w[chosen] = np.maximum(s[chosen], 0.0)
        w = dense.debias(w, chosen if whole_batch else np.flatnonzero(w))
        iterates.append(_requested(chosen, w, whole_batch))
        values.append(dense.objective(iterates[-1]))
        change = w - previous
        if np.linalg.norm(change) <= TOLERANCE * np.linalg.norm(w):
            break
        z = w - dense.line_search(change, w, dense.residual(w)) * change
    taken = iterates[int(np.argmin(values)) if best_iterate else -1]
    return WeightedBatch(taken.indices, taken.weights, int(np.sum(np.diff(values) > 0)))


def _requested(chosen: np.ndarray, w: np.ndarray, whole_batch: bool) -> WeightedBatch:
    asked = chosen if whole_batch else chosen[w[chosen] > 0]
    return WeightedBatch(asked, w[asked])
