"""Operators: n atoms that are accessed a block at a time, so that none need be stored.

An operator computes the atoms of some rows. `correlate`, `combine` and `norms_squared` are passes
over the pool, block by block in the caller's array library on the caller's device. `gather` brings
a few atoms into memory, in their own precision; `take` does so in NumPy and float64. An atom may
have any shape (a vector, or a matrix for rank-one atoms).

`Dense`, `RankOne` and `Fourier` are atoms in memory; `Computed` atoms are computed on demand;
`Growing` collects atoms one by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Self

import numpy as np
from array_api_compat import device, is_numpy_array

from sabal.core.arrays import (
    CHUNK_BYTES,
    Array,
    namespace,
    row_chunks,
    row_norms_squared,
    segments_of,
    take_rows,
    to_backend_of,
    to_float64_numpy,
    to_numpy,
    weighted_row_sum,
)

MAX_BLOCK_ROWS = 4096  # the maximum number of rows of a block, as rows on disk are copied to memory


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
        """Bytes that a pass needs per row of a block, besides the caller's arrays."""

    @property
    @abstractmethod
    def atom_bytes(self) -> int:
        """Bytes of one gathered atom."""

    @abstractmethod
    def block(self, rows: slice) -> Block:
        """Return the atoms of consecutive rows."""

    @abstractmethod
    def gather(self, indices: np.ndarray) -> Block:
        """Return the atoms at `indices`, in their own library and precision."""

    recomputes_atoms = False
    """Whether a pass recomputes the atoms rather than reading them."""

    rounding = 0.0
    """The rounding error of an atom, as a share of the labels' deviation."""

    def take(self, indices: np.ndarray) -> Block:
        """Return the atoms at `indices`, in NumPy float64."""
        return self.gather(indices).to_float64_numpy()

    def blocks(self, segments: Sequence[slice] | None = None) -> Iterator[tuple[int, slice, Block]]:
        """Yield all atoms in order: the segment of a block, its rows, and its atoms."""
        min_bytes = CHUNK_BYTES // MAX_BLOCK_ROWS
        for number, segment in enumerate(segments_of(self.size) if segments is None else segments):
            rows_in = segment.stop - segment.start
            for part in row_chunks(rows_in, max(self.row_bytes, min_bytes), CHUNK_BYTES):
                rows = slice(segment.start + part.start, segment.start + part.stop)
                yield number, rows, self.block(rows)

    def correlate(self, direction: np.ndarray) -> np.ndarray:
        """Return <a_j, direction> for every j."""
        result_N = np.empty(self.size)
        for _, rows, block in self.blocks():
            result_N[rows] = block.correlate(direction)
        return result_N

    def combine(self, weights_N: np.ndarray) -> np.ndarray:
        """Return sum_j w_j a_j."""
        total = np.zeros(self.atom_shape)
        for _, rows, block in self.blocks():
            total += block.combine(weights_N[rows])
        return total

    def norms_squared(self) -> np.ndarray:
        """Return ||a_j||^2 for every j."""
        result_N = np.empty(self.size)
        for _, rows, block in self.blocks():
            result_N[rows] = block.norms_squared()
        return result_N


class Block(Operator):
    """Atoms in memory, given by arrays with one row per atom (`factors`)."""

    @property
    @abstractmethod
    def factors(self) -> tuple[Array, ...]:
        """The arrays that represent the atoms, with one row per atom."""

    @abstractmethod
    def with_factors(self, factors: tuple[Array, ...]) -> Self:
        """Return the same kind of atoms with other factors."""

    @abstractmethod
    def products_with(self, row: int) -> np.ndarray:
        """Return <a_j, a_row> for every j: a column of the Gram matrix."""

    @abstractmethod
    def gram(self) -> np.ndarray:
        """Return <a_i, a_j> for every pair."""

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

    def to_float64_numpy(self) -> Self:
        """Return the atoms in NumPy float64."""
        return self.with_factors(tuple(to_float64_numpy(factor) for factor in self.factors))

    def to_numpy(self) -> Self:
        """Return the atoms in NumPy, in their own precision."""
        return self.with_factors(tuple(to_numpy(factor) for factor in self.factors))


