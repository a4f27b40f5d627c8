"""The items of a pool as solvers see them.

A pass is the one thing that reads the whole pool. It is asked by a small question (a direction, a
rule) and answered by the best few items and sums, never by a number per item, so that the items may
be in memory, on disk, or on other machines.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from sabal.sparse.items.queries import Best, Proximity, Ranking, SparseWeights, Survey
from sabal.sparse.operators import Block


class Descent(Protocol):
    """The gradient g of f_1 at some z over the whole pool, kept where the items are."""

    @property
    def total(self) -> np.ndarray:
        """sum_j g_j a_j."""

    @property
    def square(self) -> float:
        """sum_j g_j^2."""

    @property
    def slope(self) -> float:
        """sum_j (z_j - 1) g_j."""

    def nearest(self, proximity: Proximity, count: int) -> Best:
        """The best `count` items at z - mu g. No pass: the gradient is there."""


class Items(Protocol):
    """n items, each with an atom, its norm and an uncertainty."""

    @property
    def size(self) -> int:
        """The number of items."""

    @property
    def atom_bytes(self) -> int:
        """What one gathered atom takes."""

    @property
    def dear(self) -> bool:
        """Whether a pass computes the atoms anew, so that there had better be few."""

    @property
    def input_bytes(self) -> int | None:
        """What the arrays take, or would take in memory, that the items are made of.

        Solvers adapt to it, so it is the same wherever the items are.
        """

    @property
    def memory(self) -> int | None:
        """Bytes that a selection may take, if there is a limit."""

    def survey(self) -> Survey:
        """Sums over all items."""

    def best(
        self, direction: np.ndarray | None, ranking: Ranking, count: int, taken: np.ndarray
    ) -> Best:
        """A pass: the best `count` items for <a_j, direction>, but for those in `taken`.

        Without a direction all products are zero, and no atom is read.
        """

    def descend(self, direction: np.ndarray, z: SparseWeights, beta: float) -> Descent:
        """A pass: the gradient 2 beta (z_j - 1) - 2 <a_j, direction> of every item."""

    def gather(self, indices: np.ndarray) -> Block:
        """The atoms at `indices`, where and as precise as they are."""

    def known(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The uncertainty and the squared norm of the items at `indices`."""
