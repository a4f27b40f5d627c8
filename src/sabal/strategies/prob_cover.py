"""ProbCover: cover as many items as possible by balls that lie within one cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.core.arrays import Array, row_chunks, row_norms_squared, to_float64_numpy, to_numpy
from sabal.core.checks import check_number, check_whole
from sabal.errors import InputError
from sabal.pools.pool import Pool
from sabal.selection import Selection
from sabal.strategies.base import Strategy, make_selection
from sabal.strategies.clustering import k_means
from sabal.strategies.greedy_cover import Coverage, Kernel, in_units_of, kernel_bytes
from sabal.strategies.unit_features import CANDIDATES, uniform_rows, unit_features

MAX_DELTA = 4.0  # more than any distance between points of unit length
MIN_DELTA = 1e-6  # less is within the rounding error of such distances
BALLS = 4096  # the number of items around which purity is measured


@dataclass(frozen=True, kw_only=True)
class ProbCover(Strategy):
    """Cover as many items as possible by balls of radius delta (ProbCover; Yehuda et al. 2022).

    Features are scaled to unit length. Each pick is the item whose ball {x': ||x - x'|| < delta}
    contains the most items that no labelled or picked item covers (Algorithm 1 of the paper). Once
    all are covered, the rest of the batch is drawn uniformly.

    A ball is pure if all its items have the label of its centre. As in the paper, delta is the
    largest radius at which 95 % of the balls are pure, where the labels are the clusters of k-means
    with as many clusters as classes. The ball of an item is pure up to the distance of the
    nearest item of another cluster, so delta is a quantile of these distances.

    Parameters
    ----------
    delta : float, optional
        The radius of the balls; by default it is chosen by their purity.
    purity : float
        The share of the balls that are pure.
    classes : int, optional
        The number of classes; by default that of the prediction.
    candidates : int
        A larger pool is represented by a uniform sample of this size.

    Notes
    -----
    Pool and labelled items are clustered together. Purity is measured on the balls around at most
    4,096 random items. The paper determines delta once for a data set; here it is determined for
    every batch, of the same items.

    References
    ----------
    O. Yehuda, A. Dekel, G. Hacohen and D. Weinshall, "Active Learning Through a Covering Lens",
    NeurIPS 2022.
    """

    name: ClassVar[str] = "prob-cover"
    needs: ClassVar[tuple[str, ...]] = ("features", "probs")
    paper: ClassVar[str] = "Yehuda et al. 2022"
    cost: ClassVar[str] = "k-means, and O(m^2 d) for a sample of m (at most 35,000)"
    streams: ClassVar[bool] = True

    delta: float | None = None
    purity: float = 0.95
    classes: int | None = None
    candidates: int = CANDIDATES

    def __post_init__(self) -> None:
        if self.delta is not None:
            check_number(self.delta, "delta", above=MIN_DELTA, maximum=MAX_DELTA)
        check_number(self.purity, "purity", above=0.0, maximum=1.0)
        if self.classes is not None:
            check_whole(self.classes, "classes")
        check_whole(self.candidates, "candidates")

    def require(self, pool: Pool) -> None:
        """Raise if features are missing, or what the number of classes can be taken from."""
        if pool.has("probs") or not pool.has("features"):
            super().require(pool)
        elif self.classes is None and self.delta is None:
            raise InputError(
                f"probs (or logits) for the strategy {self.name!r}, or its option `classes`",
                " and ".join(pool.given()),
                "pass classes=, the number of classes",
            )

    def select(self, pool: Pool, budget: int, rng: np.random.Generator) -> Selection:
        """Return the picks in order; scores are the numbers of items that each newly covers."""
        rows = uniform_rows(pool, self.candidates, budget, rng)
        points_MD, labeled_LD = unit_features(pool, rows)
        delta = self.delta
        if delta is None:
            classes = self.classes or pool.classes
            delta = pure_radius(points_MD, labeled_LD, classes, self.purity, rng)
        points_MD, labeled_LD = in_units_of(delta, points_MD, labeled_LD)
        # With a power of two sums are exact, and equal gains are ties.
        unit = float(2 ** int(rows.size).bit_length())
        mass_M = np.full(rows.size, 1.0 / unit)
        coverage = Coverage(Balls(points_MD), mass_M, labeled_LD, kernel_bytes(pool))
        cover = coverage.greedy(budget)
        chosen, covering = rows[cover.indices], budget - cover.idle
        warnings: tuple[str, ...] = ()
        if cover.idle:
            free = np.setdiff1d(rows, chosen[:covering])
            chosen[covering:] = rng.choice(free, size=cover.idle, replace=False)
            why = "the balls of the others cover the pool"
            warnings = (f"{cover.idle} of {budget} items were drawn uniformly: {why}",)
        evidence = {
            "candidates": int(rows.size),
            "labeled": 0 if labeled_LD is None else int(labeled_LD.shape[0]),
            "delta": delta,
            "coverage_before": cover.before * unit / rows.size,
            "coverage": cover.after * unit / rows.size,
        }
        return make_selection(
            self, pool, chosen, cover.gains * unit, evidence=evidence, warnings=warnings
        )


class Balls(Kernel):
    """The top-hat kernel, 1 within a distance of 1 and 0 elsewhere."""

    def rows(self, others_KD: Array, first: int = 0) -> np.ndarray:
        """Return whether ||x - x'|| < 1, from exp(-||x - x'||^2 / 2)."""
        return (super().rows(others_KD, first) > np.exp(-0.5)).astype(np.float32)


def pure_radius(
    points_MD: Array,
    labeled_LD: Array | None,
    classes: int,
    purity: float,
    rng: np.random.Generator,
) -> float:
    """Return the largest radius at which a share `purity` of the balls lie within one cluster."""
    parts = [to_numpy(part) for part in (points_MD, labeled_LD) if part is not None]
    points_AD = np.concatenate(parts)
    cluster_A = k_means(points_AD, min(classes, len(points_AD)), rng)
    centres = np.arange(len(points_AD))
    if centres.size > BALLS:
        centres = np.sort(rng.choice(centres.size, size=BALLS, replace=False))
    nearest_Q = np.sort(foreign_distances(points_AD, cluster_A, centres))
    # At radius delta, the impure balls are those whose distance is less than delta.
    allowed = int((1.0 - purity) * centres.size + 1e-9)
    largest = nearest_Q[min(allowed, centres.size - 1)]
    # Any radius above the next smaller distance is as pure: halfway, rounding errors do not matter.
    below_Q = nearest_Q[nearest_Q < largest * (1.0 - 1e-6)]
    radius = (largest + below_Q[-1]) / 2.0 if below_Q.size else largest * (1.0 - 1e-6)
    return float(min(max(radius, MIN_DELTA), MAX_DELTA))


def foreign_distances(
    points_AD: np.ndarray, cluster_A: np.ndarray, centres: np.ndarray
) -> np.ndarray:
    """Return the distance of some points to the nearest of another cluster; `MAX_DELTA` if none."""
    points_AD = to_float64_numpy(points_AD)
    squares_A = row_norms_squared(points_AD)
    nearest_Q = np.empty(centres.size)
    for part in row_chunks(centres.size, 8 * len(points_AD)):
        rows = centres[part]
        squared_KA = squares_A - 2.0 * points_AD[rows] @ points_AD.T
        squared_KA[cluster_A[rows, None] == cluster_A] = np.inf
        nearest_Q[part] = squared_KA.min(axis=1) + squares_A[rows]
    return np.minimum(np.sqrt(np.maximum(nearest_Q, 0.0)), MAX_DELTA)
