"""Predictions of a model for a pool: one type for each loss.

To add a loss, derive a class from `Prediction` in a new file and list it in `BY_LOSS`.
"""

from sabal.predictions.gaussian import Gaussian
from sabal.predictions.posterior import Posterior
from sabal.predictions.prediction import Prediction
from sabal.predictions.sigmoid import Sigmoid
from sabal.predictions.softmax import Softmax

BY_LOSS: dict[str, type[Prediction]] = {each.loss: each for each in (Softmax, Sigmoid, Gaussian)}

ARRAYS = tuple(dict.fromkeys((*Posterior.checks, *Sigmoid.checks, *Gaussian.checks)))
"""The array names of all prediction types."""

__all__ = [
    "ARRAYS",
    "BY_LOSS",
    "Gaussian",
    "Posterior",
    "Prediction",
    "Sigmoid",
    "Softmax",
]
