"""`sabal`: cover the uncertain part of the pool, item by item.

A batch that represents every item of a pool also represents its mean.

Let item i of the pool be represented by the item c(i), in the batch or labelled before, that is
nearest to it by the kernel k(i, j) = exp(-||x_i - x_j||^2 / 2 r^2), whose feature map is phi. With
masses u_i and the weights w_j = sum of u_i over the items i that j represents,

    ||sum_i u_i phi_i - sum_j w_j phi_j||^2 <= (sum_i u_i) (sum_i u_i ||phi_i - phi_c(i)||^2)
                                             = 2 (sum_i u_i) (sum_i u_i (1 - max_j k(i, j)))

by the triangle inequality and Cauchy-Schwarz: the uncovered mass bounds the representation term of
Problem 2 over kernel atoms, with weights that need no fit. This is not from the paper. The
bound is that of CRAIG (Mirzasoleiman et al. 2020); covering by a kernel is MaxHerding (Bae et al.
2024), and with uncertainties as masses Uncertainty Herding (Bae et al. 2025).

This file has the rule: the masses, the coordinates and the radius. The kernel and the greedy picks
are in `sabal.strategies.greedy_cover`.
"""

from __future__ import annotations

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
    weighted_row_sum,
    within_reach,
)
from sabal.core.checks import check_choice, check_number
from sabal.pools.pool import NO_FEATURES, UNCERTAINTIES, Pool
from sabal.selection import Selection
from sabal.strategies.base import Strategy, make_selection
from sabal.strategies.greedy_cover import Cover, Coverage, Kernel, in_units_of, kernel_bytes

