"""Algorithm 1 with few passes over the pool; see `sabal.sparse.greedy` for the plain algorithm.

A pass returns K candidates, and L picks are made among them on small arrays before the next pass.
Not from the paper: after every pick the weights of its own block are adjusted, and after every
block the weights of all picks are fitted by conjugate gradients. Adjusting all weights after each
pick, as printed, becomes as expensive as the picks themselves, and ends further from the best
weights (docs/method.md, 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sabal.core.arrays import CHUNK_BYTES
from sabal.sparse.greedy import Ranking
from sabal.sparse.items import RankedItems
from sabal.sparse.operators import Block, Growing
from sabal.sparse.problem import Problem, Solution, make_solution


@dataclass(frozen=True)
class Schedule:
    """The number of candidates and picks per pass, and how weights are fitted.

    Attributes
    ----------
    per_pick, per_pick_recomputed : float
        Candidates per pick (K / L), if a pass reads the atoms, and if it recomputes them, which is
        far more expensive than a pick.
    passes, passes_recomputed : int
        The minimum number of passes for a large batch, as candidates become outdated.
    min_candidates : int
        The minimum number of candidates. It is doubled if memory allows, and doubled again for a
        pool of more than `large_pool` items, which has more items that are nearly best.
    min_picks : int
        The minimum number of picks per pass.
    picks_per_fit, max_fits : int
        The number of picks between fits of all weights, and the maximum number of fits.
    fit_steps, last_fit_steps : int
        Steps of conjugate gradients in a fit, and in the last one.
    share_of_inputs : float
        The memory of a selection besides its inputs, relative to their size.
    min_room, unknown_room : int
        The minimum bytes for candidates, and the bytes if the size of the inputs is unknown.
    pass_bytes : int
        The memory of the blocks and matrix products of a pass.
    """

    per_pick: float = 10
    per_pick_recomputed: float = 1.5
    passes: int = 12
    passes_recomputed: int = 2
    min_candidates: int = 1024
    large_pool: int = 2**18
    min_picks: int = 32
    picks_per_fit: int = 8
    max_fits: int = 64
    fit_steps: int = 4
    last_fit_steps: int = 12
    share_of_inputs: float = 0.25
    min_room: int = 4 * 2**20
    unknown_room: int = 256 * 2**20
    pass_bytes: int = 4 * CHUNK_BYTES

    def plan(self, problem: Problem, refresh: int | str, memory: int | None) -> tuple[int, int]:
        """Return the picks per pass (L) and the candidates of a pass (K)."""
        if not isinstance(refresh, str):
            return refresh, max(self.min_candidates, int(self.per_pick * refresh))
        n, budget = problem.size, problem.budget
        minimum = 2 * self.min_candidates
        if problem.items.recomputes_atoms:
            each, picks = self.per_pick_recomputed, -(-budget // self.passes_recomputed)
        else:
            # The cost of b / L passes over n items and b picks among K = 10 L is lowest when the
            # two are equal.
            each, picks = self.per_pick, min(-(-budget // self.passes), math.isqrt(n))
            minimum *= 2 if n > self.large_pool else 1
        picks = max(self.min_picks, picks)
        room = self._room(problem, memory) // problem.items.atom_bytes
        candidates = min(max(minimum, int(each * picks)), max(self.min_candidates, room))
        return max(self.min_picks, min(picks, int(candidates / each))), candidates

    def _room(self, problem: Problem, memory: int | None) -> int:
        """Return the bytes for candidates, after subtracting the batch and the blocks."""
        if memory is not None:
            return memory
        items = problem.items
        allowed = self.unknown_room
        if items.input_bytes is not None:
            allowed = int(self.share_of_inputs * items.input_bytes)
        if items.memory is not None:
            allowed = min(allowed, items.memory // 2)
        batch = problem.budget * items.atom_bytes
        return max(self.min_room, allowed - batch - self.pass_bytes)


SCHEDULE = Schedule()

SETTLED = 1e-6  # a gradient of the weights below this share of the first one counts as zero


def greedy_in_blocks(
    problem: Problem,
    ranking: Ranking,
    refresh: int | str = "auto",
    memory: int | None = None,
    schedule: Schedule = SCHEDULE,
) -> Solution:
    """Pick among the candidates of a pass, block by block, until the next pass."""
    picks_per_pass, candidates = schedule.plan(problem, refresh, memory)
    picks = _Picks(problem, schedule)
    unaligned = _unaligned(problem, ranking, candidates // 2)
    passes = 0
    while picks.missing:
        taken = np.asarray(picks.items, dtype=np.int64)
        fresh = min(candidates - candidates // 2, problem.size - len(picks.items))
        best = problem.items.best(problem.fidelity * picks.residual, ranking, fresh, taken)
        passes += 1
        others = unaligned.without(np.concatenate([taken, best.indices]))
        best = RankedItems.join([best, others.top(candidates // 2)]).in_order()
        among = _Candidates(problem, ranking, best)
        count = min(picks_per_pass, picks.missing, best.indices.size)
        per_fit = max(schedule.picks_per_fit, problem.budget // schedule.max_fits)
        while count:
            block = among.pick(min(per_fit, count), picks.residual)
            count -= len(block.items)
            picks.extend(block)
    return picks.solution(passes)


def _unaligned(problem: Problem, ranking: Ranking, count: int) -> RankedItems:
    """Return the best items for a zero residual, independent of what is left to represent.

    The best items for the residual of a pass are all aligned with it, and its direction changes
    with every pick. Therefore half of the candidates are these. `count` remain after all picks.
    """
    none = np.zeros(0, dtype=np.int64)
    return problem.items.best(None, ranking, min(count + problem.budget, problem.size), none)


@dataclass(frozen=True)
class _PickedBlock:
    """Items in pick order; `falls` is the decrease of f with each."""

    items: np.ndarray
    atoms: Block
    weights: np.ndarray
    scores: np.ndarray
    bonus: np.ndarray
    falls: np.ndarray


class _Candidates:
    """The best items of a pass, in the order of their indices.

    For each, the product gamma <a_j, r> with the residual is kept up to date; a pick changes it by
    the products with one atom, a column of the Gram matrix.
    """

    def __init__(self, problem: Problem, ranking: Ranking, best: RankedItems) -> None:
        self._problem = problem
        self._ranking = ranking
        self._indices_K = best.indices
        self._bonus_K = ranking.terms.bonus(best.uncertainty)
        self._curvature_K = ranking.terms.curvature(best.norms_squared)
        self._free_K = np.ones(best.indices.size, dtype=bool)
        self._atoms = problem.items.gather(best.indices)

    def pick(self, count: int, residual: np.ndarray) -> _PickedBlock:
        """Return `count` picks by line 3 of Algorithm 1; each adjusts the weights of its block."""
        beta = self._problem.beta
        product_K = self._atoms.correlate(self._problem.fidelity * residual)
        columns_LK = np.empty((count, product_K.size))
        picked: list[int] = []
        weights, scores, falls = np.zeros(count), np.zeros(count), np.zeros(count)
        for k in range(count):
            decrease_K = self._ranking.decrease(product_K, self._bonus_K, self._curvature_K)
            decrease_K[~self._free_K] = -np.inf
            j = int(np.argmax(decrease_K))
            self._free_K[j] = False
            picked.append(j)
            scores[k] = decrease_K[j]
            columns_LK[k] = self._problem.fidelity * self._atoms.products_with(j)
            columns = columns_LK[: k + 1]
            before = weights[: k + 1].copy()
            product_S = product_K[picked]
            # Lines 4 and 5: the best step along the new weight.
            slope, curvature = beta + product_K[j], self._curvature_K[j]
            step = np.zeros(k + 1)
            step[k] = slope / curvature if curvature > 0 else 0.0
            product_K -= step[k] * columns[k]
            # Lines 6 and 7: de-bias over the block, clip. Algorithm 4 with the Gram matrix.
            now = before + step
            gram_SS = columns[:, picked]
            downhill = product_K[picked] - beta * (now - 1.0)
            bend = float(downhill @ (gram_SS @ downhill)) + beta * float(downhill @ downhill)
            mu = float(downhill @ downhill) / bend if bend > 0 else 0.0
            adjusted = np.maximum(now + mu * downhill, 0.0)
            product_K -= (adjusted - now) @ columns
            weights[: k + 1] = adjusted
            falls[k] = self._fall(before, adjusted, product_S, gram_SS) + self._bonus_K[j]
        places = np.array(picked)
        return _PickedBlock(
            items=self._indices_K[places],
            atoms=self._atoms.gather(places).to_numpy(),
            weights=weights,
            scores=scores,
            bonus=self._bonus_K[places],
            falls=falls,
        )

    def _fall(
        self, before: np.ndarray, after: np.ndarray, product: np.ndarray, gram: np.ndarray
    ) -> float:
        """Return the decrease of f_1 from weights `before` to `after`; the last one joins S."""
        change = after - before
        beta, outside = self._problem.beta, self._problem.beta_outside
        bias = 2.0 * float(change @ product) - float(change @ (gram @ change))
        regulariser = beta * float(np.sum((before[:-1] - 1.0) ** 2) - np.sum((after - 1.0) ** 2))
        return bias + regulariser + outside


class _Picks:
    """The picks so far: items, weights, and the residual b v - sum w_j a_j."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self._problem, self._schedule = problem, schedule
        self.items: list[int] = []
        self.residual = problem.target
        self._scores: list[float] = []
        self._history: list[float] = []
        self._weights = np.zeros(0)
        self._bonus = 0.0
        none = problem.items.gather(np.zeros(0, dtype=np.int64))
        self._support = Growing(none.to_numpy(), problem.budget)

    @property
    def missing(self) -> int:
        """The number of picks left in the budget."""
        return self._problem.budget - len(self.items)

    def extend(self, block: _PickedBlock) -> None:
        """Add a block of picks, and fit the weights of all."""
        self.items.extend(block.items.tolist())
        self._scores.extend(block.scores.tolist())
        value = self._history[-1] if self._history else self._value_of_nothing()
        self._history.extend((value - np.cumsum(block.falls)).tolist())
        self._bonus += float(block.bonus.sum())
        self._support.add(block.atoms)
        self._weights = np.append(self._weights, block.weights)
        self._fit(self._schedule.fit_steps if self.missing else self._schedule.last_fit_steps)
        self._history[-1] = self._problem.value(self._weights, self.residual, self._bonus)

    def solution(self, passes: int) -> Solution:
        """Return the whole batch."""
        return make_solution(
            self._problem,
            np.asarray(self.items, dtype=np.int64),
            self._weights,
            np.asarray(self._scores),
            passes=passes,
            history=self._history,
        )

    def _fit(self, steps: int) -> None:
        """Find the best weights of all picks by conjugate gradients; then clip at zero.

        Minimises f_1 over S: (gamma A'A + beta I) w = gamma A' b v + beta 1, from the current w.
        """
        problem, atoms, weights = self._problem, self._support.atoms, self._weights
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
        return self._problem.value(np.zeros(0), self._problem.target, 0.0)
