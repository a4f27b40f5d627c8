"""Algorithms 1 and 2 as they are printed, and with one correction after the other.

What the paper leaves open is as in Sabal on every rung: tau is 1, T at most 300, and IHT ends when
its weights have settled.

For measuring alone: every step reads the whole pool, and weights are kept for all n items, as they
are printed. `sabal.Greedy` and `sabal.ProximalIHT` are what the last rung of either becomes when it
has to be fast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sabal.sparse.items import LocalItems, Proximity, Ranking
from sabal.sparse.problem import Problem

ITERATIONS = 300
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Rung:
    """One of the algorithms, with these corrections.

    whole_batch: S is carried and has b items at the end; as printed, De-bias and the batch are of
        the weights that are not zero, and what was clipped is neither adjusted again nor asked for.
    best_step: greedy ranks by the decrease of the best step, not to first order (line 3).
    best_iterate: of all iterations the best is returned, not the last.
    exact_prox: the true minimum of line 6.
    """

    name: str
    algorithm: int
    whole_batch: bool = False
    best_step: bool = False
    best_iterate: bool = False
    exact_prox: bool = False


GREEDY = (
    Rung("Algorithm 1 as printed", 1),
    Rung("(2) |S| = b", 1, whole_batch=True),
    Rung("(3) line 3: the best step", 1, whole_batch=True, best_step=True),
)
IHT = (
    Rung("Algorithm 2 as printed", 2),
    Rung("(2) |S| = b", 2, whole_batch=True),
    Rung("(4) the best iterate", 2, whole_batch=True, best_iterate=True),
    Rung("(1) line 6: the exact step", 2, whole_batch=True, best_iterate=True, exact_prox=True),
)


@dataclass(frozen=True, eq=False)
class Batch:
    """What an algorithm asks for, with the weights, and how often f rose on the way to it."""

    indices: np.ndarray
    weights: np.ndarray
    rises: int = 0


class Whole:
    """A problem with its weights written out for all items of the pool.

    items: those of the problem, which have to be in memory.
    """

    def __init__(self, problem: Problem, items: LocalItems) -> None:
        self.problem, self.items = problem, items
        self.bonus_N = problem.terms.bonus(self.items.uncertainty_N)

    def sum(self, w: np.ndarray) -> np.ndarray:
        """Sum w_j a_j over the items that have a weight."""
        support = np.flatnonzero(w)
        if support.size == w.size:
            return self.items.operator.combine(w)
        return self.items.gather(support).to_host().combine(w[support])

    def residual(self, w: np.ndarray) -> np.ndarray:
        """B v - sum w_j a_j."""
        return self.problem.target - self.sum(w)

    def gradient(self, w: np.ndarray, residual: np.ndarray) -> np.ndarray:
        """Grad f_1 at w."""
        return self.problem.gradient(self.items.operator, w, residual)

    def line_search(self, u: np.ndarray, w: np.ndarray, residual: np.ndarray) -> float:
        """LineSearch(u, w)."""
        slope, square = float((w - 1.0) @ u), float(u @ u)
        return self.problem.line_search(residual, self.sum(u), slope, square)

    def debias(self, w: np.ndarray, support: np.ndarray) -> np.ndarray:
        """De-bias(w) over `support`; then no weight is below zero."""
        residual = self.residual(w)
        u = np.zeros_like(w)
        u[support] = self.gradient(w, residual)[support]
        return np.maximum(w - self.line_search(u, w, residual) * u, 0.0)

    def objective(self, batch: Batch) -> float:
        """F of a batch, which may be too small, less beta n, the regulariser without any weight.

        What is not asked for has no weight and no bonus.
        """
        w = np.zeros(self.items.size)
        w[batch.indices] = batch.weights
        bias = self.problem.bias(self.residual(w))
        return (
            bias
            + self.problem.beta * float(w @ (w - 2.0))
            - float(self.bonus_N[batch.indices].sum())
        )


def climb(whole: Whole, rung: Rung) -> Batch:
    """The batch that an algorithm finds as this rung has it."""
    return (_greedy if rung.algorithm == 1 else _iht)(whole, rung)


def _greedy(whole: Whole, rung: Rung) -> Batch:
    problem, items = whole.problem, whole.items
    ranking = Ranking(problem.terms, "optimal-step" if rung.best_step else "first-order", 1.0)
    curvature_N = problem.terms.curvature(items.norms_squared_N)
    w = np.zeros(items.size)
    chosen: list[int] = []
    while len(chosen) < problem.budget:
        residual = whole.residual(w)
        product = items.operator.correlate(problem.fidelity * residual)
        decrease = ranking.decrease(product, whole.bonus_N, curvature_N)
        decrease[chosen] = -np.inf
        chosen.append(int(np.argmax(decrease)))
        unit = np.zeros_like(w)
        unit[chosen[-1]] = 1.0
        w = w - whole.line_search(unit, w, residual) * unit
        w = whole.debias(w, np.array(chosen) if rung.whole_batch else np.flatnonzero(w))
    return _asked(np.array(chosen), w, rung)


def _iht(whole: Whole, rung: Rung) -> Batch:
    problem, items = whole.problem, whole.items
    w, z = np.zeros(items.size), np.zeros(items.size)
    found: list[Batch] = []
    values: list[float] = []
    for _ in range(ITERATIONS):
        previous, residual = w, whole.residual(z)
        gradient = whole.gradient(z, residual)
        mu = whole.line_search(gradient, z, residual)
        s = z - mu * gradient
        step = Proximity(problem.terms, "exact" if rung.exact_prox else "paper", mu)
        scores = step.scores(s, items.uncertainty_N)
        chosen = np.argsort(-scores, kind="stable")[: problem.budget]
        w = np.zeros_like(s)
        w[chosen] = np.maximum(s[chosen], 0.0)
        w = whole.debias(w, chosen if rung.whole_batch else np.flatnonzero(w))
        found.append(_asked(chosen, w, rung))
        values.append(whole.objective(found[-1]))
        change = w - previous
        if np.linalg.norm(change) <= TOLERANCE * np.linalg.norm(w):
            break
        z = w - whole.line_search(change, w, whole.residual(w)) * change
    taken = found[int(np.argmin(values)) if rung.best_iterate else -1]
    return Batch(taken.indices, taken.weights, int(np.sum(np.diff(values) > 0)))


def _asked(chosen: np.ndarray, w: np.ndarray, rung: Rung) -> Batch:
    asked = chosen if rung.whole_batch else chosen[w[chosen] > 0]
    return Batch(asked, w[asked])
