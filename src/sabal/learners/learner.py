"""The interface of everything that is trained between the rounds of a loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sabal.errors import InputError
from sabal.pools import ArrayPool

MIN_PROBABILITY = 1e-12  # in the log loss, which would be infinite at 0


class Learner(ABC):
    """A classifier that is trained from scratch on labels of a pool, again and again.

    A learner knows the items of the pool and the classes. Labels come with `train`; data to measure
    on come with `measure`.

    Parameters
    ----------
    x_pool : numpy.ndarray
        The items of the pool on the first axis.
    classes : int or sequence of str
        The number of classes, or their names.
    """

    def __init__(self, x_pool: np.ndarray, classes: int | Sequence[str]) -> None:
        names = map(str, range(classes)) if isinstance(classes, int) else classes
        self.class_names = tuple(names)
        self.classes = len(self.class_names)
        self.x_pool = self.prepare(x_pool)

    @property
    def size(self) -> int:
        """The number of items in the pool, labelled or not."""
        return len(self.x_pool)

    @property
    @abstractmethod
    def trained(self) -> bool:
        """Whether there is a trained model."""

    @property
    @abstractmethod
    def gives(self) -> tuple[str, ...]:
        """The names of the arrays that `outputs` has once the model is trained."""

    @abstractmethod
    def train(
        self, items: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, seed: int
    ) -> None:
        """Train a new model from scratch.

        Parameters
        ----------
        items : numpy.ndarray
            Rows of the pool.
        labels : numpy.ndarray
            Their classes, as integers from 0.
        weights : numpy.ndarray or None
            Their importance; None for equal weights.
        seed : int
            Determines every random number of the training.
        """

    @abstractmethod
    def outputs(self, items: np.ndarray, labeled: np.ndarray, seed: int) -> ArrayPool:
        """Return what a strategy may ask about `items`, each array computed on first use.

        Parameters
        ----------
        items : numpy.ndarray
            Rows of the pool to choose from.
        labeled : numpy.ndarray
            Rows that the model was trained on.
        seed : int
            Determines posterior samples and cross-validation.

        Returns
        -------
        ArrayPool
            Before training, only what is known without a model: features, if any.
        """

    @abstractmethod
    def probs(self, items: np.ndarray) -> np.ndarray:
        """Return the predicted probabilities of rows of the pool, (items, classes)."""

    @abstractmethod
    def predict_proba(self, x: Any) -> np.ndarray:
        """Return the predicted probabilities of any data of the pool's kind, (n, classes)."""

    @abstractmethod
    def space(self, items: np.ndarray) -> np.ndarray:
        """Return rows of the pool as the last layer sees them; before training, as they are."""

    def prepare(self, x: Any) -> np.ndarray:
        """Return data in the form that the model takes."""
        return np.asarray(x)

    def predict(self, x: Any) -> np.ndarray:
        """Return the predicted classes of any data of the pool's kind, as integers."""
        return self.predict_proba(x).argmax(axis=1)

    def decide(self, x: Any) -> np.ndarray:
        """Return predictions to compare between rounds, for any data of the pool's kind."""
        return self.predict(x)

    def decide_items(self, items: np.ndarray) -> np.ndarray:
        """Return predictions to compare between rounds, for rows of the pool."""
        return self.probs(items).argmax(axis=1)

    def measure(self, x: Any, y: np.ndarray) -> dict[str, float]:
        """Return `accuracy` and `log_loss` on data that the model was not trained on."""
        return accuracy_and_log_loss(self.predict_proba(x), y)

    def measure_items(self, items: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        """Return `accuracy` and `log_loss` on rows of the pool that were held out."""
        return accuracy_and_log_loss(self.probs(items), labels)

    def save(self, path: Path) -> bool:
        """Store the trained model; return False if it is better trained again than stored."""
        return False

    def load(
        self, path: Path, items: np.ndarray, labels: np.ndarray, weights: np.ndarray | None
    ) -> None:
        """Restore a model that `save` stored after training on these labels.

        Parameters
        ----------
        path : pathlib.Path
            The file that `save` wrote.
        items, labels, weights
            The arguments of the `train` that preceded `save`.
        """
        raise InputError(
            f"a learner that stores its models, to load {path}",
            type(self).__name__,
            "train it again",
        )


def accuracy_and_log_loss(probs_NC: np.ndarray, labels_N: np.ndarray) -> dict[str, float]:
    """Return the accuracy of predicted probabilities and their mean negative log-likelihood."""
    labels_N = np.asarray(labels_N)
    label_probs_N = probs_NC[np.arange(len(labels_N)), labels_N]
    return {
        "accuracy": float(np.mean(probs_NC.argmax(axis=1) == labels_N)),
        "log_loss": float(-np.mean(np.log(np.maximum(label_probs_N, MIN_PROBABILITY)))),
    }
