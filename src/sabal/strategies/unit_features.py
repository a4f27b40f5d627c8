"""Features of unit length, on which herding, ProbCover and DropQuery compare items."""

from __future__ import annotations

import numpy as np

from sabal.core.arrays import (
    Array,
    namespace,
    power_of_two,
    row_norms_squared,
    to_backend_of,
    weighted_row_sum,
)
from sabal.pools.pool import Pool

CANDIDATES = 35_000
"""The number of items that represent a larger pool, as in the authors' code of UHerding."""


def uniform_rows(pool: Pool, candidates: int, budget: int, rng: np.random.Generator) -> np.ndarray:
    """Return all rows of a pool, or a sorted uniform sample of `candidates` (at least `budget`)."""
    count = max(candidates, budget)
    if pool.size <= count:
        return np.arange(pool.size)
    return np.sort(rng.choice(pool.size, size=count, replace=False))


def unit_features(pool: Pool, rows: np.ndarray) -> tuple[Array, Array | None]:
    """Return h / ||h|| of some items and of the labelled ones (None without any), centred.

    Rows of zeros stay zeros. The mean is subtracted from both, as it does not change distances, and
    matrix products lose precision with an offset.
    """
    features_MD = pool.coordinates_of(rows)
    points_MD = unit_rows(features_MD)
    size = points_MD.shape[0]
    mean_D = to_backend_of(weighted_row_sum(np.full(size, 1.0 / size), points_MD), points_MD)
    if not pool.has("labeled_features"):
        return points_MD - mean_D, None
    labeled_LD = pool.labeled_features
    xp = namespace(points_MD, labeled_LD)
    labeled_LD = unit_rows(xp.astype(labeled_LD, points_MD.dtype, copy=False))
    return points_MD - mean_D, labeled_LD - mean_D


def unit_rows(features_MD: Array) -> Array:
    """Return h / ||h||; rows of zeros stay zeros."""
    scaled_MD = features_MD / power_of_two(features_MD)
    norms_M = np.sqrt(row_norms_squared(scaled_MD))
    inverse_M = 1.0 / np.where(norms_M > 0, norms_M, 1.0)
    return scaled_MD * to_backend_of(inverse_M, scaled_MD)[:, None]
