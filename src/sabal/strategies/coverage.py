"""`sabal`: the undecided part of the pool, covered item by item.

A batch that stands in for a pool item by item stands in for it in the mean, too.

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
)
from sabal.core.checks import check_choice, check_number
from sabal.pools.pool import Pool
from sabal.selection import Selection
from sabal.sparse.operators import Dense
from sabal.strategies.base import Strategy, make_selection

UNCERTAINTIES = ("variance", "margin", "entropy", "mutual-information", "predictive-variance")

MIN_RADIUS = 1e-6
"""As a multiple of the measured one: far below it, an item covers nothing but itself."""

SAMPLE = 8192
"""So many items stand for a larger pool: enough for what a batch can tell apart."""

SAMPLED_PER_PICK = 3
"""At least so many for every item of the batch."""

NEAREST_OF = 512
"""How many items the radius is taken over."""

RANDOM_BATCHES = 5
"""How many random batches the evidence compares with."""

ROUNDING = 1e-12
"""Squared distances below this share of the squared norms are rounding."""

MAX_ROUNDING = 1e-3
"""Of an exponent of the kernel: beyond, single precision would decide what is near."""

BLOCK_BYTES = 3 * 2**20
"""Rows of the kernel that are computed at a time."""

MIN_BLOCK = 32
"""Rows below which a product of matrices does not pay."""

MAX_KEPT = 256
"""A row that counts at more points than this is computed anew when it is needed again."""

SHORT = 64
"""A row that counts at so few points is kept in any case."""

NOTHING = 1e-7
"""A gain below this share of the whole mass is rounding."""

NO_FEATURES = "there are no features: items are told apart by their predictions alone"
CERTAIN = "the model is certain of every item: all are covered alike"
ALL_EQUAL = (
    "all features are equal, or equal to those of labelled items: items differ in their "
    "uncertainty only"
)


@dataclass(frozen=True, kw_only=True)
class Sabal(Strategy):
    """The default: cover the undecided part of the pool, item by item.

    Each item counts by its uncertainty, and is represented by the nearest item of the batch or of
    what is labelled. With features alone (no model yet) the batch covers the whole pool.

    Parameters
    ----------
    uncertainty : str, optional
        What makes an item count; by default "margin", or the predictive variance of a regression.
    radius : float, optional
        The reach of an item, as a multiple of what the labels to come can tell apart (1).
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

        A pool of more than `SAMPLE` items, and `SAMPLED_PER_PICK` for every pick, is represented by
        a sample of these, drawn by uncertainty: one pass over the pool, and then none.
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
        What each pick covered that was not covered before, as a share of the whole mass.
    weights : array
        The mass that each of them represents, 1 on average.
    before, after : float
        The covered share without and with the batch.
    others : array
        The covered share with each of some other batches in its place.
    rows : int
        How many rows of the kernel were computed.
    idle : int
        How many of the picks cover nothing more, for want of items that would.
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

    Parameters
    ----------
    points_MD : array
        Features, centred (a product of matrices loses digits to an offset).
    mass_M : array
        What each counts; not all zero.
    labeled_LD : array or None
        Features of what is labelled, with the same offset taken off.
    radius : float
        r, the distance over which one item speaks for another.
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
        """Return the share that would be covered with some more points."""
        covered_M = self.covered_M
        for start in range(0, indices.size, self.block):
            part = indices[start : start + self.block]
            covered_M = np.maximum(covered_M, self.rows(part).max(axis=0))
        return float(self._mass_M @ covered_M)

    def greedy(self, budget: int, others: Sequence[np.ndarray] = ()) -> Cover:
        """Return the batch that takes the best point at every pick; of equal ones, the lower.

        `others` are batches whose share in its place is reported. A heap holds a bound on every
        gain. The first in it is picked if its gain is up to date; if not, it is computed again
        (lazy greedy: Minoux 1978).
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
        """Fill in the gain of every point, and return the share that each batch would cover.

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
        """Return where the row of point j, of the largest bound, counts, and its values there."""
        if self._missing_M[j]:
            self._compute()
        near, kernel = self._rows[j]
        above = kernel > self._coverage.covered_M[near]
        self._rows[j] = near[above], kernel[above]
        return self._rows[j]

    def _compute(self) -> None:
        """Compute a block of missing rows, largest bounds first, in place of those too long."""
        # Longer ones of before are gone already.
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
        """Keep those of the rows that count at no more than `limit` points."""
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
    """Return how finely the labels to come can tell a pool apart; 0 if all items are equal.

    This is the median distance of an item to the nearest of the labelled ones and `budget` random
    ones. It shrinks as labels come in: each speaks for a smaller neighbourhood than the one before.
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
    # Nearer than rounding is equal.
    apart_Q = squares_Q > ROUNDING * np.mean(row_norms_squared(asked_QD))
    return float(np.sqrt(np.median(squares_Q[apart_Q]))) if apart_Q.any() else 0.0


def _nearest_squares(asked_QD: np.ndarray, others_ED: Array, rows_R: np.ndarray) -> np.ndarray:
    """Return the squared distance of each point to the nearest of some rows of the others."""
    nearest_Q = np.full(len(asked_QD), np.inf)
    for part in row_chunks(rows_R.size, 8 * len(asked_QD), CACHE_BYTES):
        part_ED = to_float64_numpy(take_rows(others_ED, rows_R[part]))
        squares_QE = row_norms_squared(part_ED) - 2.0 * asked_QD @ part_ED.T
        nearest_Q = np.minimum(nearest_Q, squares_QE.min(axis=1))
    return nearest_Q + row_norms_squared(asked_QD)


def _centred(features_MD: Array, labeled_LD: Array | None) -> tuple[Array, Array | None, float]:
    """Return both less the mean of the first, and the unit that they are divided by.

    A product of matrices loses digits to an offset, and overflows for very large numbers.
    """
    unit = power_of_two(features_MD, labeled_LD)
    # The sample is a copy of ours.
    points_MD = features_MD
    points_MD /= unit
    size = points_MD.shape[0]
    mean_D = to_backend_of(Dense(points_MD).combine(np.full(size, 1.0 / size)), points_MD)
    points_MD -= mean_D
    if labeled_LD is not None:
        xp = namespace(points_MD, labeled_LD)
        labeled_LD = xp.astype(labeled_LD / unit, points_MD.dtype, copy=False) - mean_D
    return points_MD, labeled_LD, unit


def _precise(
    points_MD: Array, labeled_LD: Array | None, reach: float
) -> tuple[Array, Array | None]:
    """Return both in double precision, if single precision is too coarse for `reach`."""
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
