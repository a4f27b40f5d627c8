"""The squared error with a predictive variance: regression, one output or several.

The prediction of item j is N(m_j, diag(s2_j)). s2 is the *predictive* variance: noise and what the
model does not know together, as an ensemble, a Gaussian process or a variance head tell it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from sabal.core.arrays import Array, namespace, row_chunks, to_host
from sabal.predictions.checks import check_means, check_variances
from sabal.predictions.mean_root import mean_root
from sabal.predictions.prediction import Check, Loss, Score
from sabal.predictions.uncertainty import per_item


def predictive_variance(variances_NO: Array) -> np.ndarray:
    """The sum over the outputs of s2_jo / mean_i s2_io: outputs of any units count alike."""
    n, outputs = variances_NO.shape
    largest_O, sum_O = np.zeros(outputs), np.zeros(outputs)
    for rows in row_chunks(n, 8 * outputs):
        largest_O = np.maximum(largest_O, to_host(variances_NO[rows]).max(axis=0))
    # An output that is known everywhere says nothing. The largest first: a sum may overflow.
    largest_O[largest_O == 0] = 1.0
    for rows in row_chunks(n, 8 * outputs):
        sum_O += (to_host(variances_NO[rows]) / largest_O).sum(axis=0)
    mean_O = np.where(sum_O > 0, sum_O / n, 1.0)
    return per_item(lambda s2_NO: np.sum(s2_NO / largest_O / mean_O, axis=1), variances_NO)


class Squared(Loss):
    """t(y) = y with y ~ N(mu_j, diag(s2_j)), mu_j = m_j unless it is given; the spread is s2_j."""

    name: ClassVar[str] = "squared"
    checks: ClassVar[Mapping[str, Check]] = {
        "means": check_means,
        "variances": check_variances,
        "label_means": check_means,
    }
    sources: ClassVar[tuple[str, ...]] = ("variances",)
    prediction: ClassVar[str] = "means"
    label: ClassVar[str] = "label_means"
    spread: ClassVar[str] = "variances"
    scores: ClassVar[Mapping[str, Score]] = {"predictive-variance": predictive_variance}
    doubt: ClassVar[str] = "predictive-variance"
    bounded: ClassVar[bool] = False

    def variance(self, spread_NC: np.ndarray) -> np.ndarray:
        """sum_o s2_jo."""
        return spread_NC.sum(axis=1)

    def deviation(self, spread_NC: np.ndarray) -> np.ndarray:
        """E sqrt(sum_o s2_jo z_o^2): s sqrt(2 / pi) of one output, else as exact as `mean_root`.

        E exp(-t s2 z^2) = (1 + 2 t s2)^(-1/2).
        """
        mean_N = self.variance(spread_NC)
        if spread_NC.shape[1] == 1:
            return np.sqrt(2.0 / np.pi) * np.sqrt(mean_N)
        share_NC = spread_NC / np.where(mean_N > 0, mean_N, 1.0)[:, None]
        return mean_root(lambda t: -0.5 * np.sum(np.log1p(2.0 * t * share_NC), axis=1), mean_N)

    def curvature(self, spread_NC: Array, u_CM: Array, v_CM: Array, uv_CM: Array) -> Array:
        """Lam_j = diag(s2_j): the second moment of the gradient, not the Hessian.

        For a softmax or sigmoids the Hessian of the loss in the logits is Cov t(y), which is also
        the second moment E[g g'] of the gradient at q = p (Bartlett's identity). Here the two part.
        The Hessian of the squared error is I (x) h h' whatever the model predicts, and that of the
        Gaussian log-likelihood, diag(1 / s2) (x) h h', weighs what the model is *sure* of: right
        for noise that no label removes, backwards where s2 is what a label would teach. The second
        moment is Cov t(y) (x) h h' again: large where the model is undecided, zero where it is
        sure, which is what curvature atoms are for.
        """
        return spread_NC @ uv_CM

    def unit(self, spread_NC: Array) -> float:
        """The largest variance: a common factor is free, and single precision has little room."""
        xp = namespace(spread_NC)
        chunks = row_chunks(spread_NC.shape[0], 8 * spread_NC.shape[1])
        return max(float(xp.max(spread_NC[rows])) for rows in chunks) or 1.0
