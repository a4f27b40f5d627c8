"""The items of a pool, as used by solvers.

Only a pass reads the whole pool. It takes a small input (a direction, a rule) and returns the best
few items and sums, never a number per item, so that the items may be in memory, on disk, or on
other machines. `LocalItems` have their atoms in this process; `PoolItems` are distributed over the
shards of a pool, each of which has `LocalItems`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from sabal.core.arrays import segments_of, top_k
from sabal.pools.pool import Pool, Shard, TopRows
from sabal.sparse.operators import Block, Operator


@dataclass(frozen=True)
class Terms:
    """The coefficients of the terms of f (see `Problem`)."""

    fidelity: float
    beta: float
    alpha: float
    unit: float

    def bonus(self, uncertainty: np.ndarray) -> np.ndarray:
        """Return the bonus of an item's uncertainty in f."""
        return self.alpha * (uncertainty / self.unit)

    def curvature(self, norms_squared: np.ndarray) -> np.ndarray:
        """Return gamma ||a_j||^2 + beta: half the second derivative of f along each weight."""
        return self.fidelity * norms_squared + self.beta


class ItemScore(Protocol):
    """Scores items of weight zero for a pass: line 3 of Algorithm 1 (`sabal.sparse.greedy`)."""

    @property
    def terms(self) -> Terms:
        """The terms of the problem."""

    def decrease(self, product: np.ndarray, bonus: np.ndarray, curvature: np.ndarray) -> np.ndarray:
        """Return the expected decrease of f; `product` is <a_j, gamma r>."""


class PointScore(Protocol):
    """Scores items at a point s = z - mu g: line 6 of Algorithm 2 (`sabal.sparse.iht`)."""

    @property
    def mu(self) -> float:
        """The step just taken."""

    def scores(self, point: np.ndarray, uncertainty: np.ndarray) -> np.ndarray:
        """Return scores; the larger, the better."""


@dataclass(frozen=True)
class RankedItems:
    """Some items, best first, with their scores, norms and uncertainty.

    `value` is the product <a_j, gamma r> in a ranking, and the point s_j in a proximal step.
    """

    indices: np.ndarray
    scores: np.ndarray
    value: np.ndarray
    uncertainty: np.ndarray
    norms_squared: np.ndarray

    def top(self, count: int) -> RankedItems:
        """Return the best `count`; the lower index on ties."""
        order = np.argsort(self.indices)
        return self._at(order[top_k(self.scores[order], min(count, order.size))])

    def without(self, indices: np.ndarray) -> RankedItems:
        """Return the items that are not in `indices`."""
        return self._at(np.flatnonzero(~np.isin(self.indices, indices)))

    def in_order(self) -> RankedItems:
        """Return the items in index order."""
        return self._at(np.argsort(self.indices))

    def _at(self, places: np.ndarray) -> RankedItems:
        return RankedItems(
            self.indices[places],
            self.scores[places],
            self.value[places],
            self.uncertainty[places],
            self.norms_squared[places],
        )

    @staticmethod
    def join(parts: Sequence[RankedItems]) -> RankedItems:
        """Return all items of `parts`, in that order."""
        names = ("indices", "scores", "value", "uncertainty", "norms_squared")
        joined = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
        return RankedItems(*joined)


@dataclass(frozen=True)
class PoolSums:
    """Sums over the pool, a row for each of its segments (see `sabal.core.arrays.SEGMENTS`).

    `clipped` is as in `Atoms`, `rounding` as in `Operator`.
    """

    sizes: np.ndarray
    atoms: np.ndarray
    norms_squared: np.ndarray
    uncertainty: np.ndarray
    variance: np.ndarray
    clipped: int = 0
    rounding: float = 0.0

    @property
    def size(self) -> int:
        """The number of items."""
        return int(self.sizes.sum())

    @staticmethod
    def join(parts: Sequence[PoolSums]) -> PoolSums:
        """Return the sums of the shards of one pool."""
        names = ("sizes", "atoms", "norms_squared", "uncertainty", "variance")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return PoolSums(
            **joined,
            clipped=sum(part.clipped for part in parts),
            rounding=max(part.rounding for part in parts),
        )


