"""The cross entropy of independent sigmoids: any number of L labels at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from sabal.core.arrays import Array, namespace
from sabal.core.checks import check_logits, ends
from sabal.errors import InputError
from sabal.predictions.mean_root import mean_root
from sabal.predictions.prediction import Check, Probabilities, UncertaintyScore
from sabal.predictions.softmax import log_probs_of
from sabal.predictions.uncertainty import per_item


def sigmoid(logits_NL: Array) -> Array:
    """Return 1 / (1 + exp(-x)) without overflow."""
    xp = namespace(logits_NL)
    small = xp.exp(-xp.abs(logits_NL))
    return xp.where(logits_NL >= 0, 1.0 / (1.0 + small), small / (1.0 + small))


def mean_margin(probs_NL: Array) -> np.ndarray:
    """Return the mean over the labels of 1 - |2 p - 1|."""
    return per_item(lambda p_NL: np.mean(1.0 - np.abs(2.0 * p_NL - 1.0), axis=1), probs_NL)


def binary_entropy(probs_NL: Array) -> np.ndarray:
    """Return the joint entropy of the independent labels, in nats."""
    return per_item(_binary_entropy, probs_NL)


def check_rates(value: Any, name: str) -> Array:
    """Return probabilities of independent labels as an (n, labels) array."""
    rates_NL = check_logits(value, name)
    lowest, highest = ends(rates_NL)
    if lowest < 0 or highest > 1:
        raise InputError(
            f"`{name}` between 0 and 1",
            f"entries from {lowest:.4g} to {highest:.4g}",
            "pass raw scores as `logits=`",
        )
    return rates_NL


class Sigmoid(Probabilities):
    """t(y) = y with y_l ~ Bernoulli(q_jl), independent; the dispersion is q_j itself."""

    loss: ClassVar[str] = "sigmoid"
    checks: ClassVar[Mapping[str, Check]] = {
        "logits": check_logits,
        "probs": check_rates,
        "label_probs": check_rates,
    }
    sources: ClassVar[tuple[str, ...]] = ("probs", "logits")
    uncertainties: ClassVar[Mapping[str, UncertaintyScore]] = {
        "margin": mean_margin,
        "entropy": binary_entropy,
    }

    @staticmethod
    def variance(dispersion_NC: np.ndarray) -> np.ndarray:
        """Return sum_l q_jl (1 - q_jl)."""
        return np.einsum("ij,ij->i", dispersion_NC, 1.0 - dispersion_NC)

    @classmethod
    def deviation(cls, dispersion_NC: np.ndarray) -> np.ndarray:
        """Return E||q_j - y|| by `mean_root`, for any number of labels.

        ||q - y||^2 is a sum of independent terms: (1 - q_l)^2 with probability q_l, else q_l^2.
        """
        mean_N = cls.variance(dispersion_NC)
        unit_N1 = np.where(mean_N > 0, mean_N, 1.0)[:, None]
        off_NC = 1.0 - dispersion_NC

        def log_transform(t: float) -> np.ndarray:
            change_NC = dispersion_NC * np.expm1(-t * (off_NC**2 / unit_N1))
            change_NC += off_NC * np.expm1(-t * (dispersion_NC**2 / unit_N1))
            return np.sum(np.log1p(np.maximum(change_NC, -1.0)), axis=1)

        # exp(-inf) = 0 and log 0 = -inf are the correct limits.
        with np.errstate(over="ignore", divide="ignore"):
            return mean_root(log_transform, mean_N)

    @staticmethod
    def curvature(dispersion_NC: Array, u_CM: Array, v_CM: Array, uv_CM: Array) -> Array:
        """Return u' Lam_j v with Lam_j = diag(p_j (1 - p_j)), the Hessian in the logits."""
        return (dispersion_NC * (1.0 - dispersion_NC)) @ uv_CM

    @classmethod
    def probabilities(cls, logits_NC: Array) -> Array:
        """Return the sigmoid of every entry."""
        return sigmoid(logits_NC)

    @classmethod
    def logits_of(cls, probs_NC: Array) -> Array:
        """Return the inverse, log p - log(1 - p)."""
        return log_probs_of(probs_NC) - log_probs_of(1.0 - probs_NC)


def _binary_entropy(probs_NL: np.ndarray) -> np.ndarray:
    tiny = np.finfo(probs_NL.dtype).tiny
    total_N = np.zeros(len(probs_NL))
    for each_NL in (probs_NL, 1.0 - probs_NL):
        # p = 0 contributes 0: the log of the clipped value is finite.
        total_N -= np.einsum("nl,nl->n", each_NL, np.log(np.maximum(each_NL, tiny)))
    return total_N