class Dense(Block):
    """Atoms stored as the rows of a matrix."""

    def __init__(self, atoms_NM: Array) -> None:
        self.atoms_NM = atoms_NM

    @property
    def atom_shape(self) -> tuple[int, ...]:
        return (int(self.atoms_NM.shape[1]),)

    @property
    def factors(self) -> tuple[Array, ...]:
        return (self.atoms_NM,)

    def with_factors(self, factors: tuple[Array, ...]) -> Self:
        return type(self)(*factors)

    def correlate(self, direction: np.ndarray) -> np.ndarray:
        return to_float64_numpy(self.atoms_NM @ to_backend_of(direction, self.atoms_NM))

    def combine(self, weights_N: np.ndarray) -> np.ndarray:
        return weighted_row_sum(weights_N, self.atoms_NM)

    def norms_squared(self) -> np.ndarray:
        return row_norms_squared(self.atoms_NM)

    def products_with(self, row: int) -> np.ndarray:
        return to_float64_numpy(self.atoms_NM @ self.atoms_NM[row])

    def gram(self) -> np.ndarray:
        xp = namespace(self.atoms_NM)
        return to_float64_numpy(self.atoms_NM @ xp.matrix_transpose(self.atoms_NM))


class RankOne(Block):
    """Atoms a_j = x_j (x) h_j stored as two factors, in n (C + D) numbers (method.md 5).

    Parameters
    ----------
    left_NC, right_ND : array
        x_j and h_j.
    constant : bool
        Whether h_j has a 1 appended (the bias of a linear layer), which is not stored either.
    right_norms_N : array of shape (n,), optional
        ||h_j||^2 if known, as h_j is long and its norm is used twice.
    """

    def __init__(
        self,
        left_NC: Array,
        right_ND: Array,
        *,
        constant: bool,
        right_norms_N: np.ndarray | None = None,
    ) -> None:
        self.left_NC = left_NC
        self.right_ND = right_ND
        self.constant = constant
        self.right_norms_N = right_norms_N

    @property
    def atom_shape(self) -> tuple[int, ...]:
        return (int(self.left_NC.shape[1]), int(self.right_ND.shape[1]) + self.constant)

    @property
    def row_bytes(self) -> int:
        return 32 * int(self.left_NC.shape[1])

    @property
    def factors(self) -> tuple[Array, ...]:
        return (self.left_NC, self.right_ND)

    def with_factors(self, factors: tuple[Array, ...]) -> Self:
        return type(self)(*factors, constant=self.constant)

    def correlate(self, direction: np.ndarray) -> np.ndarray:
        """Return <a_j, R> = x_j' R h_j, for all j at once ((H R') * X).sum(1)."""
        xp = namespace(self.left_NC)
        dimensions = self.right_ND.shape[1]
        weights_DC = to_backend_of(direction[:, :dimensions].T, self.right_ND)
        offset_C = to_backend_of(direction[:, dimensions], self.right_ND) if self.constant else None
        result_N = np.empty(self.size)
        for rows in row_chunks(self.size, self.row_bytes):
            projected_NC = self.right_ND[rows] @ weights_DC
            if offset_C is not None:
                projected_NC += offset_C
            result_N[rows] = to_float64_numpy(xp.vecdot(projected_NC, self.left_NC[rows]))
        return result_N

    def combine(self, weights_N: np.ndarray) -> np.ndarray:
        """Return sum_j w_j x_j (x) h_j = (X * w)' H."""
        xp = namespace(self.left_NC)
        dimensions = self.right_ND.shape[1]
        total = np.zeros(self.atom_shape)
        for rows in row_chunks(self.size, self.row_bytes):
            left_NC = self.left_NC[rows]
            weighted_NC = left_NC * to_backend_of(weights_N[rows], left_NC)[:, None]
            total[:, :dimensions] += to_float64_numpy(
                xp.matrix_transpose(weighted_NC) @ self.right_ND[rows]
            )
            if self.constant:
                total[:, dimensions] += to_float64_numpy(xp.sum(weighted_NC, axis=0))
        return total

    def norms_squared(self) -> np.ndarray:
        """Return ||x_j (x) h_j||^2 = ||x_j||^2 ||h_j||^2."""
        right_N = self.right_norms_N
        if right_N is None:
            right_N = row_norms_squared(self.right_ND) + float(self.constant)
        return row_norms_squared(self.left_NC) * right_N

    def products_with(self, row: int) -> np.ndarray:
        """Return <x_j (x) h_j, x_i (x) h_i> = (x_j' x_i) (h_j' h_i)."""
        right_N = to_float64_numpy(self.right_ND @ self.right_ND[row]) + float(self.constant)
        return to_float64_numpy(self.left_NC @ self.left_NC[row]) * right_N

    def gram(self) -> np.ndarray:
        right_NN = Dense(self.right_ND).gram() + float(self.constant)
        return Dense(self.left_NC).gram() * right_NN


