"""What random-feature atoms share across a pool: drawn once, wherever the items are.

The draws need a few facts about all items (their mean, some distances). `PoolFacts` is who tells
them: arrays in memory or on disk here, a cluster elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sabal.core.arrays import Array
from sabal.core.checks import check_square
from sabal.sparse.operators import row_norms_squared

MOST_ROWS = 1024
"""How many items the median distance, and the centre, are taken over."""


ROUNDED = (
    "features lie so far from zero that rounding makes up to {:.0%} of the distance between items: "
    "it takes part in the choice; subtract their mean before they are made float32"
)
ROUNDED_SHARE = 0.01
"""Of the distance between items: less of it decides next to nothing."""


class PoolFacts(Protocol):
    """What has to be known of the features of all items."""

    @property
    def size(self) -> int:
        """How many items there are."""

    @property
    def classes(self) -> int:
        """How many classes (labels, outputs) there are."""

    def all_sure(self) -> bool:
        """Whether the model is sure of every item (True as well where there is no model)."""

    def feature_rows(self, indices: np.ndarray) -> np.ndarray:
        """The features of some items, in float64."""

    def feature_norm(self) -> float:
        """The mean of ||h_j||^2."""


@dataclass(frozen=True)
class CurvatureDraws:
    """Gaussian u, u' (classes) and s, s' (features); `unit` is the features' root mean square."""

    u_CM: np.ndarray
    v_CM: np.ndarray
    s_DM: np.ndarray
    t_DM: np.ndarray
    unit: float


@dataclass(frozen=True)
class KernelDraws:
    """Frequencies, and what the features are centred and divided by before.

    everyone: whether all items count alike, as there is no uncertainty to weigh them by.
    """

    omega_DF: np.ndarray
    centre_D: np.ndarray
    bandwidth: float
    everyone: bool
    warnings: tuple[str, ...] = ()


def draw_curvature(
    facts: PoolFacts, width: int, bias: bool, rng: np.random.Generator
) -> CurvatureDraws:
    """The draws of `curvature_atoms`."""
    unit = float(np.sqrt(check_square(facts.feature_norm(), "features") + bias)) or 1.0
    dimensions = facts.feature_rows(np.arange(1)).shape[1]
    u_CM, v_CM = rng.standard_normal((2, facts.classes, width))
    s_DM, t_DM = rng.standard_normal((2, dimensions + bias, width))
    return CurvatureDraws(u_CM, v_CM, s_DM, t_DM, unit)


def draw_kernel(facts: PoolFacts, width: int, rng: np.random.Generator) -> KernelDraws:
    """The draws of `kernel_atoms`; `width` is the length of an atom: two for every frequency."""
    warnings: tuple[str, ...] = ()
    everyone = facts.all_sure()
    if everyone and facts.classes:
        warnings = ("the model is sure of every item: all are represented alike",)
    sample_MD = sample_rows(facts, rng)
    bandwidth = typical_distance(sample_MD)
    if bandwidth == 0:
        bandwidth = 1.0
        warnings = (*warnings, "all features are equal: items differ in their uncertainty only")
    # The kernel does not see a shift; without one, float32 keeps its digits for the rest. The
    # median, because a single item far out would take the mean away from all others.
    centre_D = np.median(sample_MD, axis=0)
    share = rounded_share(sample_MD, bandwidth)
    if share > ROUNDED_SHARE:
        warnings = (*warnings, ROUNDED.format(share))
    omega_DF = rng.standard_normal((centre_D.size, width // 2)).astype(np.float32)
    return KernelDraws(omega_DF, centre_D, bandwidth, everyone, warnings)


def feature_norm_sums(features_ND: Array, segments: Sequence[slice]) -> np.ndarray:
    """The sum of ||h_j||^2 in each segment."""
    return np.array([row_norms_squared(features_ND[rows]).sum() for rows in segments])


def median_distance(facts: PoolFacts, rng: np.random.Generator) -> float:
    """The median distance between two items, over all pairs of at most `MOST_ROWS` of them."""
    return typical_distance(sample_rows(facts, rng))


def rounded_share(sample_MD: np.ndarray, distance: float) -> float:
    """How much of a typical distance may be rounding of the features, as they were given.

    Whole numbers are exact, and numbers that float32 holds were float32.
    """
    if np.all(sample_MD == np.rint(sample_MD)):
        return 0.0
    with np.errstate(over="ignore"):
        narrow = np.array_equal(sample_MD, sample_MD.astype(np.float32))
    unit = float(np.abs(sample_MD).max())
    length = float(np.median(np.linalg.norm(sample_MD / unit, axis=1)))
    return length / (distance / unit) * float(np.finfo(np.float32 if narrow else np.float64).eps)


def sample_rows(facts: PoolFacts, rng: np.random.Generator) -> np.ndarray:
    """The features of at most `MOST_ROWS` items, drawn if there are more."""
    chosen = np.arange(facts.size)
    if facts.size > MOST_ROWS:
        chosen = np.sort(rng.choice(facts.size, size=MOST_ROWS, replace=False))
    return facts.feature_rows(chosen)


def typical_distance(sample_MD: np.ndarray) -> float:
    """The median distance of all pairs of rows.

    Falls back on the mean when more than half of the pairs coincide; 0 when all do.
    """
    from scipy.spatial.distance import pdist

    # Distances of a sample of unit scale: squares of very large or small numbers do not fit.
    unit = float(np.abs(sample_MD).max()) or 1.0
    distances = pdist(sample_MD / unit) if len(sample_MD) > 1 else np.zeros(1)
    return unit * (float(np.median(distances)) or float(np.mean(distances)))