MIN_CANDIDATES = 3  # the minimum number of candidates per item of the batch
MIN_RADIUS = 1e-6  # the minimum `radius`; far below 1 an item covers only itself
RADIUS = 0.5**0.5  # the default `radius`: at the resolution, k = 1 / e
METRICS = ("sphere", "euclidean")
SAMPLE = 8192  # the size of the sample that represents a larger pool
SMALL_SAMPLE = 6144  # the same for a batch of a few items, plus `ADDED_PER_PICK` for each
ADDED_PER_PICK = 4
SAMPLED_PER_PICK = 3  # the minimum size of the sample per item of the batch
NEAREST_OF = 512  # the number of items that the radius is measured on
RANDOM_BATCHES = 5  # the number of random batches in the evidence
ROUNDING = 1e-12  # squared distances below this share of the squared norms are rounding errors

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

    The batch is chosen from the most uncertain items. With m items labelled, a batch of b makes
    b / (b + m) of all representatives, and this share of the pool are candidates. So the choice
    tends from coverage to uncertainty as labels come in.

    Items are compared by the direction of their features from the mean of the pool, and by their
    length only as far as it is not much larger than the lengths differ:

        x_j = (h_j - mean, c) / ||(h_j - mean, c)||,  c the interquartile range of ||h_j - mean||

    With many features lengths hardly differ, and x_j is nearly a direction; with a single feature
    it is an order of the items in which outliers are near each other.

    Parameters
    ----------
    uncertainty : str, optional
        The weight of an item; "margin" by default, or the predictive variance of a regression.
    radius : float, optional
        The radius of the kernel, as a multiple of the measured resolution; sqrt(1/2) by default.
    metric : {"sphere", "euclidean"}
        Whether items are compared by x_j, or by h_j as they are.
    share : float, optional
        The share of the pool that can be chosen, most uncertain items first; b / (b + m) by
        default, where m is the number of labelled items, and 1 for all.
    """

    name: ClassVar[str] = "sabal"
    needs: ClassVar[tuple[str, ...]] = ("features|probs|log_probs",)
    paper: ClassVar[str] = "Shen et al. 2022, bounded item by item"
    cost: ClassVar[str] = "one pass, then O(m^2 d) for a sample of m (at most 8,192, or 3 b)"
    streams: ClassVar[bool] = True
    losses: ClassVar[tuple[str, ...]] = ("softmax", "sigmoid", "squared")

    uncertainty: str | None = None
    radius: float | None = None
    metric: str = "sphere"
    share: float | None = None

    def __post_init__(self) -> None:
        if self.uncertainty is not None:
            check_choice(self.uncertainty, "uncertainty", UNCERTAINTIES)
        if self.radius is not None:
            check_number(self.radius, "radius", above=MIN_RADIUS)
        check_choice(self.metric, "metric", METRICS)
        if self.share is not None:
            check_number(self.share, "share", above=0.0, maximum=1.0)

    def select(self, pool: Pool, budget: int, rng: np.random.Generator) -> Selection:
        """Cover the pool.

        A larger pool is represented by a sample, drawn by uncertainty in one pass over the pool.
        """
        count = sample_size(budget)
        sample = pool.sample(self.uncertainty, count, int(rng.integers(2**63)))
        labeled_LD = None
        if pool.has("features") and pool.has("labeled_features"):
            labeled_LD = pool.labeled_features
        points_MD, labeled_LD, unit = centred(pool.coordinates_of(sample.rows), labeled_LD)
        pool.release("features")
        if self.metric == "sphere":
            points_MD, labeled_LD, unit = *on_sphere(points_MD, labeled_LD), 1.0
        reach = resolution(points_MD, labeled_LD, budget, rng)
        radius = (self.radius or RADIUS) * reach
        points_MD, labeled_LD = in_units_of(radius or 1.0, points_MD, labeled_LD)
        mass_M = sample.sizes if sample.sizes.any() else np.ones(sample.sizes.size)
        mass_M = mass_M / mass_M.sum()
        coverage = Coverage(Kernel(points_MD), mass_M, labeled_LD, kernel_bytes(pool))
        size = mass_M.size
        batches = [rng.choice(size, size=budget, replace=False) for _ in range(RANDOM_BATCHES)]
        labeled = 0 if labeled_LD is None else int(labeled_LD.shape[0])
        share = self.share or budget / (budget + labeled)
        candidate_M = np.ones(size, dtype=bool)
        if share < 1.0:
            candidate_M = sample.largest(share * pool.size, MIN_CANDIDATES * budget)
        cover = coverage.greedy(budget, others=batches, candidate_M=candidate_M)
        evidence = {
            "atoms": "coverage",
            "candidates": int(candidate_M.sum()),
            "labeled": labeled,
            "radius": unit * radius,
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


def sample_size(budget: int) -> int:
    """Return how many items represent a larger pool."""
    few = SMALL_SAMPLE + ADDED_PER_PICK * budget
    return max(min(SAMPLE, few), SAMPLED_PER_PICK * budget)


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


def centred(features_MD: Array, labeled_LD: Array | None) -> tuple[Array, Array | None, float]:
    """Return both arrays, centred by the mean of the first and scaled, and the unit.

    Matrix products lose precision with an offset, and overflow for very large numbers. Labelled
    items far from the pool cover nothing, however far they are.
    """
    if labeled_LD is not None:
        labeled_LD = within_reach(labeled_LD, features_MD)
    unit = power_of_two(features_MD)
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


def on_sphere(points_MD: Array, labeled_LD: Array | None) -> tuple[Array, Array | None]:
    """Return (x, c) / ||(x, c)|| of centred points and labelled ones, centred again.

    c is the interquartile range of the lengths of the points; if most have one length, the standard
    deviation. Points that are all of one length have c = 0, and those at the origin stay there.
    """
    lengths_M = np.sqrt(row_norms_squared(points_MD))
    low, high = np.quantile(lengths_M, [0.25, 0.75])
    constant = float(high - low or lengths_M.std())
    points_MD = _unit_rows(points_MD, constant)
    size = points_MD.shape[0]
    mean_D = to_backend_of(weighted_row_sum(np.full(size, 1.0 / size), points_MD), points_MD)
    points_MD -= mean_D
    if labeled_LD is not None:
        labeled_LD = _unit_rows(labeled_LD, constant) - mean_D
    return points_MD, labeled_LD


def _unit_rows(points_MD: Array, constant: float) -> Array:
    """Return points with a further, constant coordinate, scaled to unit length.

    The points are copies, and are changed in place.
    """
    lengths_M = np.sqrt(row_norms_squared(points_MD) + constant**2)
    inverse_M = to_backend_of(1.0 / np.where(lengths_M > 0, lengths_M, 1.0), points_MD)
    points_MD *= inverse_M[:, None]
    return namespace(points_MD).concat([points_MD, constant * inverse_M[:, None]], axis=1)