class Fourier(Block):
    """Atoms a_j = weight_j [cos(phase_j), sin(phase_j)]."""

    def __init__(self, phase_NF: Array, weight_N: Array) -> None:
        self.phase_NF = phase_NF
        self.weight_N = weight_N

    @property
    def atom_shape(self) -> tuple[int, ...]:
        return (2 * int(self.phase_NF.shape[1]),)

    @property
    def factors(self) -> tuple[Array, ...]:
        return (self.phase_NF, self.weight_N)

    def with_factors(self, factors: tuple[Array, ...]) -> Self:
        return type(self)(*factors)

    def correlate(self, direction: np.ndarray) -> np.ndarray:
        """Return the products by x cos(phase) + y sin(phase) = r cos(phase - angle)."""
        xp = namespace(self.phase_NF)
        x_F, y_F = np.split(direction, 2)
        angle_F, radius_F = np.arctan2(y_F, x_F), np.hypot(x_F, y_F)
        wave_NF = self.phase_NF - to_backend_of(angle_F, self.phase_NF)
        wave_NF = np.cos(wave_NF, out=wave_NF) if is_numpy_array(wave_NF) else xp.cos(wave_NF)
        return to_float64_numpy(self.weight_N) * to_float64_numpy(
            wave_NF @ to_backend_of(radius_F, self.phase_NF)
        )

    def combine(self, weights_N: np.ndarray) -> np.ndarray:
        xp = namespace(self.phase_NF)
        weights_N = to_backend_of(weights_N * to_float64_numpy(self.weight_N), self.phase_NF)
        waves = (weights_N @ wave(self.phase_NF) for wave in (xp.cos, xp.sin))
        return np.concatenate([to_float64_numpy(wave) for wave in waves])

    def norms_squared(self) -> np.ndarray:
        """Return the squared norms, from cos^2 + sin^2 = 1."""
        return to_float64_numpy(self.weight_N) ** 2 * self.phase_NF.shape[1]

    def products_with(self, row: int) -> np.ndarray:
        return self.dense().products_with(row)

    def gram(self) -> np.ndarray:
        return self.dense().gram()

    def dense(self) -> Dense:
        """Return the atoms as dense vectors."""
        xp = namespace(self.phase_NF)
        n, frequencies = self.phase_NF.shape
        atoms_NM = xp.empty(
            (n, 2 * frequencies), dtype=self.phase_NF.dtype, device=device(self.phase_NF)
        )
        # In place, as `concat` would hold the atoms twice.
        atoms_NM[:, :frequencies] = xp.cos(self.phase_NF)
        atoms_NM[:, frequencies:] = xp.sin(self.phase_NF)
        atoms_NM *= self.weight_N[:, None]
        return Dense(atoms_NM)


class Computed(Operator):
    """Atoms that are computed on demand from their rows.

    Parameters
    ----------
    make : callable
        Returns the atoms of a slice or an array of rows.
    size, row_bytes, recomputes_atoms, rounding
        See `Operator`.
    for_passes : callable, optional
        Returns the atoms of a slice in a form that is faster for passes.
    """

    def __init__(
        self,
        make: Callable[[slice | np.ndarray], Block],
        *,
        size: int,
        row_bytes: int,
        for_passes: Callable[[slice], Block] | None = None,
        recomputes_atoms: bool = False,
        rounding: float = 0.0,
    ) -> None:
        self._make = make
        self._for_passes = for_passes or make
        self._size = size
        self._row_bytes = row_bytes
        self.recomputes_atoms = recomputes_atoms
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
        """Return the atoms, computed in small parts, as rows are copied and atoms may be dense."""
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
    """Atoms added one at a time, up to `capacity`, without copying."""

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
        """The atoms so far (a view)."""
        return self._like.with_factors(tuple(stored[: self.size] for stored in self._storage))
