"""Operators: n atoms that are reached a block at a time, so that none need be stored.

An operator says how to make the atoms of some rows; questions about all of them (`correlate`,
`combine`, `norms_squared`) are passes over the pool, answered block by block in the caller's array
library on the caller's device. `gather` brings a few atoms into memory, in their own precision;
`take` does so in NumPy and float64. An atom may have any shape (a vector, or a matrix for rank-one
atoms).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np

from sabal.core.arrays import (
    CHUNK_BYTES,
    Array,
    row_chunks,
    segments_of,
    take_rows,
    to_host,
    to_numpy,
)

MOST_ROWS = 4096
"""Rows of a block at most: a block of rows on disk has to be held."""


class Operator(ABC):
    """n atoms a_1 ... a_n of one shape."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of atoms."""

    @property
    @abstractmethod
    def atom_shape(self) -> tuple[int, ...]:
        """The shape of one atom."""

    @property
    @abstractmethod
    def row_bytes(self) -> int:
        """What a pass needs for one row of a block, besides the caller's arrays."""

    @property
    @abstractmethod
    def atom_bytes(self) -> int:
        """What one gathered atom takes."""

    @abstractmethod
    def block(self, rows: slice) -> Block:
        """The atoms of consecutive rows."""

    @abstractmethod
    def gather(self, indices: np.ndarray) -> Block:
        """The atoms at `indices`, where and as precise as they are."""

    dear = False
    """Whether a pass computes the atoms anew, rather than reading them."""

    rounding = 0.0
    """What rounding of the inputs leaves in an atom, as a share of the labels' deviation."""

    def take(self, indices: np.ndarray) -> Block:
        """The atoms at `indices`, in NumPy float64."""
        return self.gather(indices).to_host()

    def blocks(self, segments: Sequence[slice] | None = None) -> Iterator[tuple[int, slice, Block]]:
        """All atoms in order: the segment that a block lies in, its rows, and its atoms."""
        least_bytes = CHUNK_BYTES // MOST_ROWS
        for number, segment in enumerate(segments_of(self.size) if segments is None else segments):
            rows_in = segment.stop - segment.start
            for part in row_chunks(rows_in, max(self.row_bytes, least_bytes), CHUNK_BYTES):
                rows = slice(segment.start + part.start, segment.start + part.stop)
                yield number, rows, self.block(rows)

    def correlate(self, direction: np.ndarray) -> np.ndarray:
        """<a_j, direction> for every j."""
        result_N = np.empty(self.size)
        for _, rows, block in self.blocks():
            result_N[rows] = block.correlate(direction)
        return result_N

    def combine(self, weights_N: np.ndarray) -> np.ndarray:
        """sum_j w_j a_j."""
        total = np.zeros(self.atom_shape)
        for _, rows, block in self.blocks():
            total += block.combine(weights_N[rows])
        return total

    def norms_squared(self) -> np.ndarray:
        """||a_j||^2 for every j."""
        result_N = np.empty(self.size)
        for _, rows, block in self.blocks():
            result_N[rows] = block.norms_squared()
        return result_N


class Block(Operator):
    """Atoms in memory, made of arrays with one row per atom (`factors`)."""

    @property
    @abstractmethod
    def factors(self) -> tuple[Array, ...]:
        """The arrays, one row per atom, that the atoms are made of."""

    @abstractmethod
    def with_factors(self, factors: tuple[Array, ...]) -> Self:
        """The same kind of atoms over other rows."""

    @abstractmethod
    def products_with(self, row: int) -> np.ndarray:
        """<a_j, a_row> for every j: a column of the Gram matrix."""

    @abstractmethod
    def gram(self) -> np.ndarray:
        """<a_i, a_j> for every pair."""

    @property
    def size(self) -> int:
        return int(self.factors[0].shape[0])

    @property
    def row_bytes(self) -> int:
        return sum(8 * int(np.prod(factor.shape[1:])) for factor in self.factors)

    @property
    def atom_bytes(self) -> int:
        return sum(
            factor.dtype.itemsize * int(np.prod(factor.shape[1:])) for factor in self.factors
        )

    def block(self, rows: slice) -> Self:
        return self.with_factors(tuple(factor[rows] for factor in self.factors))

    def gather(self, indices: np.ndarray) -> Self:
        return self.with_factors(tuple(take_rows(factor, indices) for factor in self.factors))

    def to_host(self) -> Self:
        """The same atoms in NumPy float64."""
        return self.with_factors(tuple(to_host(factor) for factor in self.factors))

    def to_numpy(self) -> Self:
        """The same atoms in NumPy, as precise as they are."""
        return self.with_factors(tuple(to_numpy(factor) for factor in self.factors))
