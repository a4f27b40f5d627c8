"""The squared error with a predictive variance: regression, one output or several.

The prediction of item j is N(m_j, diag(s2_j)). s2 is the *predictive* variance, noise plus model
uncertainty, for instance of an ensemble, a Gaussian process or a variance head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sabal.core.arrays import (
    Array,
    as_array,
    namespace,
    row_chunks,
    segments_of,
    to_float64_numpy,
)
from sabal.core.checks import LARGEST_SQUARE, check_features, ends
from sabal.core.rows import derived
from sabal.errors import InputError
from sabal.predictions.mean_root import mean_root
from sabal.predictions.prediction import Check, Prediction, UncertaintyScore
from sabal.predictions.uncertainty import per_item


@dataclass(frozen=True)
class VarianceUnits:
    """Of each output, the largest variance in a pool, and the mean as a share of it."""

    largest_O: np.ndarray
    mean_O: np.ndarray

    @classmethod
    def of(cls, variances_NO: Array) -> VarianceUnits:
        """Return the units of a pool in one piece."""
        n = variances_NO.shape[0]
        largest_O = largest_variances(variances_NO)
        return cls.from_sums(largest_O, variance_sums(variances_NO, largest_O, segments_of(n)), n)

    @classmethod
    def from_sums(cls, largest_O: np.ndarray, sums_SO: np.ndarray, size: int) -> VarianceUnits:
        """Return the units from the sums of all segments of a pool."""
        sum_O = sums_SO.sum(axis=0)
        return cls(largest_O, np.where(sum_O > 0, sum_O / size, 1.0))


def largest_variances(variances_NO: Array) -> np.ndarray:
    """Return the largest variance of each output."""
    n, outputs = variances_NO.shape
    largest_O = np.zeros(outputs)
    for rows in row_chunks(n, 8 * outputs):
        largest_O = np.maximum(largest_O, to_float64_numpy(variances_NO[rows]).max(axis=0))
    return largest_O


def variance_sums(
    variances_NO: Array, largest_O: np.ndarray, segments: Sequence[slice]
) -> np.ndarray:
    """Return the sums of s2_jo / largest_o by segment, so that they do not depend on shards."""
    # Outputs without variance are ignored. Dividing by the largest first avoids overflow.
    unit_O = np.where(largest_O > 0, largest_O, 1.0)
    sums_SO = np.zeros((len(segments), largest_O.size))
    for sum_O, part in zip(sums_SO, segments, strict=True):
        for rows in row_chunks(part.stop - part.start, 8 * largest_O.size):
            s2_NO = to_float64_numpy(variances_NO[part.start + rows.start : part.start + rows.stop])
            sum_O += (s2_NO / unit_O).sum(axis=0)
    return sums_SO


def predictive_variance(variances_NO: Array, units: VarianceUnits | None = None) -> np.ndarray:
    """Return the sum over the outputs of s2_jo / mean_i s2_io, which does not depend on units."""
    units = units or VarianceUnits.of(variances_NO)
    unit_O = np.where(units.largest_O > 0, units.largest_O, 1.0)
    return per_item(lambda s2_NO: np.sum(s2_NO / unit_O / units.mean_O, axis=1), variances_NO)


def check_means(value: Any, name: str) -> Array:
    """Return means as an (n, outputs) array of finite numbers; (n,) is one output."""
    means_NO = check_features(_columns(value, name), name)
    _check_largest(max(map(abs, ends(means_NO))), LARGEST_SQUARE**0.5, name)
    return means_NO


def check_variances(value: Any, name: str) -> Array:
    """Return variances as an (n, outputs) array of at least 0; (n,) is one output."""
    variances_NO = check_features(_columns(value, name), name)
    lowest, highest = ends(variances_NO)
    if lowest < 0:
        raise InputError(
            f"`{name}` of at least 0", f"{lowest:.4g}", "pass squared standard deviations"
        )
    _check_largest(highest, LARGEST_SQUARE, name)
    return variances_NO


class Gaussian(Prediction):
    """t(y) = y with y ~ N(mu_j, diag(s2_j)), mu_j = m_j unless given; the dispersion is s2_j."""

    loss: ClassVar[str] = "squared"
    checks: ClassVar[Mapping[str, Check]] = {
        "means": check_means,
        "variances": check_variances,
        "label_means": check_means,
    }
    sources: ClassVar[tuple[str, ...]] = ("variances",)
    mean_name: ClassVar[str] = "means"
    label_name: ClassVar[str] = "label_means"
    dispersion_name: ClassVar[str] = "variances"
    uncertainties: ClassVar[Mapping[str, UncertaintyScore]] = {
        "predictive-variance": predictive_variance
    }
    default_uncertainty: ClassVar[str] = "predictive-variance"
    bounded: ClassVar[bool] = False
    units: VarianceUnits | None = None
    """The units of the whole pool, where this is a shard of one."""

    def compute_uncertainty(self, kind: str) -> np.ndarray:
        """Compute an uncertainty score, in the units of the whole pool."""
        if kind == "predictive-variance" and self.units is not None:
            return predictive_variance(self.dispersion, self.units)
        return super().compute_uncertainty(kind)

    @staticmethod
    def variance(dispersion_NC: np.ndarray) -> np.ndarray:
        """Return sum_o s2_jo."""
        return dispersion_NC.sum(axis=1)

    @classmethod
    def deviation(cls, dispersion_NC: np.ndarray) -> np.ndarray:
        """Return E sqrt(sum_o s2_jo z_o^2) by `mean_root`; s sqrt(2 / pi) for one output.

        E exp(-t s2 z^2) = (1 + 2 t s2)^(-1/2).
        """
        mean_N = cls.variance(dispersion_NC)
        if dispersion_NC.shape[1] == 1:
            return np.sqrt(2.0 / np.pi) * np.sqrt(mean_N)
        share_NC = dispersion_NC / np.where(mean_N > 0, mean_N, 1.0)[:, None]
        return mean_root(lambda t: -0.5 * np.sum(np.log1p(2.0 * t * share_NC), axis=1), mean_N)

    @staticmethod
    def curvature(dispersion_NC: Array, u_CM: Array, v_CM: Array, uv_CM: Array) -> Array:
        """Return u' Lam_j v with Lam_j = diag(s2_j): the second moment of the gradient.

        This is not the Hessian. For a softmax or sigmoids the Hessian of the loss in the logits is
        Cov t(y), which is also the second moment E[g g'] of the gradient at q = p (Bartlett's
        identity). Here the two differ. The Hessian of the squared error is I (x) h h' for any
        prediction, and that of the Gaussian log-likelihood, diag(1 / s2) (x) h h', favours items of
        which the model is certain: right for irreducible noise, wrong if labels reduce s2. The
        second moment is Cov t(y) (x) h h' again: large where the model is uncertain, zero where it
        is certain, as curvature atoms require.
        """
        return dispersion_NC @ uv_CM

    @classmethod
    def unit(cls, dispersion_NC: Array) -> float:
        """Return the largest variance, as the range of float32 is small; 0 without any."""
        xp = namespace(dispersion_NC)
        chunks = row_chunks(dispersion_NC.shape[0], 8 * dispersion_NC.shape[1])
        return max(float(xp.max(dispersion_NC[rows])) for rows in chunks)


def _columns(value: Any, name: str) -> Array:
    """Return an (n, outputs) array; (n,) is one output."""
    array = as_array(value, name)
    return derived(lambda rows_N: rows_N[:, None], array) if array.ndim == 1 else array


def _check_largest(largest: float, limit: float, name: str) -> None:
    if largest > limit:
        raise InputError(
            f"`{name}` of at most {limit:g}", f"{largest:.3g}", "divide the targets by a constant"
        )
