"""Operators: n atoms that solvers reach only through five questions, so that none need be stored.

`correlate`, `combine` and `norms_squared` are passes over the pool, done in the caller's array
library on the caller's device. `gather` makes a small pool of the best of them, on the same device;
`take` brings a few atoms to NumPy in float64, where picks are decided and weights are found. An
atom may have any shape (a vector, or a matrix for rank-one atoms).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from sabal.arrays import Array, beside, namespace, row_chunks, take_rows, to_host


class Operator(Protocol):
    """n atoms a_1 ... a_n of one shape."""

    @property
    def size(self) -> int:
        """The number of atoms."""

    @property
    def atom_shape(self) -> tuple[int, ...]:
        """The shape of one atom."""

    def correlate(self, direction: np.ndarray) -> np.ndarray:
        """<a_j, direction> for every j."""

    def combine(self, weights_N: np.ndarray) -> np.ndarray:
        """sum_j w_j a_j."""

    def norms_squared(self) -> np.ndarray:
        """||a_j||^2 for every j."""

    def gather(self, indices: np.ndarray) -> Operator:
        """The atoms at `indices`, where and as precise as they are."""

    def take(self, indices: np.ndarray) -> HostOperator:
        """The atoms at `indices`, in NumPy float64."""


class HostOperator(Operator, Protocol):
    """An operator small enough to hold in NumPy: rows can be copied, pairs compared."""

    def gram(self) -> np.ndarray:
        """<a_i, a_j> for every pair."""

    @property
    def factors(self) -> tuple[np.ndarray, ...]:
        """The arrays, one row per atom, that the atoms are made of."""

    def with_factors(self, factors: tuple[np.ndarray, ...]) -> HostOperator:
        """The same kind of operator over other rows."""


class Dense:
    """Atoms stored as the rows of a matrix."""

    def __init__(self, atoms_NM: Array) -> None:
        self.atoms_NM = atoms_NM

    @property
    def size(self) -> int:
        return int(self.atoms_NM.shape[0])

    @property
    def atom_shape(self) -> tuple[int, ...]:
        return (int(self.atoms_NM.shape[1]),)

    def correlate(self, direction: np.ndarray) -> np.ndarray:
        return to_host(self.atoms_NM @ beside(direction, self.atoms_NM))

    def combine(self, weights_N: np.ndarray) -> np.ndarray:
        # Sums of float32 products are closed per chunk and added up in float64.
        total = np.zeros(self.atom_shape)
        for rows in row_chunks(self.size, 8 * self.atom_shape[0]):
            chunk = self.atoms_NM[rows]
            total += to_host(beside(weights_N[rows], chunk) @ chunk)
        return total

    def norms_squared(self) -> np.ndarray:
        return row_norms_squared(self.atoms_NM)

    def gather(self, indices: np.ndarray) -> Dense:
        return Dense(take_rows(self.atoms_NM, indices))

    def take(self, indices: np.ndarray) -> Dense:
        return Dense(to_host(take_rows(self.atoms_NM, indices)))

    def gram(self) -> np.ndarray:
        return self.atoms_NM @ self.atoms_NM.T

    @property
    def factors(self) -> tuple[np.ndarray, ...]:
        return (self.atoms_NM,)

    def with_factors(self, factors: tuple[np.ndarray, ...]) -> Dense:
        return Dense(*factors)


class RankOne:
    """Atoms a_j = x_j (x) h_j kept as their two factors and never multiplied out (method.md 5).

    With `constant`, h_j is the row of `right_ND` with a 1 appended (the bias of a linear layer);
    the column of ones is not stored either. Memory n (C + D) instead of n C D.
    """

    def __init__(self, left_NC: Array, right_ND: Array, *, constant: bool) -> None:
        self.left_NC = left_NC
        self.right_ND = right_ND
        self.constant = constant

    @property
    def size(self) -> int:
        return int(self.left_NC.shape[0])

    @property
    def atom_shape(self) -> tuple[int, ...]:
        return (int(self.left_NC.shape[1]), int(self.right_ND.shape[1]) + self.constant)

    def correlate(self, direction: np.ndarray) -> np.ndarray:
        """<a_j, R> = x_j' R h_j, for all j at once ((H R') * X).sum(1)."""
        xp = namespace(self.left_NC)
        dimensions = self.right_ND.shape[1]
        weights_DC = beside(direction[:, :dimensions].T, self.right_ND)
        offset_C = beside(direction[:, dimensions], self.right_ND) if self.constant else None
        result_N = np.empty(self.size)
        for rows in row_chunks(self.size, 8 * (self.left_NC.shape[1] + dimensions)):
            projected_NC = self.right_ND[rows] @ weights_DC
            if offset_C is not None:
                projected_NC = projected_NC + offset_C
            result_N[rows] = to_host(xp.sum(projected_NC * self.left_NC[rows], axis=1))
        return result_N

    def combine(self, weights_N: np.ndarray) -> np.ndarray:
        """sum_j w_j x_j (x) h_j = (X * w)' H."""
        xp = namespace(self.left_NC)
        dimensions = self.right_ND.shape[1]
        total = np.zeros(self.atom_shape)
        for rows in row_chunks(self.size, 8 * (self.left_NC.shape[1] + dimensions)):
            left_NC = self.left_NC[rows]
            weighted_NC = left_NC * beside(weights_N[rows], left_NC)[:, None]
            total[:, :dimensions] += to_host(xp.matrix_transpose(weighted_NC) @ self.right_ND[rows])
            if self.constant:
                total[:, dimensions] += to_host(xp.sum(weighted_NC, axis=0))
        return total

    def norms_squared(self) -> np.ndarray:
        """||x_j (x) h_j||^2 = ||x_j||^2 ||h_j||^2."""
        right_N = row_norms_squared(self.right_ND) + float(self.constant)
        return row_norms_squared(self.left_NC) * right_N

    def gather(self, indices: np.ndarray) -> RankOne:
        left_KC, right_KD = take_rows(self.left_NC, indices), take_rows(self.right_ND, indices)
        return RankOne(left_KC, right_KD, constant=self.constant)

    def take(self, indices: np.ndarray) -> RankOne:
        return RankOne(
            to_host(take_rows(self.left_NC, indices)),
            to_host(take_rows(self.right_ND, indices)),
            constant=self.constant,
        )

    def gram(self) -> np.ndarray:
        """<x_i (x) h_i, x_j (x) h_j> = (x_i' x_j) (h_i' h_j)."""
        right_NN = self.right_ND @ self.right_ND.T + float(self.constant)
        return (self.left_NC @ self.left_NC.T) * right_NN

    @property
    def factors(self) -> tuple[np.ndarray, ...]:
        return (self.left_NC, self.right_ND)

    def with_factors(self, factors: tuple[np.ndarray, ...]) -> RankOne:
        return RankOne(*factors, constant=self.constant)


class Growing:
    """Atoms added one at a time, with room for `capacity` of them (no copy as it grows)."""

    def __init__(self, like: HostOperator, capacity: int) -> None:
        self._like = like
        self._storage = tuple(np.empty((capacity, *f.shape[1:])) for f in like.factors)
        self.size = 0

    def add(self, source: HostOperator, row: int) -> None:
        """Append atom `row` of `source`."""
        for stored, factor in zip(self._storage, source.factors, strict=True):
            stored[self.size] = factor[row]
        self.size += 1

    @property
    def atoms(self) -> HostOperator:
        """The atoms added so far (a view)."""
        return self._like.with_factors(tuple(stored[: self.size] for stored in self._storage))


def row_norms_squared(array: Array) -> np.ndarray:
    """||row||^2 of a matrix, accumulated in float64 so that tiny and huge scales survive."""
    result = np.empty(array.shape[0])
    for rows in row_chunks(array.shape[0], 8 * array.shape[1]):
        chunk = to_host(array[rows])
        result[rows] = np.einsum("ij,ij->i", chunk, chunk)
    return result
