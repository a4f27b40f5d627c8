"""`sabal`: cover the uncertain part of the pool, item by item.

A batch that represents every item of a pool also represents its mean.

Let item i of the pool be represented by the item c(i), in the batch or labelled before, that is
nearest to it by the kernel k(i, j) = exp(-||h_i - h_j||^2 / 2 r^2), whose feature map is phi. With
masses u_i and the weights w_j = sum of u_i over the items i that j represents,

    ||sum_i u_i phi_i - sum_j w_j phi_j||^2 <= (sum_i u_i) (sum_i u_i ||phi_i - phi_c(i)||^2)
                                             = 2 (sum_i u_i) (sum_i u_i (1 - max_j k(i, j)))

by the triangle inequality and Cauchy-Schwarz: the uncovered mass bounds the representation term of
Problem 2 over kernel atoms, with weights that need no fit. This is not from the paper. The
bound is that of CRAIG (Mirzasoleiman et al. 2020); covering by a kernel is MaxHerding (Bae et al.
2024), and with uncertainties as masses Uncertainty Herding (Bae et al. 2025).

The covered mass is a submodular function of the batch: greedy picks reach 1 - 1/e of the optimum
(Nemhauser et al. 1978), and an old gain is an upper bound on the current one.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.core.arrays import (
    CACHE_BYTES,
    Array,
    namespace,
    power_of_two,
    row_chunks,
    row_norms_squared,
    take_rows,
    to_backend_of,
    to_float64_numpy,
    to_numpy,
    top_k,
    weighted_row_sum,
)
from sabal.core.checks import check_choice, check_number
from sabal.pools.pool import NO_FEATURES, UNCERTAINTIES, Pool
from sabal.selection import Selection
from sabal.strategies.base import Strategy, make_selection

MIN_RADIUS = 1e-6  # the minimum `radius`; far below 1 an item covers only itself
SAMPLE = 8192  # the size of the sample that represents a larger pool
SAMPLED_PER_PICK = 3  # the minimum size of the sample per item of the batch
NEAREST_OF = 512  # the number of items that the radius is measured on
RANDOM_BATCHES = 5  # the number of random batches in the evidence
ROUNDING = 1e-12  # squared distances below this share of the squared norms are rounding errors
MAX_ROUNDING = 1e-3  # the largest rounding error of a kernel exponent for which float32 is used
BLOCK_BYTES = 3 * 2**20  # bytes of kernel rows computed at a time
MIN_BLOCK = 32  # the minimum number of rows of a matrix product
MAX_KEPT = 256  # a row with more relevant points than this is recomputed when it is needed again
SHORT = 64  # a row with at most this many relevant points is always kept
MIN_GAIN = 1e-7  # a gain below this share of the whole mass is a rounding error

CERTAIN = "the model is certain of every item: all are covered alike"
ALL_EQUAL = (
    "all features are equal, or equal to those of labelled items: items differ in their "
    "uncertainty only"
)


@dataclass(frozen=True, kw_only=True)
class Sabal(Strategy):
    """The default strategy: cover the uncertain part of the pool, item by item.

    Each item is weighted by its uncertainty, and represented by the nearest item that is in the
    batch or labelled. With features alone (no model yet) the batch covers the whole pool.

    Parameters
    ----------
    uncertainty : str, optional
        The weight of an item; "margin" by default, or the predictive variance of a regression.
    radius : float, optional
        The radius of the kernel, as a multiple of the measured resolution; 1 by default.
    """

    name: ClassVar[str] = "sabal"
    needs: ClassVar[tuple[str, ...]] = ("features|probs|log_probs",)
    paper: ClassVar[str] = "Shen et al. 2022, bounded item by item"
    cost: ClassVar[str] = "one pass, then O(m^2 d) for a sample of m (at most 8,192, or 3 b)"
    streams: ClassVar[bool] = True
    losses: ClassVar[tuple[str, ...]] = ("softmax", "sigmoid", "squared")

    uncertainty: str | None = None
    radius: float | None = None

    def __post_init__(self) -> None:
        if self.uncertainty is not None:
            check_choice(self.uncertainty, "uncertainty", UNCERTAINTIES)
        if self.radius is not None:
            check_number(self.radius, "radius", above=MIN_RADIUS)

    def select(self, pool: Pool, budget: int, rng: np.random.Generator) -> Selection:
        """Cover the pool.

        A pool of more than `SAMPLE` items, and `SAMPLED_PER_PICK` per pick, is represented by a
        sample of that size, drawn by uncertainty in one pass over the pool.
        """
        count = max(SAMPLE, SAMPLED_PER_PICK * budget)
        sample = pool.sample(self.uncertainty, count, int(rng.integers(2**63)))
        labeled_LD = None
        if pool.has("features") and pool.has("labeled_features"):
            labeled_LD = pool.labeled_features
        points_MD, labeled_LD, unit = _centred(pool.coordinates_of(sample.rows), labeled_LD)
        reach = resolution(points_MD, labeled_LD, budget, rng)
        mass_M = sample.sizes if sample.sizes.any() else np.ones(sample.sizes.size)
        radius = self.radius or 1.0
        points_MD, labeled_LD = _precise(points_MD, labeled_LD, radius * reach or 1.0)
        coverage = Coverage(points_MD, mass_M, labeled_LD, radius * reach or 1.0)
        size = mass_M.size
        batches = [rng.choice(size, size=budget, replace=False) for _ in range(RANDOM_BATCHES)]
        cover = coverage.greedy(budget, others=batches)
        evidence = {
            "atoms": "coverage",
            "candidates": int(size),
            "labeled": 0 if labeled_LD is None else int(labeled_LD.shape[0]),
            "radius": unit * radius * reach,
            "objective": 1.0 - cover.after,
            "objective_before": 1.0 - cover.before,
            "random_batch": {"objective": 1.0 - float(np.mean(cover.others))},
            "zero_weights": int(np.sum(cover.weights == 0)),
            "passes": 1,
            "kernel_rows": cover.rows,
        }
        return make_selection(
            self,
            pool,
            sample.rows[cover.indices],
            cover.gains,
            weights=cover.weights,
            evidence=evidence,
            warnings=_warnings(pool, reach, cover, budget),
        )


def _warnings(pool: Pool, reach: float, cover: Cover, budget: int) -> tuple[str, ...]:
    found = [] if pool.has("features") else [NO_FEATURES]
    if pool.has("probs") and pool.model_is_certain():
        found.append(CERTAIN)
    if not reach:
        found.append(ALL_EQUAL)
    if cover.idle:
        found.append(
            f"{cover.idle} of {budget} items cover nothing that the others do not: they are the "
            "most uncertain ones left"
        )
    return tuple(found)


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


class Coverage:
    """Points with masses, and the covered share of each.

    Parameters
    ----------
    points_MD : array
        Centred features (matrix products lose precision with an offset).
    mass_M : array
        Their masses; not all zero.
    labeled_LD : array or None
        Features of the labelled items, with the same offset subtracted.
    radius : float
        r, the radius of the kernel.
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
        self.block = min(mass_M.size, max(MIN_BLOCK, BLOCK_BYTES // row_bytes))
        self.covered_M = np.zeros_like(self._mass_M)
        if labeled_LD is not None:
            for rows in row_chunks(labeled_LD.shape[0], row_bytes, BLOCK_BYTES):
                self.covered_M = np.maximum(self.covered_M, self._kernel(labeled_LD[rows]).max(0))

    @property
    def share(self) -> float:
        """The covered share of the mass."""
        return float(self._mass_M @ self.covered_M)

    def share_with(self, indices: np.ndarray) -> float:
        """Return the share that would be covered with further points."""
        covered_M = self.covered_M
        for start in range(0, indices.size, self.block):
            part = indices[start : start + self.block]
            covered_M = np.maximum(covered_M, self.rows(part).max(axis=0))
        return float(self._mass_M @ covered_M)

    def greedy(self, budget: int, others: Sequence[np.ndarray] = ()) -> Cover:
        """Return a batch by greedy picks; the lower point on ties.

        The share that the batches `others` would cover is reported. A heap has a bound on every
        gain. Its first point is picked if the gain is current; otherwise the gain is computed again
        (lazy greedy: Minoux 1978).
        """
        before = self.share
        bound_M = np.empty(self._mass_M.size)
        kept = _KeptRows(self, bound_M)
        shares = self._initial_gains(bound_M, kept, others)
        heap = [(-gain, j, -1) for j, gain in enumerate(bound_M.tolist())]
        heapq.heapify(heap)
        owner_M = np.full(bound_M.size, -1)
        picks: list[int] = []
        gains: list[float] = []
        while heap and len(picks) < budget and -heap[0][0] > MIN_GAIN:
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
        # If everything is covered, the rest of the batch has the largest masses.
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

    def _initial_gains(
        self, gain_M: np.ndarray, kept: _KeptRows, batches: Sequence[np.ndarray]
    ) -> np.ndarray:
        """Compute the gain of every point, and return the share that each batch would cover.

        Short rows, which are common if many items are labelled, are kept.
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
        """Return the mass of the points that each pick covers best, 1 on average."""
        owned_M = owner_M >= 0
        mass = np.bincount(owner_M[owned_M], weights=self._mass_M[owned_M], minlength=budget)
        return mass * (budget / mass.sum()) if mass.sum() > 0 else np.ones(budget)

    def _gains(self, rows_KM: np.ndarray) -> np.ndarray:
        """Return sum_i u_i [k(i, j) - c_i]_+ for the kernel rows of some points j."""
        gains = np.empty(len(rows_KM))
        for rows in row_chunks(len(rows_KM), rows_KM[:1].nbytes, CACHE_BYTES):
            gains[rows] = np.maximum(rows_KM[rows] - self.covered_M, 0.0) @ self._mass_M
        return gains

    def rows(self, indices: np.ndarray) -> np.ndarray:
        """Return the kernel between some points and all."""
        return self._kernel(take_rows(self._points_MD, indices))

    def _kernel(self, others_KD: Array) -> np.ndarray:
        """Return the kernel between other points and all."""
        xp = namespace(others_KD, self._points_MD)
        exponents_KM = (others_KD * self._scale) @ xp.matrix_transpose(self._points_MD)
        exponents_KM -= _half_squares(others_KD)[:, None] * self._scale
        exponents_KM -= self._halves_M
        kernel_KM = to_numpy(exponents_KM)
        np.exp(kernel_KM, out=kernel_KM)
        # Rounding may make a distance negative.
        return np.minimum(kernel_KM, 1.0, out=kernel_KM)


class _KeptRows:
    """Kernel rows, each reduced to the points where it exceeds the current cover.

    The other points of a row never matter again, and soon they are most of it: about one point in t
    is nearer to a candidate than to all of t items that are labelled or in the batch.
    """

    def __init__(self, coverage: Coverage, bound_M: np.ndarray) -> None:
        self._coverage, self._bound_M = coverage, bound_M
        self._rows: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._latest: list[int] = []
        self._missing_M = np.ones(bound_M.size, dtype=bool)
        self.computed = 0

    def row(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the relevant points of the row of j, which has the largest bound, and values."""
        if self._missing_M[j]:
            self._compute()
        near, kernel = self._rows[j]
        above = kernel > self._coverage.covered_M[near]
        self._rows[j] = near[above], kernel[above]
        return self._rows[j]

    def _compute(self) -> None:
        """Compute a block of missing rows, largest bounds first, and drop long rows."""
        # Long rows of earlier blocks have been dropped already.
        long = [j for j in self._latest if self._rows[j][0].size > MAX_KEPT]
        for j in long:
            del self._rows[j]
        self._missing_M[long] = True
        bound_M = np.where(self._missing_M, self._bound_M, -np.inf)
        wanted = top_k(bound_M, self._coverage.block)
        wanted = wanted[bound_M[wanted] > -np.inf]
        self.keep(wanted, self._coverage.rows(wanted), bound_M.size)
        self._latest = wanted.tolist()
        self.computed += wanted.size

    def keep(self, indices: np.ndarray, rows_KM: np.ndarray, limit: int) -> None:
        """Keep the rows with at most `limit` relevant points."""
        above_KM = rows_KM > self._coverage.covered_M
        for k in np.flatnonzero(above_KM.sum(axis=1) <= limit):
            near = np.flatnonzero(above_KM[k]).astype(np.int32)
            self._rows[int(indices[k])] = near, rows_KM[k, near]
            self._missing_M[indices[k]] = False


def _half_squares(points_MD: Array) -> Array:
    return to_backend_of(row_norms_squared(points_MD) / 2.0, points_MD)


def resolution(
    points_MD: Array, labeled_LD: Array | None, budget: int, rng: np.random.Generator
) -> float:
    """Return the distance that a batch of this size can resolve; 0 if all items are equal.

    This is the median distance of an item to the nearest of the labelled ones and `budget` random
    ones. It decreases with the number of labels, as each represents a smaller neighbourhood.
    """
    size = points_MD.shape[0]
    order = rng.permutation(size)
    centres = order[: max(1, min(budget, size // 2))]
    asked_QD = to_float64_numpy(take_rows(points_MD, order[centres.size :][:NEAREST_OF]))
    if not len(asked_QD):
        return 0.0
    squares_Q = _nearest_squares(asked_QD, points_MD, centres)
    if labeled_LD is not None:
        all_rows = np.arange(labeled_LD.shape[0])
        squares_Q = np.minimum(squares_Q, _nearest_squares(asked_QD, labeled_LD, all_rows))
    # Distances below the rounding error are zero.
    apart_Q = squares_Q > ROUNDING * np.mean(row_norms_squared(asked_QD))
    return float(np.sqrt(np.median(squares_Q[apart_Q]))) if apart_Q.any() else 0.0


def _nearest_squares(asked_QD: np.ndarray, others_ED: Array, rows_R: np.ndarray) -> np.ndarray:
    """Return the squared distance of each point to the nearest of some rows of `others_ED`."""
    nearest_Q = np.full(len(asked_QD), np.inf)
    for part in row_chunks(rows_R.size, 8 * len(asked_QD), CACHE_BYTES):
        part_ED = to_float64_numpy(take_rows(others_ED, rows_R[part]))
        squares_QE = row_norms_squared(part_ED) - 2.0 * asked_QD @ part_ED.T
        nearest_Q = np.minimum(nearest_Q, squares_QE.min(axis=1))
    return nearest_Q + row_norms_squared(asked_QD)


def _centred(features_MD: Array, labeled_LD: Array | None) -> tuple[Array, Array | None, float]:
    """Return both arrays, centred by the mean of the first and scaled, and the unit.

    Matrix products lose precision with an offset, and overflow for very large numbers.
    """
    unit = power_of_two(features_MD, labeled_LD)
    # The sample is a copy, so it can be changed in place.
    points_MD = features_MD
    points_MD /= unit
    size = points_MD.shape[0]
    mean_D = to_backend_of(weighted_row_sum(np.full(size, 1.0 / size), points_MD), points_MD)
    points_MD -= mean_D
    if labeled_LD is not None:
        xp = namespace(points_MD, labeled_LD)
        labeled_LD = xp.astype(labeled_LD / unit, points_MD.dtype, copy=False) - mean_D
    return points_MD, labeled_LD, unit


def _precise(
    points_MD: Array, labeled_LD: Array | None, reach: float
) -> tuple[Array, Array | None]:
    """Return both arrays in double precision if `reach` requires it."""
    xp = namespace(points_MD)
    largest = max(
        float(np.max(row_norms_squared(each)))
        for each in (points_MD, labeled_LD)
        if each is not None and each.shape[0]
    )
    if float(xp.finfo(points_MD.dtype).eps) * largest <= MAX_ROUNDING * reach**2:
        return points_MD, labeled_LD
    points_MD = xp.astype(points_MD, xp.float64, copy=False)
    if labeled_LD is not None:
        labeled_LD = xp.astype(labeled_LD, xp.float64, copy=False)
    return points_MD, labeled_LD
