"""Prediction: the output of a model for the items of a pool, under one loss.

For every loss the gradient of the last layer under label y is g_j(y) = (m_j - t(y)) (x) h_j, where
m_j is the prediction and t(y) the label as a vector of the same length. So the atom is
(m_j - E t(y)) (x) h_j, and g_j(y) - a_j = (E t(y) - t(y)) (x) h_j. Losses differ in how t(y) varies
around its mean. This is described by the *dispersion* of a prediction, with a row for each item:
probabilities, or variances (docs/method.md, 8).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from sabal.core.arrays import Array
from sabal.core.rows import derived
from sabal.errors import InputError

Check = Callable[[Any, str], Array]
UncertaintyScore = Callable[[Array], np.ndarray]


class Prediction(ABC):
    """The arrays that a model with one loss gives for a pool, and the formulas of that loss.

    Parameters
    ----------
    arrays : mapping from str to array
        The given arrays, by name; they may be computed on first use.

    Attributes
    ----------
    loss : str
        The name of the loss.
    checks : mapping
        The arrays of the loss, and the check for each.
    sources : tuple of str
        The arrays each of which is a prediction.
    mean_name, label_name, dispersion_name : str
        The arrays that hold m_j, E t(y) and the dispersion of t(y).
    uncertainties : mapping
        Uncertainty scores by name, computed from the dispersion.
    default_uncertainty : str
        The default score; 0 where the model is certain.
    bounded : bool
        Whether all entries of m_j - t(y) are at most 1.
    """

    loss: ClassVar[str]
    checks: ClassVar[Mapping[str, Check]]
    sources: ClassVar[tuple[str, ...]]
    mean_name: ClassVar[str]
    label_name: ClassVar[str]
    dispersion_name: ClassVar[str]
    uncertainties: ClassVar[Mapping[str, UncertaintyScore]]
    default_uncertainty: ClassVar[str]
    bounded: ClassVar[bool] = True

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = arrays
        self._scores: dict[str, np.ndarray] = {}

    @property
    def given(self) -> bool:
        """Whether there is a prediction."""
        return any(name in self.arrays for name in self.sources)

    @property
    def mean(self) -> Array:
        """(n, classes or outputs): the prediction that the loss compares with labels."""
        return self.arrays[self.mean_name]

    @property
    def dispersion(self) -> Array:
        """(n, classes or outputs): how labels vary according to the model."""
        return self.arrays[self.dispersion_name]

    @property
    def classes(self) -> int:
        """The number of classes (labels, outputs); 0 without a prediction."""
        return int(self.dispersion.shape[1]) if self.given else 0

    def label_mean(self, temperature: float | None = None) -> Array:
        """Return the mean of the label distribution.

        Parameters
        ----------
        temperature : float, optional
            Derives the label distribution from the prediction if it is not given.
        """
        if self.label_name in self.arrays:
            return self.arrays[self.label_name]
        if temperature is None:
            return self.mean
        return derived(lambda mean_NC: self.tempered(mean_NC, temperature), self.mean)

    def label_dispersion(self, temperature: float | None = None) -> Array:
        """Return the dispersion of the label distribution."""
        if self.dispersion_name == self.mean_name:
            # The mean of a label distribution is its dispersion, too.
            return self.label_mean(temperature)
        return self.dispersion

    def uncertainty(self, kind: str | None = None) -> np.ndarray:
        """Return the uncertainty of the prediction for every item.

        Parameters
        ----------
        kind : str, optional
            One of `uncertainties`; `default_uncertainty` by default.
        """
        kind = kind or self.default_uncertainty
        if kind not in self._scores:
            self._scores[kind] = self.compute_uncertainty(kind)
        return self._scores[kind]

    def compute_uncertainty(self, kind: str) -> np.ndarray:
        """Compute an uncertainty score, without the cache of `uncertainty`."""
        if kind not in self.uncertainties:
            known = ", ".join(self.known_uncertainties())
            raise InputError(
                f"an uncertainty of loss={self.loss!r} ({known})", repr(kind), "pick one of these"
            )
        if not self.given:
            raise InputError(
                f"what uncertainty={kind!r} is computed from",
                "outputs without it",
                f"pass {' or '.join(self.sources)}",
            )
        return self.uncertainties[kind](self.dispersion)

    @classmethod
    def known_uncertainties(cls) -> list[str]:
        """Return the valid names of `uncertainty`, and "variance" of gradients."""
        return ["variance", *cls.uncertainties]

    @staticmethod
    @abstractmethod
    def variance(dispersion_NC: np.ndarray) -> np.ndarray:
        """Return E||t(y) - E t(y)||^2 of every row: V_j is ||h_j||^2 times this."""

    @classmethod
    @abstractmethod
    def deviation(cls, dispersion_NC: np.ndarray) -> np.ndarray:
        """Return E||t(y) - E t(y)|| of every row: D_j is ||h_j|| times this."""

    @staticmethod
    @abstractmethod
    def curvature(dispersion_NC: Array, u_CM: Array, v_CM: Array, uv_CM: Array) -> Array:
        """Return u_m' Lam_j v_m for every item and m, with Lam_j = Cov t(y); `uv_CM` is u * v."""

    @classmethod
    def unit(cls, dispersion_NC: Array) -> float:
        """Return the unit that the dispersion is divided by before float32 computations."""
        return 1.0

    @classmethod
    def probabilities(cls, logits_NC: Array) -> Array:
        """Return the prediction for raw scores, if it consists of probabilities."""
        raise InputError(
            "a loss of probabilities (softmax or sigmoid) for logits and temperatures",
            f"loss={cls.loss!r}",
            "leave them out",
        )

    @classmethod
    def logits_of(cls, probs_NC: Array) -> Array:
        """Return raw scores for a prediction."""
        return cls.probabilities(probs_NC)

    @classmethod
    def tempered(cls, probs_NC: Array, temperature: float) -> Array:
        """Return the prediction at a temperature; above 1 it is less certain."""
        return cls.probabilities(cls.logits_of(probs_NC) / temperature)


class Probabilities(Prediction):
    """A prediction of probabilities, given as such or as logits."""

    mean_name: ClassVar[str] = "probs"
    label_name: ClassVar[str] = "label_probs"
    dispersion_name: ClassVar[str] = "probs"
    default_uncertainty: ClassVar[str] = "margin"

    @property
    def mean(self) -> Array:
        """(n, classes): the probabilities, given or from the logits."""
        if "probs" in self.arrays:
            return self.arrays["probs"]
        if self._derived is None:
            self._derived = self._derive()
        return self._derived

    @property
    def dispersion(self) -> Array:
        """(n, classes): the probabilities."""
        return self.mean

    _derived: Array = None

    def _derive(self) -> Array:
        return derived(self.probabilities, self.arrays["logits"])
