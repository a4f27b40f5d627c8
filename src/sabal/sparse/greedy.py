"""Algorithm 1 of the paper: greedy selection, one item at a time (Shen et al. 2022, section 4).

    1  S = {}, w = 0                                              the residual is b v
    2  while |S| < b:
    3      j = argmin over j not in S of  tau grad_j f_1(w) - alpha sigma_j^2
    4      mu = LineSearch along e_j
    5      w_j = mu, S = S + {j}
    6      w = De-bias(w, S)
    7      w = max(w, 0)

f_1 is the objective without its bonus alpha sigma^2; LineSearch and De-bias are Algorithms 3 and 4
(`Problem.line_search` and `Problem.debias`). It differs from the paper as follows:

- line 3: `score="optimal-step"` ranks by the decrease of f for the best step along the new weight.
  The printed score is its first-order term, which ignores the length of the atom;
- line 6: all of S is de-biased, not only the positive weights: a clipped weight may become positive
  again, and S keeps its b items;
- the pick among the best few items is made in float64.

A pass over the pool per pick is expensive for a large pool: see `sabal.sparse.greedy_blocked`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sabal.core.checks import check_choice, check_number, check_whole
from sabal.sparse.items import LocalItems, Terms
from sabal.sparse.operators import Growing
from sabal.sparse.problem import Problem, Solution, make_solution

SCORES = ("optimal-step", "first-order")

RUNNERS_UP = 16  # the number of best items among which the pick is made in float64
SMALL_POOL = 2048  # the atoms of a pool up to this size are gathered in one pass, for all picks


@dataclass(frozen=True)
class Ranking:
    """Line 3: the expected decrease of f when an item joins S."""

    terms: Terms
    score: str
    step: float

    def decrease(self, product: np.ndarray, bonus: np.ndarray, curvature: np.ndarray) -> np.ndarray:
        """Return the score of items of weight zero.

        Parameters
        ----------
        product : array
            <a_j, gamma r> with the residual r.
        bonus, curvature : array
            See `Terms`.
        """
        gradient = -2.0 * (self.terms.beta + product)
        if self.score == "first-order":
            return bonus - self.step * gradient
        # Not from the paper: the best step's decrease, (-gradient/2)^2 / (gamma ||a_j||^2 + beta).
        downhill = np.maximum(-gradient, 0.0)
        # Without curvature (zero atoms and beta = 0) no step decreases f.
        gain = np.divide(
            downhill**2, 4.0 * curvature, out=np.zeros_like(downhill), where=curvature > 0
        )
        return gain + bonus


@dataclass(frozen=True)
class Greedy:
    """Greedy selection (Algorithm 1 of the paper).

    Parameters
    ----------
    score : {"optimal-step", "first-order"}
        "optimal-step" ranks by the decrease of the best step along an item's weight,
        -[-grad_j]_+^2 / (4 (gamma ||a_j||^2 + beta)) - bonus_j. "first-order" is the printed line
        3, step * grad_j - bonus_j, which ignores the size of the atom.
    step : float
        tau of the printed line 3.
    refresh : int or "auto"
        Picks per pass over the pool. 1 is exactly Algorithm 1. "auto" chooses from the sizes, the
        cost of a pass and `memory`; a pool of up to 2,048 items is read once and all of it is used
        for every pick, which is Algorithm 1 again.
    memory : int, optional
        Bytes for candidates; by default a share of the size of the inputs.
    """

    score: str = "optimal-step"
    step: float = 1.0
    refresh: int | str = "auto"
    memory: int | None = None

    def __post_init__(self) -> None:
        check_choice(self.score, "score", SCORES)
        check_number(self.step, "step", above=0.0)
        if not isinstance(self.refresh, str) or self.refresh != "auto":
            check_whole(self.refresh, "refresh")
        if self.memory is not None:
            check_whole(self.memory, "memory")

    def solve(self, problem: Problem) -> Solution:
        """Return a batch of `problem.budget` items."""
        ranking = Ranking(problem.terms, self.score, self.step)
        if self.refresh == 1:
            return greedy(problem, ranking)
        if self.refresh == "auto" and problem.size <= SMALL_POOL:
            return greedy(problem, ranking, whole=True)
        from sabal.sparse.greedy_blocked import greedy_in_blocks

        return greedy_in_blocks(problem, ranking, self.refresh, self.memory)


def greedy(problem: Problem, ranking: Ranking, *, whole: bool = False) -> Solution:
    """Solve with Algorithm 1; with `whole`, all atoms are gathered in one pass."""
    items = problem.items
    if whole:
        rows = np.arange(problem.size)
        items = LocalItems(items.gather(rows), items.norms_and_uncertainty(rows)[1])
    none = problem.items.gather(np.zeros(0, dtype=np.int64))
    support = Growing(none.to_float64_numpy(), problem.budget)
    picks: list[int] = []
    weights, residual, collected = np.zeros(0), problem.target, 0.0  # line 1
    scores, history = [], []
    while len(picks) < problem.budget:  # line 2
        direction = problem.fidelity * residual
        count = min(RUNNERS_UP, problem.size - len(picks))
        few = items.best(direction, ranking, count, np.asarray(picks, dtype=np.int64)).in_order()
        atoms = items.gather(few.indices).to_float64_numpy()
        bonus = problem.terms.bonus(few.uncertainty)
        curvature = problem.terms.curvature(few.norms_squared)
        decrease = ranking.decrease(atoms.correlate(direction), bonus, curvature)
        k = int(np.argmax(decrease))  # line 3
        atom = atoms.gather(np.array([k]))
        slope = problem.gradient(atom, 0.0, residual)[0]
        mu = -slope / (2.0 * curvature[k]) if curvature[k] > 0 else 0.0  # line 4
        picks.append(int(few.indices[k]))  # line 5
        support.add(atom)
        weights, residual = np.append(weights, mu), residual - atom.combine(np.array([mu]))
        weights, residual = problem.debias(support.atoms, weights, residual)  # lines 6 and 7
        collected += float(bonus[k])
        scores.append(float(decrease[k]))
        history.append(problem.value(weights, residual, collected))
    passes = 1 if whole else len(picks)
    chosen = np.asarray(picks, dtype=np.int64)
    return make_solution(
        problem, chosen, weights, np.asarray(scores), passes=passes, history=history
    )
