"""Atoms that are not there until they are asked for, and atoms that are added one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from array_api_compat import device

from sabal.core.arrays import Array, namespace, row_chunks
from sabal.sparse.operators.operator import Block, Operator


class Computed(Operator):
    """Atoms that are made when they are asked for, from what is known of their rows.

    make: the atoms of a slice or an array of rows. for_passes: the same in a form that passes
        read faster, if there is one. dear, rounding: see `Operator`.
    """

    def __init__(
        self,
        make: Callable[[slice | np.ndarray], Block],
        *,
        size: int,
        row_bytes: int,
        for_passes: Callable[[slice], Block] | None = None,
        dear: bool = False,
        rounding: float = 0.0,
    ) -> None:
        self._make = make
        self._for_passes = for_passes or make
        self._size = size
        self._row_bytes = row_bytes
        self.dear = dear
        self.rounding = rounding
        empty = make(slice(0, 0))
        self._atom_shape, self._atom_bytes = empty.atom_shape, empty.atom_bytes

    @property
    def size(self) -> int:
        return self._size

    @property
    def atom_shape(self) -> tuple[int, ...]:
        return self._atom_shape

    @property
    def row_bytes(self) -> int:
        return self._row_bytes

    @property
    def atom_bytes(self) -> int:
        return self._atom_bytes

    def block(self, rows: slice) -> Block:
        return self._for_passes(rows)

    def gather(self, indices: np.ndarray) -> Block:
        """In parts, smaller ones than in a pass: rows are copied, and atoms may be written out."""
        parts = list(row_chunks(indices.size, 2 * self._row_bytes))
        if len(parts) < 2:
            return self._make(indices)
        first = self._make(indices[parts[0]])
        factors = tuple(_room_for(indices.size, factor) for factor in first.factors)
        for rows in parts:
            made = first if rows.start == 0 else self._make(indices[rows])
            for whole, factor in zip(factors, made.factors, strict=True):
                whole[rows] = factor
        return first.with_factors(factors)


def _room_for(count: int, like: Array) -> Array:
    shape = (count, *like.shape[1:])
    return namespace(like).empty(shape, dtype=like.dtype, device=device(like))


class Growing:
    """Atoms added one at a time, with room for `capacity` of them (no copy as it grows)."""

    def __init__(self, like: Block, capacity: int) -> None:
        self._like = like
        self._storage = tuple(
            np.empty((capacity, *f.shape[1:]), dtype=f.dtype) for f in like.factors
        )
        self.size = 0

    def add(self, source: Block) -> None:
        """Append the atoms of `source`."""
        for stored, factor in zip(self._storage, source.factors, strict=True):
            stored[self.size : self.size + source.size] = factor
        self.size += source.size

    @property
    def atoms(self) -> Block:
        """The atoms added so far (a view)."""
        return self._like.with_factors(tuple(stored[: self.size] for stored in self._storage))
