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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sabal.core.arrays import (
    CACHE_BYTES,
    Array,
    beside,
    namespace,
    row_chunks,
    take_rows,
    to_numpy,
    top_k,
)
from sabal.sparse.operators import row_norms_squared

BLOCK_BYTES = 3 * 2**20
"""Rows of the kernel that are computed at a time."""

LEAST_BLOCK = 32
"""Rows below which a product of matrices does not pay."""

MOST_KEPT = 256
"""A row that counts at more points than this is computed anew when it is needed again."""

SHORT = 64
"""A row that counts at so few points is kept even if nobody asked for it."""

NOTHING = 1e-7
"""A gain below this share of the whole mass is rounding."""


@dataclass(frozen=True)
class Cover:
    """A batch in the order of its picks.

    gains: what each pick covered that was not covered before, as a share of the whole mass.
    weights: the mass that each of them represents, 1 on average.
    before, after: the covered share without and with the batch.
    others: the covered share with each of some other batches in its place.
    rows: how many rows of the kernel were computed.
    idle: how many of the picks cover nothing more, for want of items that would.
    """

    indices: np.ndarray
    gains: np.ndarray
    weights: np.ndarray
    before: float
    after: float
    others: np.ndarray
    rows: int
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
        self.block = min(mass_M.size, max(LEAST_BLOCK, BLOCK_BYTES // row_bytes))
        self.covered_M = np.zeros_like(self._mass_M)
        if labeled_LD is not None:
            for rows in row_chunks(labeled_LD.shape[0], row_bytes, BLOCK_BYTES):
                self.covered_M = np.maximum(self.covered_M, self._kernel(labeled_LD[rows]).max(0))

    @property
    def share(self) -> float:
        """The covered share of the mass."""
        return float(self._mass_M @ self.covered_M)

    def share_with(self, indices: np.ndarray) -> float:
        """The share that would be covered with some points more."""
        covered_M = self.covered_M
        for start in range(0, indices.size, self.block):
            part = indices[start : start + self.block]
            covered_M = np.maximum(covered_M, self.rows(part).max(axis=0))
        return float(self._mass_M @ covered_M)

    def greedy(self, budget: int, others: Sequence[np.ndarray] = ()) -> Cover:
        """The batch that takes the best point at every pick; of equal ones, the lower index.

        others: batches that are told what they would cover in its place.

        A heap holds a bound on every gain. The first in it is picked if its gain is of now; if not,
        it is computed again (lazy greedy: Minoux 1978).
        """
        before = self.share
        bound_M = np.empty(self._mass_M.size)
        kept = _KeptRows(self, bound_M)
        shares = self._look(bound_M, kept, others)
        heap = [(-gain, j, -1) for j, gain in enumerate(bound_M.tolist())]
        heapq.heapify(heap)
        owner_M = np.full(bound_M.size, -1)
        picks: list[int] = []
        gains: list[float] = []
        while heap and len(picks) < budget and -heap[0][0] > NOTHING:
            negative, j, known = heap[0]
            near, kernel = kept.row(j)
            if known == len(picks):
                heapq.heappop(heap)
                owner_M[near] = len(picks)
                self.covered_M[near] = kernel
                bound_M[j] = -np.inf
                picks.append(j)
                gains.append(-negative)
            else:
                gain = float((kernel - self.covered_M[near]) @ self._mass_M[near])
                bound_M[j] = min(-negative, gain)
                heapq.heapreplace(heap, (-bound_M[j], j, len(picks)))
        idle = budget - len(picks)
        # Where everything is covered, what counts most is worth a second look.
        left_M = self._mass_M.astype(np.float64)
        left_M[picks] = -1.0
        picks, gains = [*picks, *top_k(left_M, idle).tolist()], [*gains, *[0.0] * idle]
        return Cover(
            indices=np.array(picks),
            gains=np.array(gains),
            weights=self._represented(owner_M, budget),
            before=before,
            after=self.share,
            others=shares,
            rows=bound_M.size + kept.computed,
            idle=idle,
        )

    def _look(
        self, gain_M: np.ndarray, kept: _KeptRows, batches: Sequence[np.ndarray]
    ) -> np.ndarray:
        """Fills in the gain of every point; the share that each of the batches would cover.

        Rows that are short enough, for much is labelled, are kept.
        """
        covered = [self.covered_M.copy() for _ in batches]
        for start in range(0, gain_M.size, self.block):
            indices = np.arange(start, min(start + self.block, gain_M.size))
            rows_KM = self.rows(indices)
            gain_M[indices] = self._gains(rows_KM)
            if self.covered_M.any():
                kept.keep(indices, rows_KM, SHORT)
            for batch, covered_M in zip(batches, covered, strict=True):
                mine_KM = rows_KM[np.isin(indices, batch)]
                if len(mine_KM):
                    np.maximum(covered_M, mine_KM.max(axis=0), out=covered_M)
        return np.array([self._mass_M @ covered_M for covered_M in covered])

    def _represented(self, owner_M: np.ndarray, budget: int) -> np.ndarray:
        """The mass of the points that each pick covers best, 1 on average."""
        owned_M = owner_M >= 0
        mass = np.bincount(owner_M[owned_M], weights=self._mass_M[owned_M], minlength=budget)
        return mass * (budget / mass.sum()) if mass.sum() > 0 else np.ones(budget)

    def _gains(self, rows_KM: np.ndarray) -> np.ndarray:
        """sum_i u_i [k(i, j) - c_i]_+ for the kernel rows of some points j."""
        gains = np.empty(len(rows_KM))
        for rows in row_chunks(len(rows_KM), rows_KM[:1].nbytes, CACHE_BYTES):
            gains[rows] = np.maximum(rows_KM[rows] - self.covered_M, 0.0) @ self._mass_M
        return gains

    def rows(self, indices: np.ndarray) -> np.ndarray:
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


class _KeptRows:
    """Rows of the kernel, of each what is above the covering so far.

    The rest of a row never counts again, and it soon is most of it: one point in t is nearer to a
    candidate than to each of t items that are labelled or in the batch.
    """

    def __init__(self, coverage: Coverage, bound_M: np.ndarray) -> None:
        self._coverage, self._bound_M = coverage, bound_M
        self._rows: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._latest: list[int] = []
        self._missing_M = np.ones(bound_M.size, dtype=bool)
        self.computed = 0

    def row(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Where the row of point j, which has the largest bound, is above, and what it is there."""
        if self._missing_M[j]:
            self._compute()
        near, kernel = self._rows[j]
        above = kernel > self._coverage.covered_M[near]
        self._rows[j] = near[above], kernel[above]
        return self._rows[j]

    def _compute(self) -> None:
        """A block of rows that are missing, largest bounds first, in place of those too long."""
        # Longer ones of before are gone already.
        long = [j for j in self._latest if self._rows[j][0].size > MOST_KEPT]
        for j in long:
            del self._rows[j]
        self._missing_M[long] = True
        bound_M = np.where(self._missing_M, self._bound_M, -np.inf)
        wanted = top_k(bound_M, self._coverage.block)
        wanted = wanted[bound_M[wanted] > -np.inf]
        self.keep(wanted, self._coverage.rows(wanted), bound_M.size)
        self._latest = wanted.tolist()
        self.computed += wanted.size

    def keep(self, indices: np.ndarray, rows_KM: np.ndarray, most: int) -> None:
        """Keep those of the rows that count at `most` points at most."""
        above_KM = rows_KM > self._coverage.covered_M
        for k in np.flatnonzero(above_KM.sum(axis=1) <= most):
            near = np.flatnonzero(above_KM[k]).astype(np.int32)
            self._rows[int(indices[k])] = near, rows_KM[k, near]
            self._missing_M[indices[k]] = False


def _half_squares(points_MD: Array) -> Array:
    return beside(row_norms_squared(points_MD) / 2.0, points_MD)
