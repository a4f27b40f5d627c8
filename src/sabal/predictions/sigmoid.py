"""The cross entropy of independent sigmoids: any number of L labels at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from sabal.core.arrays import Array, namespace
from sabal.core.checks import check_logits
from sabal.predictions.calibration import log_probs_of
from sabal.predictions.checks import check_rates
from sabal.predictions.mean_root import mean_root
from sabal.predictions.prediction import Check, Loss, Score
from sabal.predictions.uncertainty import per_item


def sigmoid(logits_NL: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    xp = namespace(logits_NL)
    small = xp.exp(-xp.abs(logits_NL))
    return xp.where(logits_NL >= 0, 1.0 / (1.0 + small), small / (1.0 + small))


def mean_margin(probs_NL: Array) -> np.ndarray:
    """The mean over the labels of 1 - |2 p - 1|: near 1 where every label may be on or off."""
    return per_item(lambda p_NL: np.mean(1.0 - np.abs(2.0 * p_NL - 1.0), axis=1), probs_NL)


def binary_entropy(probs_NL: Array) -> np.ndarray:
    """The entropy of all labels together, in nats: as they are independent, the sum over them."""
    return per_item(_binary_entropy, probs_NL)


class Sigmoid(Loss):
    """t(y) = y with y_l ~ Bernoulli(q_jl), independent; the spread is q_j itself."""

    name: ClassVar[str] = "sigmoid"
    checks: ClassVar[Mapping[str, Check]] = {
        "logits": check_logits,
        "probs": check_rates,
        "label_probs": check_rates,
    }
    sources: ClassVar[tuple[str, ...]] = ("probs", "logits")
    prediction: ClassVar[str] = "probs"
    label: ClassVar[str] = "label_probs"
    spread: ClassVar[str] = "probs"
    scores: ClassVar[Mapping[str, Score]] = {"margin": mean_margin, "entropy": binary_entropy}
    doubt: ClassVar[str] = "margin"

    def variance(self, spread_NC: np.ndarray) -> np.ndarray:
        """sum_l q_jl (1 - q_jl)."""
        return np.einsum("ij,ij->i", spread_NC, 1.0 - spread_NC)

    def deviation(self, spread_NC: np.ndarray) -> np.ndarray:
        """E||q_j - y||, as exact as `mean_root` for any number of labels.

        ||q - y||^2 is a sum of independent terms: (1 - q_l)^2 with probability q_l, else q_l^2.
        """
        mean_N = self.variance(spread_NC)
        unit_N1 = np.where(mean_N > 0, mean_N, 1.0)[:, None]
        off_NC = 1.0 - spread_NC

        def log_transform(t: float) -> np.ndarray:
            change_NC = spread_NC * np.expm1(-t * (off_NC**2 / unit_N1))
            change_NC += off_NC * np.expm1(-t * (spread_NC**2 / unit_N1))
            return np.sum(np.log1p(np.maximum(change_NC, -1.0)), axis=1)

        # exp(-inf) = 0 and log 0 = -inf are the right limits.
        with np.errstate(over="ignore", divide="ignore"):
            return mean_root(log_transform, mean_N)

    def curvature(self, spread_NC: Array, u_CM: Array, v_CM: Array, uv_CM: Array) -> Array:
        """Lam_j = diag(p_j (1 - p_j)): the Hessian of the loss in the logits."""
        return (spread_NC * (1.0 - spread_NC)) @ uv_CM

    def probabilities(self, logits_NC: Array) -> Array:
        """The sigmoid of every entry."""
        return sigmoid(logits_NC)

    def logits(self, probs_NC: Array) -> Array:
        """The inverse, log p - log(1 - p)."""
        return log_probs_of(probs_NC) - log_probs_of(1.0 - probs_NC)


def _binary_entropy(probs_NL: np.ndarray) -> np.ndarray:
    tiny = np.finfo(probs_NL.dtype).tiny
    total_N = np.zeros(len(probs_NL))
    for each_NL in (probs_NL, 1.0 - probs_NL):
        # p = 0 contributes 0: the log of the clipped value is finite.
        total_N -= np.einsum("nl,nl->n", each_NL, np.log(np.maximum(each_NL, tiny)))
    return total_N
