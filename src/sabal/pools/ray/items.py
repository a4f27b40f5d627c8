"""The items of a pool in shards, as solvers see them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count as counting
from typing import Any

import numpy as np

from sabal.pools.outputs import Outputs
from sabal.pools.ray.crew import Crew, Rows
from sabal.pools.ray.messages import Built, Setup, Slopes, Step
from sabal.sparse.items import Best, Proximity, Ranking, SparseWeights, Survey
from sabal.sparse.operators import Block

MADE_BY_PRODUCTS = ("kernel", "curvature")
"""Atoms that are products of matrices: the digits of a row depend on how many rows there are."""


class ClusterItems:
    """Items in shards: an `items.Items`.

    shared: the crew's stand-in for `setup`. names: the outputs that atoms are made of.
    """

    memory = None

    def __init__(
        self, crew: Crew, setup: Setup, shared: Any, built: Sequence[Built], names: tuple[str, ...]
    ) -> None:
        self._crew = crew
        self._setup = setup
        self._shared = shared
        self._empty = built[0].empty
        self._names = names
        self._steps = counting()
        self._survey = _together([each.survey for each in built])
        self.atom_bytes = built[0].atom_bytes
        # As in memory: solvers go by these, and would choose another batch by others.
        self.dear = built[0].dear
        parts = [each.input_bytes for each in built]
        self.input_bytes = None if None in parts else sum(part or 0 for part in parts)
        self.size = crew.ranges[-1][1]

    def survey(self) -> Survey:
        """Sums over all items."""
        return self._survey

    def best(
        self, direction: np.ndarray | None, ranking: Ranking, count: int, taken: np.ndarray
    ) -> Best:
        """A pass: the best `count` items for <a_j, direction>, but for those in `taken`."""
        args = (self._shared, direction, ranking, count, taken)
        return Best.join(self._crew.ask("best", *args)).top(count)

    def descend(self, direction: np.ndarray, z: SparseWeights, beta: float) -> ClusterDescent:
        """A pass: the gradient 2 beta (z_j - 1) - 2 <a_j, direction> of every item."""
        step = self._crew.share(Step(next(self._steps), direction, z, beta))
        return ClusterDescent(self._crew, self._shared, step)

    def gather(self, indices: np.ndarray) -> Block:
        """The atoms at `indices`.

        Where the digits of an atom depend on what it is computed beside, what atoms are made of is
        brought here, and all of them are made at once as they would be in memory.
        """
        if not len(indices):
            return self._empty
        wanted = Rows(self._crew, indices)
        if self._setup.formulation.atoms in MADE_BY_PRODUCTS:
            answers = self._crew.ask_each("take", wanted.args(after=(self._names,)))
            parts: dict[str, Any] = {
                name: wanted.together({k: each[name] for k, each in answers.items()})
                for name in self._names
            }
            return made(self._setup, Outputs(**parts))
        blocks = self._crew.ask_each("gather", wanted.args(self._shared))
        factors = (
            wanted.together({k: block.factors[number] for k, block in blocks.items()})
            for number in range(len(self._empty.factors))
        )
        return self._empty.with_factors(tuple(factors))

    def known(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The uncertainty and the squared norm of the items at `indices`."""
        if not len(indices):
            return np.zeros(0), np.zeros(0)
        wanted = Rows(self._crew, indices)
        answers = self._crew.ask_each("known", wanted.args(self._shared))
        uncertainty, norms = (
            wanted.together({k: each[number] for k, each in answers.items()}) for number in (0, 1)
        )
        return uncertainty, norms


class ClusterDescent:
    """A gradient that is kept at the shards: an `items.Descent`."""

    def __init__(self, crew: Crew, setup: Any, step: Any) -> None:
        self._crew = crew
        self._setup = setup
        self._step = step
        parts: list[Slopes] = crew.ask("descend", setup, step)
        self.total = np.concatenate([part.totals for part in parts]).sum(axis=0)
        self.square = float(np.concatenate([part.squares for part in parts]).sum())
        self.slope = float(np.concatenate([part.slopes for part in parts]).sum())

    def nearest(self, proximity: Proximity, count: int) -> Best:
        """The best `count` items at z - mu g. No pass: the gradient is there."""
        parts = self._crew.ask("nearest", self._setup, self._step, proximity, count)
        return Best.join(parts).top(count)


def made(setup: Setup, outputs: Outputs) -> Block:
    """The atoms of a few items that are here."""
    nothing = np.zeros(outputs.size)
    items = setup.formulation.items(outputs, setup.draws, uncertainty_N=nothing)
    return items.gather(np.arange(outputs.size))


def _together(parts: Sequence[Survey]) -> Survey:
    names = ("sizes", "atoms", "norms_squared", "uncertainty", "variance")
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Survey(
        **joined,
        clipped=sum(part.clipped for part in parts),
        rounding=max(part.rounding for part in parts),
    )
