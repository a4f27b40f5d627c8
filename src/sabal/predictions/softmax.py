"""The cross entropy of a softmax: one class out of C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from sabal.core.arrays import Array
from sabal.core.checks import check_log_probs, check_logits, check_probs
from sabal.predictions.calibration import log_probs_of, softmax
from sabal.predictions.prediction import Check, Loss, Score
from sabal.predictions.uncertainty import entropy, least_confidence, margin


class Softmax(Loss):
    """t(y) = e_y with y ~ q_j; the spread is the distribution itself."""

    name: ClassVar[str] = "softmax"
    checks: ClassVar[Mapping[str, Check]] = {
        "logits": check_logits,
        "probs": check_probs,
        "label_probs": check_probs,
        "log_probs": check_log_probs,
    }
    sources: ClassVar[tuple[str, ...]] = ("probs", "logits", "log_probs")
    prediction: ClassVar[str] = "probs"
    label: ClassVar[str] = "label_probs"
    spread: ClassVar[str] = "probs"
    scores: ClassVar[Mapping[str, Score]] = {
        "margin": margin,
        "entropy": entropy,
        "least-confidence": least_confidence,
    }
    doubt: ClassVar[str] = "margin"

    def variance(self, spread_NC: np.ndarray) -> np.ndarray:
        """1 - ||q_j||^2."""
        return np.maximum(1.0 - np.einsum("ij,ij->i", spread_NC, spread_NC), 0.0)

    def deviation(self, spread_NC: np.ndarray) -> np.ndarray:
        """sum_y q_j(y) sqrt(1 - 2 q_j(y) + ||q_j||^2)."""
        norm_N = np.einsum("ij,ij->i", spread_NC, spread_NC)
        distance_NC = np.sqrt(np.maximum(1.0 - 2.0 * spread_NC + norm_N[:, None], 0.0))
        return np.einsum("ij,ij->i", spread_NC, distance_NC)

    def curvature(self, spread_NC: Array, u_CM: Array, v_CM: Array, uv_CM: Array) -> Array:
        """Lam_j = diag(p_j) - p_j p_j': the Hessian of the loss in the logits."""
        return spread_NC @ uv_CM - (spread_NC @ u_CM) * (spread_NC @ v_CM)

    def probabilities(self, logits_NC: Array) -> Array:
        """The softmax."""
        return softmax(logits_NC)

    def logits(self, probs_NC: Array) -> Array:
        """Log-probabilities."""
        return log_probs_of(probs_NC)
