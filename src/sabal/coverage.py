"""Coverage: a batch that stands in for a pool item by item, and not in the mean alone.

Let item i of the pool be represented by the item c(i), in the batch or labelled before, that is
nearest to it by the kernel k(i, j) = exp(-||h_i - h_j||^2 / 2 r^2), whose feature map is phi. With
masses u_i and the weights w_j = sum of u_i over the items i that j represents,

    ||sum_i u_i phi_i - sum_j w_j phi_j||^2 <= (sum_i u_i) (sum_i u_i ||phi_i - phi_c(i)||^2)
                                             = 2 (sum_i u_i) (sum_i u_i (1 - max_j k(i, j)))

by the triangle inequality and Cauchy-Schwarz: what is left uncovered bounds the representation
term of Problem 2 over kernel atoms, with weights that need no fit. This is not from the paper. The
bound is that of CRAIG (Mirzasoleiman et al. 2020); covering by a kernel is MaxHerding (Bae et al.
2024), and with uncertainties as masses Uncertainty Herding (Bae et al. 2025).

What is covered is a submodular function of the batch: greedy picks reach 1 - 1/e of the best
(Nemhauser et al. 1978), and a gain that was computed once bounds it from above ever after.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sabal.arrays import (
    CACHE_BYTES,
    Array,
    beside,
    namespace,
    row_chunks,
    take_rows,
    to_numpy,
    top_k,
)
from sabal.operators import row_norms_squared

BLOCK_BYTES = 3 * 2**20
"""Rows of the kernel that are held at a time."""

LEAST_BLOCK = 32
"""Rows below which a product of matrices does not pay."""

NOTHING = 1e-7
"""A gain below this share of the whole mass is rounding."""


@dataclass(frozen=True)
class Cover:
    """A batch in the order of its picks.

    gains: what each pick covered that was not covered before, as a share of the whole mass.
    weights: the mass that each of them represents, 1 on average.
    before, after: the covered share without and with the batch.
    blocks: how many blocks of the kernel were computed.
    idle: how many of the picks cover nothing more, for want of items that would.
    """

    indices: np.ndarray
    gains: np.ndarray
    weights: np.ndarray
    before: float
    after: float
    blocks: int
    idle: int


class Coverage:
    """Points with masses, and how well each of them is covered.

    points_MD: features, centred (a product of matrices loses digits to an offset).
    mass_M: what each counts; not all zero.
    labeled_LD: features of what is labelled, with the same offset taken off; None for none.
    radius: r, the distance over which one item speaks for another.
    """

    def __init__(
        self, points_MD: Array, mass_M: np.ndarray, labeled_LD: Array | None, radius: float
    ) -> None:
        self._points_MD = points_MD
        self._scale = 1.0 / float(radius) ** 2
        self._halves_M = _half_squares(points_MD) * self._scale
        one_row = to_numpy(points_MD[:1])
        self._mass_M = (mass_M / mass_M.sum()).astype(one_row.dtype)
        row_bytes = one_row.itemsize * mass_M.size
        self._block = min(mass_M.size, max(LEAST_BLOCK, BLOCK_BYTES // row_bytes))
        self._covered_M = np.zeros_like(self._mass_M)
        if labeled_LD is not None:
            for rows in row_chunks(labeled_LD.shape[0], row_bytes, BLOCK_BYTES):
                self._covered_M = np.maximum(self._covered_M, self._kernel(labeled_LD[rows]).max(0))

    @property
    def share(self) -> float:
        """The covered share of the mass."""
        return float(self._mass_M @ self._covered_M)

    def share_with(self, indices: np.ndarray) -> float:
        """The share that would be covered with some points more."""
        covered_M = self._covered_M
        for start in range(0, indices.size, self._block):
            part = indices[start : start + self._block]
            covered_M = np.maximum(covered_M, self._rows(part).max(axis=0))
        return float(self._mass_M @ covered_M)

    def greedy(self, budget: int) -> Cover:
        """The batch that takes the best point at every pick; of equal ones, the lower index."""
        size, before, blocks = self._mass_M.size, self.share, 0
        bound_M, owner_M = np.empty(size), np.full(size, -1)
        for start in range(0, size, self._block):
            indices = np.arange(start, min(start + self._block, size))
            bound_M[indices] = self._gains(self._rows(indices))
            blocks += 1
        picks: list[int] = []
        gains: list[float] = []
        while len(picks) < budget and bound_M.max() > NOTHING:
            for j, gain in self._best_of_block(bound_M, owner_M, len(picks)):
                picks.append(j)
                gains.append(gain)
                if len(picks) == budget:
                    break
            blocks += 1
        idle = budget - len(picks)
        # Where everything is covered, what counts most is worth a second look.
        left_M = self._mass_M.astype(np.float64)
        left_M[picks] = -1.0
        picks, gains = [*picks, *top_k(left_M, idle).tolist()], [*gains, *[0.0] * idle]
        weights = self._represented(owner_M, budget)
        return Cover(np.array(picks), np.array(gains), weights, before, self.share, blocks, idle)

    def _best_of_block(
        self, bound_M: np.ndarray, owner_M: np.ndarray, before: int
    ) -> Iterator[tuple[int, float]]:
        """Picks among the points with the largest bounds, while nothing else can be better.

        Keeps bounds, and who covers a point best, up to date; `before` picks were made already.
        """
        indices = np.sort(top_k(bound_M, self._block))
        rows_KM = self._rows(indices)
        outside_M = bound_M.copy()
        outside_M[indices] = -np.inf
        rival = int(np.argmax(outside_M))
        limit = (-outside_M[rival], rival)
        bound_M[indices] = np.minimum(bound_M[indices], self._gains(rows_KM))
        picked = 0
        heap = [(-bound_M[j], int(j), k, picked) for k, j in enumerate(indices)]
        heapq.heapify(heap)
        while heap and heap[0][:2] <= limit and -heap[0][0] > NOTHING:
            negative, j, k, seen = heap[0]
            if seen == picked:
                heapq.heappop(heap)
                bound_M[j] = -np.inf
                owner_M[rows_KM[k] > self._covered_M] = before + picked
                np.maximum(self._covered_M, rows_KM[k], out=self._covered_M)
                picked += 1
                yield j, -negative
            else:
                bound_M[j] = min(bound_M[j], self._gains(rows_KM[k : k + 1])[0])
                heapq.heapreplace(heap, (-bound_M[j], j, k, picked))

    def _represented(self, owner_M: np.ndarray, budget: int) -> np.ndarray:
        """The mass of the points that each pick covers best, 1 on average."""
        owned_M = owner_M >= 0
        mass = np.bincount(owner_M[owned_M], weights=self._mass_M[owned_M], minlength=budget)
        return mass * (budget / mass.sum()) if mass.sum() > 0 else np.ones(budget)

    def _gains(self, rows_KM: np.ndarray) -> np.ndarray:
        """sum_i u_i [k(i, j) - c_i]_+ for the kernel rows of some points j."""
        gains = np.empty(len(rows_KM))
        for rows in row_chunks(len(rows_KM), rows_KM[:1].nbytes, CACHE_BYTES):
            gains[rows] = np.maximum(rows_KM[rows] - self._covered_M, 0.0) @ self._mass_M
        return gains

    def _rows(self, indices: np.ndarray) -> np.ndarray:
        """The kernel between some points and all."""
        return self._kernel(take_rows(self._points_MD, indices))

    def _kernel(self, others_KD: Array) -> np.ndarray:
        """The kernel between other points and all."""
        xp = namespace(others_KD, self._points_MD)
        exponents_KM = (others_KD * self._scale) @ xp.matrix_transpose(self._points_MD)
        exponents_KM -= _half_squares(others_KD)[:, None] * self._scale
        exponents_KM -= self._halves_M
        kernel_KM = to_numpy(exponents_KM)
        np.exp(kernel_KM, out=kernel_KM)
        # Rounding may put a point at less than no distance from another.
        return np.minimum(kernel_KM, 1.0, out=kernel_KM)


def _half_squares(points_MD: Array) -> Array:
    return beside(row_norms_squared(points_MD) / 2.0, points_MD)
