"""Atoms in memory: the rows of a matrix, or two factors whose product is never formed."""

from __future__ import annotations

from typing import Self

import numpy as np

from sabal.core.arrays import Array, beside, namespace, row_chunks, to_host
from sabal.sparse.operators.operator import Block


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
        return to_host(self.atoms_NM @ beside(direction, self.atoms_NM))

    def combine(self, weights_N: np.ndarray) -> np.ndarray:
        # Sums of float32 products are closed per chunk and added up in float64.
        total = np.zeros(self.atom_shape)
        for rows in row_chunks(self.size, self.row_bytes):
            chunk = self.atoms_NM[rows]
            total += to_host(beside(weights_N[rows], chunk) @ chunk)
        return total

    def norms_squared(self) -> np.ndarray:
        return row_norms_squared(self.atoms_NM)

    def products_with(self, row: int) -> np.ndarray:
        return to_host(self.atoms_NM @ self.atoms_NM[row])

    def gram(self) -> np.ndarray:
        xp = namespace(self.atoms_NM)
        return to_host(self.atoms_NM @ xp.matrix_transpose(self.atoms_NM))


class RankOne(Block):
    """Atoms a_j = x_j (x) h_j kept as their two factors and never multiplied out (method.md 5).

    With `constant`, h_j is the row of `right_ND` with a 1 appended (the bias of a linear layer);
    the column of ones is not stored either. Memory n (C + D) instead of n C D.

    right_norms_N: ||h_j||^2 where they are known: h_j is long, and its norm is asked for twice.
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
        """<a_j, R> = x_j' R h_j, for all j at once ((H R') * X).sum(1)."""
        xp = namespace(self.left_NC)
        dimensions = self.right_ND.shape[1]
        weights_DC = beside(direction[:, :dimensions].T, self.right_ND)
        offset_C = beside(direction[:, dimensions], self.right_ND) if self.constant else None
        result_N = np.empty(self.size)
        for rows in row_chunks(self.size, self.row_bytes):
            projected_NC = self.right_ND[rows] @ weights_DC
            if offset_C is not None:
                projected_NC += offset_C
            result_N[rows] = to_host(xp.vecdot(projected_NC, self.left_NC[rows]))
        return result_N

    def combine(self, weights_N: np.ndarray) -> np.ndarray:
        """sum_j w_j x_j (x) h_j = (X * w)' H."""
        xp = namespace(self.left_NC)
        dimensions = self.right_ND.shape[1]
        total = np.zeros(self.atom_shape)
        for rows in row_chunks(self.size, self.row_bytes):
            left_NC = self.left_NC[rows]
            weighted_NC = left_NC * beside(weights_N[rows], left_NC)[:, None]
            total[:, :dimensions] += to_host(xp.matrix_transpose(weighted_NC) @ self.right_ND[rows])
            if self.constant:
                total[:, dimensions] += to_host(xp.sum(weighted_NC, axis=0))
        return total

    def norms_squared(self) -> np.ndarray:
        """||x_j (x) h_j||^2 = ||x_j||^2 ||h_j||^2."""
        right_N = self.right_norms_N
        if right_N is None:
            right_N = row_norms_squared(self.right_ND) + float(self.constant)
        return row_norms_squared(self.left_NC) * right_N

    def products_with(self, row: int) -> np.ndarray:
        """<x_j (x) h_j, x_i (x) h_i> = (x_j' x_i) (h_j' h_i)."""
        right_N = to_host(self.right_ND @ self.right_ND[row]) + float(self.constant)
        return to_host(self.left_NC @ self.left_NC[row]) * right_N

    def gram(self) -> np.ndarray:
        right_NN = Dense(self.right_ND).gram() + float(self.constant)
        return Dense(self.left_NC).gram() * right_NN


def row_norms_squared(array: Array) -> np.ndarray:
    """||row||^2 of a matrix, accumulated in float64 so that tiny and huge scales survive."""
    result = np.empty(array.shape[0])
    for rows in row_chunks(array.shape[0], 8 * array.shape[1]):
        chunk = to_host(array[rows])
        result[rows] = np.einsum("ij,ij->i", chunk, chunk)
    return result