@dataclass(frozen=True)
class SparseWeights:
    """Weights of a few items: `indices` in ascending order, and their `values`."""

    indices: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, indices: np.ndarray, values: np.ndarray) -> SparseWeights:
        """Return weights of distinct items in any order."""
        order = np.argsort(indices)
        return cls(indices[order], values[order])

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Return the weights of `indices` (in any order); zero by default."""
        if self.indices.size == 0:
            return np.zeros(indices.size)
        place = np.minimum(np.searchsorted(self.indices, indices), self.indices.size - 1)
        return np.where(self.indices[place] == indices, self.values[place], 0.0)

    def minus(self, other: SparseWeights, times: float = 1.0) -> SparseWeights:
        """Return these weights minus `times` the other ones."""
        # Sorting two sorted runs takes a tenth of the time of NumPy's union, which hashes.
        both = np.sort(np.concatenate([self.indices, other.indices]), kind="stable")
        indices = both[np.diff(both, prepend=-1) > 0]
        return SparseWeights(indices, self.at(indices) - times * other.at(indices))

    def within(self, start: int, stop: int) -> SparseWeights:
        """Return the weights of rows `start` to `stop`, counted from `start`."""
        low, high = np.searchsorted(self.indices, [start, stop])
        return SparseWeights(self.indices[low:high] - start, self.values[low:high])


class Descent(Protocol):
    """The gradient g of f_1 at some z over the whole pool, stored with the items."""

    @property
    def total(self) -> np.ndarray:
        """sum_j g_j a_j."""

    @property
    def square(self) -> float:
        """sum_j g_j^2."""

    @property
    def slope(self) -> float:
        """sum_j (z_j - 1) g_j."""

    def nearest(self, rule: PointScore, count: int) -> RankedItems:
        """Return the best `count` items at z - mu g, without another pass."""


class Items(Protocol):
    """n items, each with an atom, its norm and an uncertainty."""

    @property
    def size(self) -> int:
        """The number of items."""

    @property
    def atom_bytes(self) -> int:
        """Bytes of one gathered atom."""

    @property
    def recomputes_atoms(self) -> bool:
        """Whether a pass recomputes the atoms, which makes passes expensive."""

    @property
    def input_bytes(self) -> int | None:
        """The size in memory of the arrays that the items are computed from.

        Solvers adapt to it, so it does not depend on where the items are.
        """

    @property
    def memory(self) -> int | None:
        """Bytes that a selection may take, if there is a limit."""

    def sums(self) -> PoolSums:
        """Return sums over all items."""

    def best(
        self, direction: np.ndarray | None, ranking: ItemScore, count: int, taken: np.ndarray
    ) -> RankedItems:
        """Return, in a pass, the best `count` items for <a_j, direction> that are not in `taken`.

        Without a direction all products are zero, and no atoms are read.
        """

    def descend(self, direction: np.ndarray, z: SparseWeights, beta: float) -> Descent:
        """Return, in a pass, the gradient 2 beta (z_j - 1) - 2 <a_j, direction> of every item."""

    def gather(self, indices: np.ndarray) -> Block:
        """Return the atoms at `indices`, in their own library and precision."""

    def norms_and_uncertainty(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the squared norm and the uncertainty of the items at `indices`."""


