"""A shard: consecutive rows of a pool, and what may be asked of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from sabal.core.arrays import segments_of, take_rows, to_host, to_numpy
from sabal.errors import InputError
from sabal.pools.contents import Contents
from sabal.pools.outputs import PARTS, Outputs
from sabal.pools.ray.keys import keys_of
from sabal.pools.ray.messages import Built, Description, Part, Setup, Slopes, Step, Top
from sabal.pools.ray.recipes import Recipe
from sabal.pools.sampling import priorities
from sabal.sparse.formulate import Formulation
from sabal.sparse.items import Best, LocalDescent, LocalItems, Proximity, Ranking, SparseWeights
from sabal.sparse.operators import Block
from sabal.sparse.random_features import feature_norm_sums
from sabal.strategies.scores import Scored


class Shard:
    """The rows that `recipe` reads, of a pool of `size` items, numbered as in the whole pool.

    They are a union of whole segments (see `arrays.SEGMENTS`), so that sums come out as they would
    in one piece. What was computed for the last question is kept, yet no answer depends on it: a
    shard that is read again goes on where another was lost.
    """

    def __init__(self, recipe: Recipe, size: int) -> None:
        self._recipe = recipe
        self.start, self.stop, self.size = recipe.start, recipe.stop, size
        self.segments = [
            slice(part.start - self.start, part.stop - self.start)
            for part in segments_of(size)
            if self.start <= part.start < self.stop
        ]
        self._items: tuple[int, LocalItems] | None = None
        self._descent: tuple[int, LocalDescent] | None = None
        self._scores: tuple[str, np.ndarray] | None = None

    @cached_property
    def _contents(self) -> Contents:
        try:
            contents = self._recipe.read()
            contents.outputs.check()
        except InputError as error:
            if not self.start:
                raise
            # The rows that a message names are those of this shard.
            where = f"{error.got}, counted from row {self.start} of the pool"
            raise InputError(error.expected, where, error.fix) from None
        return contents

    @property
    def _outputs(self) -> Outputs:
        return self._contents.outputs

    # -- what the rows hold ------------------------------------------------------------------

    def describe(self) -> Description:
        """What the parts of the outputs look like; looks at every number."""
        outputs = self._outputs
        parts = {}
        for name in outputs.given():
            array = getattr(outputs, name)
            parts[name] = Part(tuple(array.shape[1:]), str(array.dtype))
        ids = self._contents.ids
        return Description(
            parts=parts,
            has=frozenset(name for name in (*PARTS, "labeled_features") if outputs.has(name)),
            classes=int(outputs.probs.shape[1]) if outputs.has("probs") else 0,
            ids="" if ids is None else np.asarray(ids[:1]).dtype.kind,
        )

    def ids(self, rows: np.ndarray) -> np.ndarray:
        """The ids of some rows."""
        ids = self._contents.ids
        return rows if ids is None else np.asarray(ids[rows - self.start])

    def take(self, rows: np.ndarray, names: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Some rows of the outputs called `names`."""
        outputs = self._outputs
        return {
            name: to_numpy(take_rows(getattr(outputs, name), rows - self.start)) for name in names
        }

    def labeled_features(self) -> np.ndarray:
        """Features of what is labelled already: every shard reads all of them."""
        return to_numpy(self._outputs.labeled_features)

    def keys(self, bucket: int, buckets: int) -> np.ndarray:
        """A number for every id: those that go into one of several buckets."""
        ids = self._contents.ids
        keys = np.zeros(0, dtype=np.uint64) if ids is None else keys_of(ids, self.stop - self.start)
        return keys[(keys >> np.uint64(32)) % np.uint64(buckets) == bucket]

    def ids_with_keys(self, keys: np.ndarray) -> np.ndarray:
        """The ids behind some of these numbers."""
        ids = self._contents.ids
        if ids is None:
            return np.zeros(0, dtype=np.int64)
        own = keys_of(ids, self.stop - self.start)
        return np.asarray(ids[np.flatnonzero(np.isin(own, keys))])

    # -- what draws need to know -------------------------------------------------------------

    def undecided(self) -> bool:
        """Whether there is an item that the model is not sure of."""
        return self._outputs.has("probs") and bool(np.any(self._outputs.doubt > 0))

    def feature_norm_sums(self, formulation: Formulation) -> np.ndarray:
        """The sum of their squares."""
        return feature_norm_sums(formulation.features(self._outputs), self.segments)

    def feature_rows(self, formulation: Formulation, rows: np.ndarray) -> np.ndarray:
        """The features of some rows, in float64."""
        return to_host(take_rows(formulation.features(self._outputs), rows - self.start))

    # -- what solvers ask --------------------------------------------------------------------

    def build(self, setup: Setup) -> Built:
        """Make the items."""
        items = self._made(setup)
        empty = items.gather(np.zeros(0, dtype=np.int64)).to_numpy()
        return Built(items.survey(), empty, items.atom_bytes, items.dear, items.input_bytes)

    def best(
        self, setup: Setup, direction: np.ndarray, ranking: Ranking, count: int, taken: np.ndarray
    ) -> Best:
        """A pass: see `Items.best`."""
        inside = taken[(taken >= self.start) & (taken < self.stop)] - self.start
        return self._global(self._made(setup).best(direction, ranking, count, inside))

    def descend(self, setup: Setup, step: Step) -> Slopes:
        """A pass: see `Items.descend`. The gradient stays here."""
        descent = self._gradient(setup, step)
        return Slopes(descent.totals, descent.squares, descent.slopes)

    def nearest(self, setup: Setup, step: Step, proximity: Proximity, count: int) -> Best:
        """See `Descent.nearest`."""
        return self._global(self._gradient(setup, step).nearest(proximity, count))

    def gather(self, setup: Setup, rows: np.ndarray) -> Block:
        """The atoms of some rows."""
        return self._made(setup).gather(rows - self.start).to_numpy()

    def known(self, setup: Setup, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The uncertainty and the squared norm of some rows."""
        return self._made(setup).known(rows - self.start)

    # -- what rankings ask -------------------------------------------------------------------

    def most_uncertain(self, formulation: Formulation, count: int) -> Top:
        """A pass: the most uncertain rows."""
        return Top.of(formulation.scores(self._outputs), count, self.start)

    def priorities(self, formulation: Formulation, everyone: bool, count: int, seed: int) -> Top:
        """A pass: the rows that come first in a sample (see `sampling`)."""
        rows = self.stop - self.start
        sizes = np.ones(rows) if everyone else formulation.scores(self._outputs)
        return Top.of(priorities(sizes, self.start, seed), count, self.start)

    def top(self, strategy: Scored, count: int) -> Top:
        """A pass: the best rows for a strategy that scores each on its own."""
        return Top.of(self._scored(strategy), count, self.start)

    def level_with(self, strategy: Scored, score: float) -> int:
        """How many rows have this score."""
        return int(np.sum(self._scored(strategy) == score))

    def _scored(self, strategy: Scored) -> np.ndarray:
        if self._scores is None or self._scores[0] != strategy.name:
            self._scores = (strategy.name, strategy.scores(self._outputs))
        return self._scores[1]

    def _made(self, setup: Setup) -> LocalItems:
        if self._items is None or self._items[0] != setup.key:
            self._descent = None
            items = setup.formulation.items(
                self._outputs, setup.draws, pool_size=self.size, segments=self.segments
            )
            self._items = (setup.key, items)
        return self._items[1]

    def _gradient(self, setup: Setup, step: Step) -> LocalDescent:
        items = self._made(setup)
        if self._descent is None or self._descent[0] != step.key:
            z: SparseWeights = step.z.within(self.start, self.stop)
            self._descent = (step.key, items.descend(step.direction, z, step.beta))
        return self._descent[1]

    def _global(self, best: Best) -> Best:
        return replace(best, indices=best.indices + self.start)
