"""Algorithm 1: one item at a time, with few passes over the pool."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sabal.core.arrays import CHUNK_BYTES, top_k
from sabal.core.checks import check_choice, check_number, check_whole
from sabal.sparse.items import Best, Ranking
from sabal.sparse.problem import Problem
from sabal.sparse.solvers.candidates import Candidates
from sabal.sparse.solvers.picks import Picks
from sabal.sparse.solvers.solution import Solution

SCORES = ("optimal-step", "first-order")

CANDIDATES_PER_PICK = 10
"""How many candidates there are for each pick that follows a pass (K / L in method.md 5)."""

FEWER_PER_PICK = 1.5
"""The same where a pass costs far more than a pick: random features stand fewer."""

FEWEST_CANDIDATES = 1024
"""There are at least so many, and twice as many if there is room."""

LARGE_POOL = 2**18
"""A larger pool has more items that are nearly best; cheap passes gather twice as many."""

FEWEST_PICKS = 32
"""A pass is followed by no fewer picks."""

PICKS_PER_FIT = 8
"""After so many picks the weights of all items are fitted."""

FITS = 64
"""They are fitted no more often than that in all."""

PASSES = 12
"""A batch takes so many passes or more, if it is large enough: candidates grow stale."""

FEWER_PASSES = 2
"""The same where a pass costs far more than a pick."""

RUNNERS_UP = 16
"""Among how many of the best Algorithm 1 to the letter decides in float64."""

SMALL_POOL = 2048
"""A pool this small is gathered whole, and every pick sees all of it."""

SHARE_OF_INPUTS = 0.25
"""What a selection may take beyond its inputs, next to them."""

LEAST_ROOM = 4 * 2**20
"""Bytes for candidates in any case: next to small inputs a share is nothing."""

PASS_BYTES = 4 * CHUNK_BYTES
"""What the blocks of a pass take, and what products of matrices take by themselves."""

UNKNOWN_ROOM = 256 * 2**20
"""Bytes for candidates where nobody says how large the inputs are."""


@dataclass(frozen=True)
class Greedy:
    """Greedy selection (Algorithm 1 of the paper).

    score: "optimal-step" ranks by the decrease of the best step along an item's weight,
        -[-grad_j]_+^2 / (4 (gamma ||a_j||^2 + beta)) - bonus_j. "first-order" is the printed line
        3, step * grad_j - bonus_j, which ignores the size of the atom.
    step: tau of the printed line 3.
    refresh: picks per pass over the pool. 1 is Algorithm 1 to the letter. "auto" chooses from the
        sizes, the cost of a pass and `memory`; a pool of up to 2,048 items is read once, every pick
        sees all of it, and that is Algorithm 1 again.
    memory: bytes that candidates may take; None for a share of what the inputs take.
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
        """Pick `problem.budget` items."""
        to_the_letter, picks_per_pass, candidates = self._plan(problem)
        ranking = Ranking(problem.terms, self.score, self.step)
        picks = Picks(problem, in_float64=to_the_letter)
        standing = None if to_the_letter else _standing(problem, ranking, candidates // 2)
        passes = 0
        while picks.missing:
            taken = np.asarray(picks.items, dtype=np.int64)
            fresh = candidates if standing is None else candidates - candidates // 2
            best = problem.items.best(
                problem.fidelity * picks.residual,
                ranking,
                min(fresh, problem.size - picks.count),
                taken,
            )
            passes += 1
            if standing is not None:
                others = standing.without(np.concatenate([taken, best.indices]))
                best = Best.join([best, others.top(candidates // 2)])
            count = min(picks_per_pass, picks.missing, best.indices.size)
            pick = _pick_one_by_one if to_the_letter else _pick_in_blocks
            pick(picks, best.in_order(), ranking, count)
        return picks.solution(passes)

    def _plan(self, problem: Problem) -> tuple[bool, int, int]:
        """Whether it is Algorithm 1 to the letter, picks per pass (L), candidates of a pass (K)."""
        if self.refresh == 1:
            return True, 1, RUNNERS_UP
        n, budget = problem.size, problem.budget
        if self.refresh != "auto":
            picks = int(self.refresh)
            return False, picks, max(FEWEST_CANDIDATES, CANDIDATES_PER_PICK * picks)
        if n <= SMALL_POOL:
            return True, budget, n
        if problem.items.dear:
            each, picks = FEWER_PER_PICK, max(FEWEST_PICKS, -(-budget // FEWER_PASSES))
        else:
            # b / L passes over n items and b picks among K = 10 L cost least when they cost alike.
            cheapest = min(-(-budget // PASSES), math.isqrt(n))
            each, picks = CANDIDATES_PER_PICK, max(FEWEST_PICKS, cheapest)
        room = max(FEWEST_CANDIDATES, self._room(problem) // problem.items.atom_bytes)
        least = FEWEST_CANDIDATES * (4 if n > LARGE_POOL and not problem.items.dear else 2)
        candidates = min(max(least, int(each * picks)), room)
        return False, max(FEWEST_PICKS, min(picks, int(candidates / each))), candidates

    def _room(self, problem: Problem) -> int:
        """Bytes for candidates: what is left beside the batch itself and the blocks of a pass."""
        if self.memory is not None:
            return self.memory
        items = problem.items
        allowed = UNKNOWN_ROOM
        if items.input_bytes is not None:
            allowed = int(SHARE_OF_INPUTS * items.input_bytes)
        if items.memory is not None:
            allowed = min(allowed, items.memory // 2)
        batch = problem.budget * items.atom_bytes
        return max(LEAST_ROOM, allowed - batch - PASS_BYTES)


def _standing(problem: Problem, ranking: Ranking, count: int) -> Best:
    """Items that are good whatever is left to represent: the best for a residual of zero.

    The best for the residual of a pass all point its way, and a few picks later it points
    elsewhere. Half of all candidates are therefore these. `count` are left when all picks are made.
    """
    nothing = np.zeros(0, dtype=np.int64)
    return problem.items.best(None, ranking, min(count + problem.budget, problem.size), nothing)


def _pick_one_by_one(picks: Picks, best: Best, ranking: Ranking, count: int) -> None:
    """Algorithm 1 to the letter: all weights are adjusted after every pick."""
    problem = picks.problem
    atoms = problem.items.gather(best.indices)
    bonus_K = ranking.terms.bonus(best.uncertainty)
    curvature_K = ranking.terms.curvature(best.norms_squared)
    free_K = np.ones(best.indices.size, dtype=bool)
    for _ in range(count):
        direction = problem.fidelity * picks.residual
        decrease_K = ranking.decrease(atoms.correlate(direction), bonus_K, curvature_K)
        decrease_K[~free_K] = -np.inf
        # The rounding of float32 does not decide: the best few are scored in float64.
        few_R = np.sort(top_k(decrease_K, min(RUNNERS_UP, int(free_K.sum()))))
        atoms_R = atoms.take(few_R)
        product_R = atoms_R.correlate(direction)
        decrease_R = ranking.decrease(product_R, bonus_K[few_R], curvature_K[few_R])
        r = int(np.argmax(decrease_R))
        k = int(few_R[r])
        free_K[k] = False
        picks.add(
            int(best.indices[k]),
            atoms_R.gather(np.array([r])),
            float(decrease_R[r]),
            float(bonus_K[k]),
            float(curvature_K[k]),
        )


def _pick_in_blocks(picks: Picks, best: Best, ranking: Ranking, count: int) -> None:
    """Picks that adjust the weights of their own block only; then all weights are fitted.

    Not from the paper, which adjusts all weights a little after every pick: that costs as much
    as the picks themselves once there are many, and ends further from the best weights.
    """
    candidates = Candidates(picks.problem, ranking, best, picks.residual)
    per_fit = max(PICKS_PER_FIT, picks.problem.budget // FITS)
    while count:
        block = candidates.pick(min(per_fit, count))
        count -= len(block.items)
        picks.extend(block)
        if count:
            candidates.look(picks.residual)