class LocalItems:
    """Items in this process: an operator over them, and an uncertainty each.

    Parameters
    ----------
    operator : Operator
        Their atoms.
    uncertainty_N : array of shape (n,)
        Their uncertainty.
    variance_N : array of shape (n,), optional
        V_j, if known, to distinguish small atoms from rounding errors.
    clipped, input_bytes, memory
        See `Atoms` and `Items`.
    segments : sequence of slice, optional
        The segments of the whole pool, if this is a part of one.
    """

    def __init__(
        self,
        operator: Operator,
        uncertainty_N: np.ndarray,
        *,
        variance_N: np.ndarray | None = None,
        clipped: int = 0,
        input_bytes: int | None = None,
        memory: int | None = None,
        segments: Sequence[slice] | None = None,
    ) -> None:
        self.operator = operator
        self.uncertainty_N = uncertainty_N
        self.input_bytes = input_bytes
        self.memory = memory
        self.segments = segments_of(operator.size) if segments is None else list(segments)
        self.norms_squared_N = np.empty(operator.size)
        self._sums = self._compute_sums(variance_N, clipped)

    @property
    def size(self) -> int:
        """The number of items."""
        return self.operator.size

    @property
    def atom_bytes(self) -> int:
        """Bytes of one gathered atom."""
        return self.operator.atom_bytes

    @property
    def recomputes_atoms(self) -> bool:
        """Whether a pass recomputes the atoms."""
        return self.operator.recomputes_atoms

    def sums(self) -> PoolSums:
        """Return sums over all items."""
        return self._sums

    def _compute_sums(self, variance_N: np.ndarray | None, clipped: int) -> PoolSums:
        """Compute, in a pass, the norms and the sums."""
        atoms = np.zeros((len(self.segments), *self.operator.atom_shape))
        for number, rows, block in self.operator.blocks(self.segments):
            self.norms_squared_N[rows] = block.norms_squared()
            atoms[number] += block.combine(np.ones(rows.stop - rows.start))
        return PoolSums(
            sizes=np.array([part.stop - part.start for part in self.segments]),
            atoms=atoms,
            norms_squared=self._by_segment(self.norms_squared_N),
            uncertainty=self._by_segment(self.uncertainty_N),
            variance=np.zeros(len(atoms)) if variance_N is None else self._by_segment(variance_N),
            clipped=clipped,
            rounding=self.operator.rounding,
        )

    def _by_segment(self, values_N: np.ndarray) -> np.ndarray:
        return np.array([values_N[rows].sum() for rows in self.segments])

    def best(
        self, direction: np.ndarray | None, ranking: ItemScore, count: int, taken: np.ndarray
    ) -> RankedItems:
        """Return the best `count` items for <a_j, direction> (see `Items.best`)."""
        taken = np.sort(taken)
        found, kept, floor = [], 0, -np.inf
        for rows, product in self._products(direction):
            bonus = ranking.terms.bonus(self.uncertainty_N[rows])
            curvature = ranking.terms.curvature(self.norms_squared_N[rows])
            decrease = ranking.decrease(product, bonus, curvature)
            low, high = np.searchsorted(taken, [rows.start, rows.stop])
            decrease[taken[low:high] - rows.start] = -np.inf
            # Items that are no better than `count` earlier ones can be skipped.
            chosen = np.flatnonzero(decrease > floor)
            found.append(self._ranked(rows.start + chosen, decrease[chosen], product[chosen]))
            kept += chosen.size
            if kept > 2 * count:
                found = [RankedItems.join(found).top(count)]
                kept, floor = count, float(found[0].scores[-1])
        return RankedItems.join(found).top(count)

    def _products(self, direction: np.ndarray | None) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield <a_j, direction> of every item, block by block."""
        if direction is None:
            for rows in self.segments:
                yield rows, np.zeros(rows.stop - rows.start)
            return
        for _, rows, block in self.operator.blocks(self.segments):
            yield rows, block.correlate(direction)

    def descend(self, direction: np.ndarray, z: SparseWeights, beta: float) -> LocalDescent:
        """Return the gradient of every item (see `Items.descend`)."""
        parts = len(self.segments)
        totals = np.zeros((parts, *self.operator.atom_shape))
        squares, slopes = np.zeros(parts), np.zeros(parts)
        gradient_N = np.empty(self.size)
        for number, rows, block in self.operator.blocks(self.segments):
            inside = z.within(rows.start, rows.stop)
            away = np.full(rows.stop - rows.start, -1.0)
            away[inside.indices] += inside.values
            gradient = 2.0 * beta * away - 2.0 * block.correlate(direction)
            totals[number] += block.combine(gradient)
            squares[number] += gradient @ gradient
            slopes[number] += away @ gradient
            gradient_N[rows] = gradient
        return LocalDescent(self, z, gradient_N, totals, squares, slopes)

    def gather(self, indices: np.ndarray) -> Block:
        """Return the atoms at `indices`, in their own library and precision."""
        return self.operator.gather(indices)

    def norms_and_uncertainty(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the squared norm and the uncertainty of the items at `indices`."""
        return self.norms_squared_N[indices], self.uncertainty_N[indices]

    def _ranked(self, indices: np.ndarray, scores: np.ndarray, value: np.ndarray) -> RankedItems:
        norms, uncertainty = self.norms_and_uncertainty(indices)
        return RankedItems(indices, scores, value, uncertainty, norms)


