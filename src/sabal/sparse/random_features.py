"""Random draws that all random-feature atoms of a pool share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sabal.core.checks import check_square
from sabal.pools.pool import Pool, coordinate_norm_sums, float64_rows, unit_of_dispersion

MAX_SAMPLE = 1024  # the maximum number of items for the median distance and the centre


ROUNDED = (
    "features lie so far from zero that rounding makes up to {:.0%} of the distance between items: "
    "it takes part in the choice; subtract their mean before they are made float32"
)
ROUNDED_SHARE = 0.01  # the share of rounding errors in distances above which a warning is issued


@dataclass(frozen=True)
class CurvatureDraws:
    """Gaussian u, u' (classes) and s, s' (features), and the units of features and dispersion.

    `unit` is the features' root mean square, `dispersion_unit` that of `Prediction.unit`.
    """

    u_CM: np.ndarray
    v_CM: np.ndarray
    s_DM: np.ndarray
    t_DM: np.ndarray
    unit: float
    dispersion_unit: float = 1.0


@dataclass(frozen=True)
class KernelDraws:
    """Frequencies, and the centre and bandwidth of the features.

    With `uniform_weights` all items have the same weight, as there is no uncertainty.
    """

    omega_DF: np.ndarray
    centre_D: np.ndarray
    bandwidth: float
    uniform_weights: bool
    warnings: tuple[str, ...] = ()


def draw_curvature(pool: Pool, width: int, bias: bool, rng: np.random.Generator) -> CurvatureDraws:
    """Draw the random vectors of `curvature_atoms`."""
    mean_square = float(np.concatenate(pool.map(coordinate_norm_sums)).sum()) / pool.size
    unit = float(np.sqrt(check_square(mean_square, "features") + bias)) or 1.0
    dimensions = float64_rows(pool, np.arange(1)).shape[1]
    u_CM, v_CM = rng.standard_normal((2, pool.classes, width))
    s_DM, t_DM = rng.standard_normal((2, dimensions + bias, width))
    dispersion_unit = max(pool.map(unit_of_dispersion)) or 1.0
    return CurvatureDraws(u_CM, v_CM, s_DM, t_DM, unit, dispersion_unit)


def draw_kernel(pool: Pool, width: int, rng: np.random.Generator) -> KernelDraws:
    """Draw the frequencies of `kernel_atoms`; `width` is the length of an atom, two each."""
    warnings: tuple[str, ...] = ()
    uniform_weights = pool.model_is_certain()
    if uniform_weights and pool.classes:
        warnings = ("the model is certain of every item: all are represented alike",)
    sample_MD = sample_rows(pool, rng)
    bandwidth = typical_distance(sample_MD)
    if bandwidth == 0:
        bandwidth = 1.0
        warnings = (*warnings, "all features are equal: items differ in their uncertainty only")
    # The kernel is invariant to shifts, and centred features lose fewer digits in float32. The
    # median is robust to outliers.
    centre_D = np.median(sample_MD, axis=0)
    share = rounded_share(sample_MD, bandwidth)
    if share > ROUNDED_SHARE:
        warnings = (*warnings, ROUNDED.format(share))
    omega_DF = rng.standard_normal((centre_D.size, width // 2)).astype(np.float32)
    return KernelDraws(omega_DF, centre_D, bandwidth, uniform_weights, warnings)


def rounded_share(sample_MD: np.ndarray, distance: float) -> float:
    """Return the rounding error of the given features as a share of a typical distance.

    Integers are exact, and numbers that fit in float32 are assumed to be float32.
    """
    if np.all(sample_MD == np.rint(sample_MD)):
        return 0.0
    with np.errstate(over="ignore"):
        narrow = np.array_equal(sample_MD, sample_MD.astype(np.float32))
    unit = float(np.abs(sample_MD).max())
    length = float(np.median(np.linalg.norm(sample_MD / unit, axis=1)))
    return length / (distance / unit) * float(np.finfo(np.float32 if narrow else np.float64).eps)


def sample_rows(pool: Pool, rng: np.random.Generator) -> np.ndarray:
    """Return the features of at most `MAX_SAMPLE` items, drawn if there are more."""
    chosen = np.arange(pool.size)
    if pool.size > MAX_SAMPLE:
        chosen = np.sort(rng.choice(pool.size, size=MAX_SAMPLE, replace=False))
    return float64_rows(pool, chosen)


def typical_distance(sample_MD: np.ndarray) -> float:
    """Return the median distance of all pairs of rows.

    Falls back on the mean when more than half of the pairs coincide; 0 when all do.
    """
    from scipy.spatial.distance import pdist

    # Scaled to unit size first, as squares of very large or small numbers overflow.
    unit = float(np.abs(sample_MD).max()) or 1.0
    distances = pdist(sample_MD / unit) if len(sample_MD) > 1 else np.zeros(1)
    return unit * (float(np.median(distances)) or float(np.mean(distances)))
