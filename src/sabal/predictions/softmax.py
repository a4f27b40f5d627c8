"""The cross entropy of a softmax: one class out of C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from sabal.core.arrays import Array, namespace
from sabal.core.checks import check_logits, check_probs
from sabal.errors import InputError
from sabal.predictions.prediction import Check, Probabilities, UncertaintyScore
from sabal.predictions.uncertainty import entropy, least_confidence, margin


class Softmax(Probabilities):
    """t(y) = e_y with y ~ q_j; the dispersion is the distribution itself."""

    loss: ClassVar[str] = "softmax"
    checks: ClassVar[Mapping[str, Check]] = {
        "logits": check_logits,
        "probs": check_probs,
        "label_probs": check_probs,
    }
    sources: ClassVar[tuple[str, ...]] = ("probs", "logits")
    uncertainties: ClassVar[Mapping[str, UncertaintyScore]] = {
        "margin": margin,
        "entropy": entropy,
        "least-confidence": least_confidence,
    }

    def compute_uncertainty(self, kind: str) -> np.ndarray:
        """Compute an uncertainty score; mutual information needs a posterior."""
        if kind == "mutual-information":
            raise InputError(
                f"what uncertainty={kind!r} is computed from",
                "outputs without it",
                "pass log_probs",
            )
        return super().compute_uncertainty(kind)

    @classmethod
    def known_uncertainties(cls) -> list[str]:
        """Return the valid names of `uncertainty`."""
        return [*super().known_uncertainties(), "mutual-information"]

    @staticmethod
    def variance(dispersion_NC: np.ndarray) -> np.ndarray:
        """Return 1 - ||q_j||^2."""
        return np.maximum(1.0 - np.einsum("ij,ij->i", dispersion_NC, dispersion_NC), 0.0)

    @classmethod
    def deviation(cls, dispersion_NC: np.ndarray) -> np.ndarray:
        """Return sum_y q_j(y) sqrt(1 - 2 q_j(y) + ||q_j||^2)."""
        norm_N = np.einsum("ij,ij->i", dispersion_NC, dispersion_NC)
        distance_NC = np.sqrt(np.maximum(1.0 - 2.0 * dispersion_NC + norm_N[:, None], 0.0))
        return np.einsum("ij,ij->i", dispersion_NC, distance_NC)

    @staticmethod
    def curvature(dispersion_NC: Array, u_CM: Array, v_CM: Array, uv_CM: Array) -> Array:
        """Return u' Lam_j v with Lam_j = diag(p_j) - p_j p_j', the Hessian in the logits."""
        return dispersion_NC @ uv_CM - (dispersion_NC @ u_CM) * (dispersion_NC @ v_CM)

    @classmethod
    def probabilities(cls, logits_NC: Array) -> Array:
        """Return the softmax."""
        return softmax(logits_NC)

    @classmethod
    def logits_of(cls, probs_NC: Array) -> Array:
        """Return log-probabilities."""
        return log_probs_of(probs_NC)


def softmax(logits_NC: Array) -> Array:
    """Return probabilities from logits, over the last axis, without overflow."""
    xp = namespace(logits_NC)
    shifted = xp.exp(logits_NC - xp.max(logits_NC, axis=-1, keepdims=True))
    return shifted / xp.sum(shifted, axis=-1, keepdims=True)


def log_probs_of(probs_NC: Array) -> Array:
    """Return log p, with p clipped to the smallest positive number of the dtype."""
    xp = namespace(probs_NC)
    tiny = xp.finfo(probs_NC.dtype).smallest_normal
    return xp.log(xp.clip(probs_NC, min=tiny))