@dataclass(frozen=True, eq=False)
class LocalDescent:
    """The gradient g of f_1 at z, with its sums by segment."""

    items: LocalItems
    z: SparseWeights
    gradient_N: np.ndarray
    totals: np.ndarray
    squares: np.ndarray
    slopes: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """sum_j g_j a_j."""
        return self.totals.sum(axis=0)

    @property
    def square(self) -> float:
        """sum_j g_j^2."""
        return float(self.squares.sum())

    @property
    def slope(self) -> float:
        """sum_j (z_j - 1) g_j."""
        return float(self.slopes.sum())

    def nearest(self, rule: PointScore, count: int) -> RankedItems:
        """Return the best `count` items at z - mu g."""
        point_N = -rule.mu * self.gradient_N
        point_N[self.z.indices] += self.z.values
        scores_N = rule.scores(point_N, self.items.uncertainty_N)
        chosen = top_k(scores_N, min(count, scores_N.size))
        norms, uncertainty = self.items.norms_and_uncertainty(chosen)
        return RankedItems(chosen, scores_N[chosen], point_N[chosen], uncertainty, norms)


# -- items of any pool -------------------------------------------------------------------------


class ItemsSpec(Protocol):
    """Creates items from the rows of a shard (see `ProblemSpec`)."""

    @property
    def depends_on_block(self) -> bool:
        """Whether the rounding of an atom depends on the block it is computed in."""

    def local_items(self, shard: Shard, draws: Any) -> LocalItems:
        """Return the items of a shard."""

    def scores(self, pool: Any) -> np.ndarray:
        """Return the uncertainty of every item."""

    def operator(self, pool: Any, draws: Any) -> Operator:
        """Return the atoms of a pool in this process."""


@dataclass(frozen=True)
class Setup:
    """The inputs that turn rows into items, with a unique `key`.

    A question has all inputs of its answer, so that a shard that has been read again gives the same
    answer as the one that was lost.
    """

    key: int
    spec: ItemsSpec
    draws: Any


@dataclass(frozen=True)
class Step:
    """The arguments of `Items.descend`, with a unique key."""

    key: int
    direction: np.ndarray
    z: SparseWeights
    beta: float


@dataclass(frozen=True)
class BuiltItems:
    """The sums of the items of a shard, and the format of its atoms (`empty` has none)."""

    sums: PoolSums
    empty: Block
    atom_bytes: int
    recomputes_atoms: bool
    input_bytes: int | None


@dataclass(frozen=True)
class DescentSums:
    """The sums over a gradient, a row for each segment."""

    totals: np.ndarray
    squares: np.ndarray
    slopes: np.ndarray


