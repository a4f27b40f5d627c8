"""Greedy covers of points with masses: the kernel between the points, and the picks.

Points are in units of the kernel's radius, so the kernel is k(x, y) = exp(-||x - y||^2 / 2). Point
i is covered by c_i = max_j k(i, j) over the points j in the batch or labelled. The covered
mass is a submodular function of the batch: greedy picks reach 1 - 1/e of the optimum (Nemhauser et
al. 1978). A kernel that fits into memory is kept whole, and all gains are kept current. Otherwise
an old gain serves as an upper bound on the current one (lazy greedy: Minoux 1978).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from array_api_compat.numpy import vecdot  # type: ignore[attr-defined]  # not before NumPy 2

from sabal.core.arrays import (
    CACHE_BYTES,
    Array,
    namespace,
    row_chunks,
    row_norms_squared,
    take_rows,
    to_numpy,
    top_k,
)
from sabal.core.memory import SHARE
from sabal.core.threads import blas_threads, in_threads, share_out
from sabal.pools.pool import Pool

BLOCK = 256  # the number of kernel rows computed at a time
MIN_BLOCK = 32  # the same if memory is short
ENTRY_BYTES = 8  # what an entry of a reduced row takes: a position and a value
KERNEL_BYTES = 384_000_000  # what a kernel may take, unless `memory` of the pool is less
MAX_ROUNDING = 1e-3  # the largest rounding error of a kernel exponent for which float32 is used
RESOLUTION = 2.0**-30  # gains are rounded to multiples of this, so that equal ones are ties
MIN_GAIN = 1e-7  # a gain below this share of the whole mass is a rounding error
MAX_LOSS = 32.0  # gains are computed anew once the largest has decreased by this factor
THREADED = 4_000_000  # the number of kernel entries from which on threads share the work
PIECES = 8  # the number of parts in which they do

Row = tuple[np.ndarray, np.ndarray]
"""Points at which a row of the kernel exceeds the cover, and its values there."""


def kernel_bytes(pool: Pool) -> int:
    """Return how much memory a kernel may take."""
    return KERNEL_BYTES if pool.memory is None else min(KERNEL_BYTES, pool.memory // SHARE)


def in_units_of(
    radius: float, points_MD: Array, labeled_LD: Array | None
) -> tuple[Array, Array | None]:
    """Return both arrays in units of the radius, in double precision if it requires that.

    They are copies that belong to the caller, and may be changed in place.
    """
    given = [each for each in (points_MD, labeled_LD) if each is not None and each.shape[0]]
    largest = max(float(np.max(row_norms_squared(each))) for each in given)
    xp = namespace(points_MD)
    precise = float(xp.finfo(points_MD.dtype).eps) * largest <= MAX_ROUNDING * radius**2
    dtype = points_MD.dtype if precise else xp.float64
    points_MD = xp.astype(points_MD, dtype, copy=False)
    points_MD /= float(radius)
    if labeled_LD is not None:
        labeled_LD = xp.astype(labeled_LD, dtype, copy=False)
        labeled_LD /= float(radius)
    return points_MD, labeled_LD


@dataclass(frozen=True)
class Cover:
    """A batch in the order of its picks.

    Attributes
    ----------
    gains : array
        The mass newly covered by each pick, as a share of the whole mass.
    weights : array
        The mass that each pick represents, 1 on average.
    before, after : float
        The covered share without and with the batch.
    others : array
        The covered share with each of some other batches instead.
    rows : int
        The number of kernel rows computed.
    idle : int
        The number of picks that cover nothing more.
    """

    indices: np.ndarray
    gains: np.ndarray
    weights: np.ndarray
    before: float
    after: float
    others: np.ndarray
    rows: int
    idle: int


class Kernel:
    """The Gaussian kernel between some points and others, computed in their precision.

    Parameters
    ----------
    points_MD : array
        Centred features (matrix products lose precision with an offset), in units of the radius.
    """

    def __init__(self, points_MD: Array) -> None:
        self.points_MD = points_MD
        self.size = points_MD.shape[0]
        self._halves_M = row_norms_squared(points_MD) / 2.0

    def rows(self, others_KD: Array, first: int = 0) -> np.ndarray:
        """Return the kernel between other points and the points from `first` on, in float32."""
        points_RD = self.points_MD[first:]
        xp = namespace(others_KD, points_RD)
        kernel_KR = to_numpy(others_KD @ xp.matrix_transpose(points_RD))
        halves_R = self._halves_M[first:].astype(kernel_KR.dtype)
        halves_K = (row_norms_squared(others_KD) / 2.0).astype(kernel_KR.dtype)
        for chunk in row_chunks(len(kernel_KR), kernel_KR[:1].nbytes, CACHE_BYTES):
            part_KR = kernel_KR[chunk]
            part_KR -= np.add.outer(halves_K[chunk], halves_R)
            # Rounding may make a squared distance negative.
            np.minimum(part_KR, 0.0, out=part_KR)
            np.exp(part_KR, out=part_KR)
        return kernel_KR.astype(np.float32, copy=False)


class WholeRows:
    """All rows of the kernel between some points, for picks whose gains are current at all times.

    A pick changes the cover of few points, about one in t after t picks. Only the terms of these
    points change in the gains of all the others.
    """

    def __init__(self, kernel: Kernel, mass_M: np.ndarray, covered_M: np.ndarray) -> None:
        self.computed = kernel.size
        self._mass_M = mass_M
        self._covered_M = covered_M
        self._largest = 0.0
        self._threads = blas_threads()
        self._kept_MM = np.empty((kernel.size, kernel.size), dtype=np.float32)

        def keep(rows: slice) -> None:
            # One half is computed; the other is its mirror image.
            block_KR = kernel.rows(kernel.points_MD[rows], first=rows.start)
            self._kept_MM[rows, rows.start :] = block_KR
            self._kept_MM[rows.stop :, rows] = block_KR[:, len(block_KR) :].T

        in_threads(keep, list(row_chunks(kernel.size, 1, BLOCK)))

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield all rows in order, some at a time."""
        for rows in row_chunks(self.computed, 1, BLOCK):
            yield rows, self._kept_MM[rows]

    def best(self, gain_M: np.ndarray) -> int:
        """Return the point with the largest gain; the lower one on ties."""
        return int(np.argmax(_rounded(gain_M)))

    def row(self, j: int, gain_M: np.ndarray) -> Row:
        """Return the row of point j, as far as it exceeds the cover."""
        above = np.flatnonzero(self._kept_MM[j] > self._covered_M)
        return above, self._kept_MM[j, above]

    def update(self, changed_S: np.ndarray, before_S: np.ndarray, gain_M: np.ndarray) -> None:
        """Update the gains after a pick that has changed the cover of some points.

        The gain of point j loses sum_i u_i clip(k(i, j) - c_i, 0, c'_i - c_i) over these points i,
        where c is the cover before and c' the cover now.
        """
        largest = float(gain_M.max())
        self._largest = max(self._largest, largest)
        anew = largest < self._largest / MAX_LOSS or 2 * changed_S.size > self.computed
        mass_S = self._mass_M[changed_S]
        rise_S = self._covered_M[changed_S] - before_S

        def lose(columns: slice) -> None:
            row_bytes = 4 * (columns.stop - columns.start)
            for part in row_chunks(changed_S.size, row_bytes, CACHE_BYTES):
                lost_KE = self._kept_MM[changed_S[part], columns]
                lost_KE -= before_S[part, None]
                np.clip(lost_KE, 0.0, rise_S[part, None], out=lost_KE)
                gain_M[columns] -= np.einsum("k,ke->e", mass_S[part], lost_KE)

        def compute(columns: slice) -> None:
            # Rounding errors are shares of all that was lost, which is much more than is left.
            for part in row_chunks(columns.stop - columns.start, 4 * self.computed, CACHE_BYTES):
                rows = slice(columns.start + part.start, columns.start + part.stop)
                current_K = gains_of(self._kept_MM[rows], self._mass_M, self._covered_M)
                np.copyto(gain_M[rows], current_K, where=gain_M[rows] > -np.inf)

        entries = (self.computed if anew else changed_S.size) * self.computed
        pieces = PIECES if entries >= THREADED else 1
        parts = list(row_chunks(self.computed, 1, -(-self.computed // pieces)))
        share_out(compute if anew else lose, parts, self._threads)
        if anew:
            self._largest = float(gain_M.max())


class ReducedRows:
    """Rows of the kernel between some points, as far as they exceed the current cover.

    The other entries of a row never matter again, and soon they are most of it: about one point in
    t is nearer to a candidate than to all of t items that are labelled or in the batch. If the
    entries exceed `memory` bytes all the same, the longest rows are computed again when needed.
    Old gains are bounds on the current ones, and are computed anew when they are the largest.
    """

    def __init__(
        self, kernel: Kernel, mass_M: np.ndarray, covered_M: np.ndarray, memory: int
    ) -> None:
        self.computed = 0
        self._kernel = kernel
        self._mass_M = mass_M
        self._covered_M = covered_M
        self._room = memory // ENTRY_BYTES
        self._block = min(BLOCK, max(MIN_BLOCK, self._room // kernel.size))
        self._kept: dict[int, Row] = {}
        self._entries = 0
        self._missing_M = np.ones(kernel.size, dtype=bool)
        self._current_M = np.zeros(kernel.size, dtype=bool)

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield all rows in order, some at a time."""
        for rows in row_chunks(self._kernel.size, 1, self._block):
            rows_KM = self._compute(np.arange(rows.start, rows.stop))
            if self._covered_M.any():
                self._keep(np.arange(rows.start, rows.stop), rows_KM)
            yield rows, rows_KM

    def best(self, gain_M: np.ndarray) -> int:
        """Return the point with the largest gain; the lower one on ties."""
        while True:
            j = int(np.argmax(gain_M))
            if self._current_M[j] or gain_M[j] <= MIN_GAIN:
                return j
            near, kernel = self.row(j, gain_M)
            gain = gains_of(kernel, self._mass_M[near], self._covered_M[near])
            gain_M[j] = min(gain_M[j], float(_rounded(gain)))
            self._current_M[j] = True

    def row(self, j: int, gain_M: np.ndarray) -> Row:
        """Return the row of point j, which has the largest bound on its gain."""
        if self._missing_M[j]:
            indices = top_k(np.where(self._missing_M, gain_M, -np.inf), self._block)
            self._keep(indices, self._compute(indices))
        self._kept[j] = _reduced(self._kept[j], self._covered_M)
        return self._kept[j]

    def update(self, changed_S: np.ndarray, before_S: np.ndarray, gain_M: np.ndarray) -> None:
        """Note that all gains are bounds from now on."""
        self._current_M[:] = False

    def _compute(self, indices: np.ndarray) -> np.ndarray:
        self.computed += indices.size
        return self._kernel.rows(take_rows(self._kernel.points_MD, indices))

    def _keep(self, indices: np.ndarray, rows_KM: np.ndarray) -> None:
        """Keep some rows."""
        everywhere = np.arange(self._kernel.size, dtype=np.int32)
        rows = [_reduced((everywhere, row_M), self._covered_M) for row_M in rows_KM]
        self._entries += sum(row[1].size for row in rows)
        if self._entries > self._room:
            self._make_room()
        self._kept.update(zip(indices.tolist(), rows, strict=True))
        self._missing_M[indices] = False

    def _make_room(self) -> None:
        """Reduce all rows to what still counts, and drop the longest ones until half is free."""
        reduced = {j: _reduced(row, self._covered_M) for j, row in self._kept.items()}
        shortest = sorted(reduced, key=lambda j: reduced[j][1].size)
        sizes = np.cumsum([reduced[j][1].size for j in shortest])
        kept = shortest[: int(np.searchsorted(sizes, self._room // 2))]
        self._kept = {j: reduced[j] for j in kept}
        self._entries = sum(row[1].size for row in self._kept.values())
        self._missing_M[:] = True
        self._missing_M[kept] = False


def _reduced(row: Row, covered_M: np.ndarray) -> Row:
    """Return the part of a row that exceeds the cover."""
    near, kernel = row
    above = np.flatnonzero(kernel > covered_M[near])
    return near[above], kernel[above]


def gains_of(rows_KM: np.ndarray, mass_M: np.ndarray, covered_M: np.ndarray) -> np.ndarray:
    """Return sum_i u_i [k(i, j) - c_i]_+ for rows of the kernel."""
    above = rows_KM - covered_M
    # Row by row: BLAS threads that wait for each other take long on a busy machine.
    return vecdot(np.maximum(above, 0.0, out=above), mass_M)


def _rounded(gain_K: np.ndarray) -> np.ndarray:
    """Return gains as multiples of `RESOLUTION`."""
    return np.rint(gain_K / RESOLUTION, dtype=np.float64) * RESOLUTION


class Coverage:
    """Points with masses, and the covered share of each.

    Parameters
    ----------
    kernel : Kernel
        The kernel between the points.
    mass_M : array
        Their masses, as shares of the whole mass.
    labeled_LD : array or None
        Features of the labelled items, in the coordinates of the points.
    memory : int
        Bytes that the kernel may take; if it needs more, some of it is computed more than once.
    """

    def __init__(
        self,
        kernel: Kernel,
        mass_M: np.ndarray,
        labeled_LD: Array | None = None,
        memory: int = KERNEL_BYTES,
    ) -> None:
        self._mass_M = mass_M.astype(np.float32)
        self.covered_M = np.zeros_like(self._mass_M)
        if labeled_LD is not None:
            for rows in row_chunks(labeled_LD.shape[0], 1, MIN_BLOCK):
                nearest_M = kernel.rows(labeled_LD[rows]).max(axis=0)
                np.maximum(self.covered_M, nearest_M, out=self.covered_M)
        self._rows: WholeRows | ReducedRows
        if 4 * kernel.size**2 <= memory:
            self._rows = WholeRows(kernel, self._mass_M, self.covered_M)
        else:
            self._rows = ReducedRows(kernel, self._mass_M, self.covered_M, memory)

    def share(self, covered_M: np.ndarray) -> float:
        """Return the covered share of the mass."""
        return float(np.sum(self._mass_M * covered_M, dtype=np.float64))

    def greedy(
        self,
        budget: int,
        others: Sequence[np.ndarray] = (),
        candidate_M: np.ndarray | None = None,
    ) -> Cover:
        """Return a batch by greedy picks; the lower point on ties.

        The points of `candidate_M` can be picked, all by default. The share that the batches
        `others` would cover is reported.
        """
        before = self.share(self.covered_M)
        gain_M, shares = self._initial_gains(others)
        if candidate_M is not None:
            gain_M[~candidate_M] = -np.inf
        owner_M = np.full(gain_M.size, -1)
        picks: list[int] = []
        gains: list[float] = []
        while len(picks) < budget:
            j = self._rows.best(gain_M)
            if gain_M[j] <= MIN_GAIN:
                break
            changed_S, kernel_S = self._rows.row(j, gain_M)
            before_S = self.covered_M[changed_S]
            self.covered_M[changed_S] = kernel_S
            owner_M[changed_S] = len(picks)
            picks.append(j)
            gains.append(float(gain_M[j]))
            gain_M[j] = -np.inf
            self._rows.update(changed_S, before_S, gain_M)
        idle = budget - len(picks)
        # If everything is covered, the rest of the batch has the largest masses.
        left_M = self._mass_M.astype(np.float64)
        left_M[picks] = -np.inf
        if candidate_M is not None:
            left_M[~candidate_M] -= 1.0
        picks, gains = [*picks, *top_k(left_M, idle).tolist()], [*gains, *[0.0] * idle]
        return Cover(
            indices=np.array(picks),
            gains=np.array(gains),
            weights=self._represented(owner_M, budget),
            before=before,
            after=self.share(self.covered_M),
            others=shares,
            rows=self._rows.computed,
            idle=idle,
        )

    def _initial_gains(self, batches: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the gain of every point, and the share that each batch would cover."""
        gain_M = np.empty(self._mass_M.size)
        covered = [self.covered_M.copy() for _ in batches]
        for rows, rows_KM in self._rows.blocks():
            for part in row_chunks(len(rows_KM), rows_KM[:1].nbytes, CACHE_BYTES):
                gain_M[rows][part] = gains_of(rows_KM[part], self._mass_M, self.covered_M)
            for batch, covered_M in zip(batches, covered, strict=True):
                for j in batch[(rows.start <= batch) & (batch < rows.stop)]:
                    np.maximum(covered_M, rows_KM[j - rows.start], out=covered_M)
        return _rounded(gain_M), np.array([self.share(covered_M) for covered_M in covered])

    def _represented(self, owner_M: np.ndarray, budget: int) -> np.ndarray:
        """Return the mass of the points that each pick covers best, 1 on average."""
        owned_M = owner_M >= 0
        mass = np.bincount(owner_M[owned_M], weights=self._mass_M[owned_M], minlength=budget)
        return mass * (budget / mass.sum()) if mass.sum() > 0 else np.ones(budget)
