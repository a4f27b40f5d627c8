"""What has to be known of a loss (method.md 8).

In all of them the gradient of the last layer under label y is g_j(y) = (m_j - t(y)) (x) h_j, with
m_j what the model predicts and t(y) the label as a vector of as many entries. So the atom is
(m_j - E t(y)) (x) h_j whatever the loss, and g_j(y) - a_j = (E t(y) - t(y)) (x) h_j: what differs
is how t(y) spreads around its mean. `spread_NC` is what tells that, a row for each item:
probabilities, or variances.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from sabal.core.arrays import Array
from sabal.errors import InputError

Check = Callable[[Any, str], Array]
Score = Callable[[Array], np.ndarray]


class Loss(ABC):
    """The formulas of one loss, and the names of the outputs that they are made from.

    checks: the outputs of a model that go with the loss, and how each is looked at.
    sources: the outputs any one of which makes a prediction.
    prediction, label, spread: the outputs that are m_j, E t(y) and the spread of t(y).
    scores: uncertainties by name, from the spread of the prediction; `doubt` is the one that
        weighs items unless another is asked for, and zero where the model is sure.
    bounded: whether no entry of m_j - t(y) is beyond 1.
    """

    name: ClassVar[str]
    checks: ClassVar[Mapping[str, Check]]
    sources: ClassVar[tuple[str, ...]]
    prediction: ClassVar[str]
    label: ClassVar[str]
    spread: ClassVar[str]
    scores: ClassVar[Mapping[str, Score]]
    doubt: ClassVar[str]
    bounded: ClassVar[bool] = True

    @abstractmethod
    def variance(self, spread_NC: np.ndarray) -> np.ndarray:
        """E||t(y) - E t(y)||^2 of every row: V_j is ||h_j||^2 times this."""

    @abstractmethod
    def deviation(self, spread_NC: np.ndarray) -> np.ndarray:
        """E||t(y) - E t(y)|| of every row: D_j is ||h_j|| times this."""

    @abstractmethod
    def curvature(self, spread_NC: Array, u_CM: Array, v_CM: Array, uv_CM: Array) -> Array:
        """u_m' Lam_j v_m for every item and m, with Lam_j = Cov t(y); `uv_CM` is u * v."""

    def unit(self, spread_NC: Array) -> float:
        """What the spread is divided by before curvature in single precision is made of it."""
        return 1.0

    def probabilities(self, logits_NC: Array) -> Array:
        """The prediction behind raw scores, where it is made of probabilities."""
        raise InputError(
            "a loss of probabilities (softmax or sigmoid) for logits and temperatures",
            f"loss={self.name!r}",
            "leave them out",
        )

    def logits(self, probs_NC: Array) -> Array:
        """Raw scores behind a prediction."""
        return self.probabilities(probs_NC)

    def tempered(self, probs_NC: Array, temperature: float) -> Array:
        """The prediction at a temperature: above 1 it is less sure."""
        return self.probabilities(self.logits(probs_NC) / temperature)