class PoolItems:
    """The items of a pool, distributed over its shards.

    Parameters
    ----------
    pool : Pool
        The pool.
    spec : ItemsSpec
        Creates the items.
    draws : object
        Random draws that the atoms of all items share, if any.
    """

    def __init__(self, pool: Pool, spec: ItemsSpec, draws: Any) -> None:
        self._pool, self._spec, self._draws = pool, spec, draws
        self._setup = pool.share(Setup(next(pool.numbers), spec, draws))
        built: list[BuiltItems] = pool.map(build_items, self._setup)
        self._empty = built[0].empty
        self._sums = PoolSums.join([each.sums for each in built])
        self.size = pool.size
        self.memory = pool.memory
        self.atom_bytes = built[0].atom_bytes
        # As for a pool in one process: solvers adapt to these, and the batch depends on them.
        self.recomputes_atoms = built[0].recomputes_atoms
        parts = [each.input_bytes for each in built]
        self.input_bytes = None if None in parts else sum(part or 0 for part in parts)

    def sums(self) -> PoolSums:
        """Return sums over all items."""
        return self._sums

    def best(
        self, direction: np.ndarray | None, ranking: ItemScore, count: int, taken: np.ndarray
    ) -> RankedItems:
        """Return the best `count` items for <a_j, direction> (see `Items.best`)."""
        parts = self._pool.map(best_items, self._setup, direction, ranking, count, taken)
        return parts[0] if len(parts) == 1 else RankedItems.join(parts).top(count)

    def descend(self, direction: np.ndarray, z: SparseWeights, beta: float) -> PoolDescent:
        """Return the gradient of every item (see `Items.descend`)."""
        step = self._pool.share(Step(next(self._pool.numbers), direction, z, beta))
        return PoolDescent(self._pool, self._setup, step)

    def gather(self, indices: np.ndarray) -> Block:
        """Return the atoms at `indices`.

        If the rounding of an atom depends on its block, the inputs are fetched, and all atoms are
        computed here at once, as for a pool in memory.
        """
        if not len(indices):
            return self._empty
        if self._spec.depends_on_block and not self._pool.in_one_piece:
            pool, places = self._pool.rows_here(indices)
            return self._spec.operator(pool, self._draws).gather(places)
        factors = self._pool.map_rows(atom_factors, indices, self._setup)
        return self._empty.with_factors(factors)

    def norms_and_uncertainty(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the squared norm and the uncertainty of the items at `indices`."""
        if not len(indices):
            return np.zeros(0), np.zeros(0)
        norms, uncertainty = self._pool.map_rows(norms_and_uncertainty, indices, self._setup)
        return norms, uncertainty


class PoolDescent:
    """A gradient that is stored in the shards."""

    def __init__(self, pool: Pool, setup: Any, step: Any) -> None:
        self._pool, self._setup, self._step = pool, setup, step
        parts: list[DescentSums] = pool.map(descent_sums, setup, step)
        self.total = np.concatenate([part.totals for part in parts]).sum(axis=0)
        self.square = float(np.concatenate([part.squares for part in parts]).sum())
        self.slope = float(np.concatenate([part.slopes for part in parts]).sum())

    def nearest(self, rule: PointScore, count: int) -> RankedItems:
        """Return the best `count` items at z - mu g."""
        parts = self._pool.map(nearest_items, self._setup, self._step, rule, count)
        return parts[0] if len(parts) == 1 else RankedItems.join(parts).top(count)


def build_items(shard: Shard, setup: Setup) -> BuiltItems:
    """Create the items of a shard."""
    items = _items(shard, setup)
    empty = items.gather(np.zeros(0, dtype=np.int64))
    return BuiltItems(
        items.sums(), empty, items.atom_bytes, items.recomputes_atoms, items.input_bytes
    )


def best_items(
    shard: Shard,
    setup: Setup,
    direction: np.ndarray | None,
    ranking: ItemScore,
    count: int,
    taken: np.ndarray,
) -> RankedItems:
    """Return `Items.best` of a shard."""
    inside = taken[(taken >= shard.start) & (taken < shard.stop)] - shard.start
    return _in_pool(shard, _items(shard, setup).best(direction, ranking, count, inside))


def descent_sums(shard: Shard, setup: Setup, step: Step) -> DescentSums:
    """Return the sums of `Items.descend` of a shard; the gradient stays there."""
    descent = _descent(shard, setup, step)
    return DescentSums(descent.totals, descent.squares, descent.slopes)


def nearest_items(
    shard: Shard, setup: Setup, step: Step, rule: PointScore, count: int
) -> RankedItems:
    """Return `Descent.nearest` of a shard."""
    return _in_pool(shard, _descent(shard, setup, step).nearest(rule, count))


def atom_factors(shard: Shard, rows: np.ndarray, setup: Setup) -> tuple[Any, ...]:
    """Return the factors of the atoms of some rows."""
    return _items(shard, setup).gather(rows - shard.start).factors


def norms_and_uncertainty(
    shard: Shard, rows: np.ndarray, setup: Setup
) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared norm and the uncertainty of some rows."""
    return _items(shard, setup).norms_and_uncertainty(rows - shard.start)


def most_uncertain_items(shard: Shard, spec: ItemsSpec, count: int) -> TopRows:
    """Return the most uncertain rows according to `spec`."""
    return TopRows.of(spec.scores(shard.pool), count, shard.start)


def _items(shard: Shard, setup: Setup) -> LocalItems:
    found: LocalItems = shard.keep(
        "items", setup.key, lambda: setup.spec.local_items(shard, setup.draws)
    )
    return found


def _descent(shard: Shard, setup: Setup, step: Step) -> LocalDescent:
    items = _items(shard, setup)
    z = step.z.within(shard.start, shard.stop)
    found: LocalDescent = shard.keep(
        "descent", step.key, lambda: items.descend(step.direction, z, step.beta)
    )
    return found


def _in_pool(shard: Shard, ranked: RankedItems) -> RankedItems:
    """Return ranked items of a shard with their indices in the whole pool."""
    return replace(ranked, indices=ranked.indices + shard.start) if shard.start else ranked
