"""Samples from the posterior of a softmax model, shared by all items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from sabal.core.arrays import Array, namespace
from sabal.core.checks import check_log_probs
from sabal.core.rows import derived
from sabal.predictions.prediction import Check
from sabal.predictions.softmax import Softmax
from sabal.predictions.uncertainty import mutual_information


class Posterior(Softmax):
    """A softmax under K samples of its parameters: `log_probs` of shape (n, K, classes).

    The prediction is the mean over the samples, unless `probs` or `logits` are given as well.
    """

    checks: ClassVar[Mapping[str, Check]] = {**Softmax.checks, "log_probs": check_log_probs}
    sources: ClassVar[tuple[str, ...]] = (*Softmax.sources, "log_probs")

    def compute_uncertainty(self, kind: str) -> np.ndarray:
        """Compute an uncertainty score, including "mutual-information"."""
        if kind == "mutual-information":
            return mutual_information(self.arrays["log_probs"])
        return super().compute_uncertainty(kind)

    def _derive(self) -> Array:
        if "logits" in self.arrays:
            return super()._derive()
        return derived(mean_probs, self.arrays["log_probs"])


def predictive_mean(log_probs: Any) -> Array:
    """Return q_j = mean_k p_k(y | x_j) over posterior samples.

    Parameters
    ----------
    log_probs : array of shape (n, samples, classes)
        Log-probabilities under posterior samples that all items share.

    Returns
    -------
    array of shape (n, classes)
        The predictive distribution of every item.
    """
    return mean_probs(check_log_probs(log_probs))


def mean_probs(log_probs_NKC: Array) -> Array:
    """Return the mean probabilities of checked log-probabilities."""
    xp = namespace(log_probs_NKC)
    return xp.mean(xp.exp(log_probs_NKC), axis=1)
