"""scikit-learn classifiers as learners of the loop: no torch, seconds a run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sabal.errors import SabalError
from sabal.pools.outputs import Outputs
from sabal.predictions.calibration import (
    apply_temperature,
    cross_validated_temperature,
    log_probs_of,
)


@contextmanager
def few_labels_are_fine() -> Iterator[None]:
    """A few labels a class are where active learning begins, no regression problem in disguise."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        yield


def logistic(seed: int) -> Any:
    """Multinomial logistic regression on standardised features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, random_state=seed))


def forest(seed: int) -> Any:
    """A random forest of 200 trees."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(200, random_state=seed)


ESTIMATORS: dict[str, Callable[[int], Any]] = {"logistic": logistic, "forest": forest}


class EstimatorLearner:
    """A classifier with `predict_proba` that is built anew from a seed in every round.

    x_pool, x_test: rows of numbers, flattened if they have more axes. Classes that no label has
    shown yet get a probability of 0: there are `classes` of them whatever the labels say.
    """

    def __init__(
        self, make: Callable[[int], Any], x_pool: Any, x_test: Any, y_test: Any, classes: int
    ) -> None:
        self.make = make
        self.x_pool = np.asarray(x_pool, dtype=np.float64).reshape(len(x_pool), -1)
        self.x_test = np.asarray(x_test, dtype=np.float64).reshape(len(x_test), -1)
        self.y_test = np.asarray(y_test)
        self.classes = classes
        self.model: Any = None
        self._trained_on: tuple[np.ndarray, np.ndarray] = (np.empty(0, int), np.empty(0, int))

    @property
    def size(self) -> int:
        """The number of items in the pool."""
        return len(self.x_pool)

    @property
    def gives(self) -> tuple[str, ...]:
        """What a trained estimator says."""
        return ("features", "probs", "label_probs", "labeled_features")

    def train(
        self, items: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, seed: int
    ) -> None:
        """Fit a new estimator; a single class so far is predicted for everything."""
        self._trained_on = (items, labels)
        if np.unique(labels).size < 2:
            from sklearn.dummy import DummyClassifier

            self.model = DummyClassifier(strategy="prior").fit(self.x_pool[items], labels)
            return
        self.model = self.make(seed)
        given = {} if weights is None else self._weight_argument(weights)
        with few_labels_are_fine():
            self.model.fit(self.x_pool[items], labels, **given)

    def _weight_argument(self, weights: np.ndarray) -> dict[str, np.ndarray]:
        steps = getattr(self.model, "steps", None)
        return {f"{steps[-1][0]}__sample_weight" if steps else "sample_weight": weights}

    def outputs(self, items: np.ndarray, labeled: np.ndarray, seed: int) -> Outputs:
        """Features, probabilities and a cross-validated label distribution, each when asked for."""
        if self.model is None:
            return Outputs(size=len(items), features=lambda: self.x_pool[items])
        return Outputs(
            size=len(items),
            features=lambda: self._features(items),
            probs=lambda: self._probs(self.x_pool[items]),
            label_probs=lambda: self._label_probs(items),
            labeled_features=lambda: self._features(labeled),
        )

    def metrics(self) -> dict[str, float]:
        """Accuracy and mean negative log-likelihood on the test set."""
        probs_NC = self._probs(self.x_test)
        of_label_N = probs_NC[np.arange(len(self.y_test)), self.y_test]
        return {
            "accuracy": float(np.mean(probs_NC.argmax(axis=1) == self.y_test)),
            "log_loss": float(-np.mean(np.log(np.maximum(of_label_N, 1e-12)))),
        }

    def predictions(self) -> np.ndarray:
        """The predicted class of every test item."""
        return self._probs(self.x_test).argmax(axis=1)

    def save(self, path: Path) -> bool:
        """Nothing to store: these train in less time than a file takes to be trusted."""
        return False

    def load(
        self, path: Path, items: np.ndarray, labels: np.ndarray, weights: np.ndarray | None
    ) -> None:
        """Never called, as nothing is stored."""
        raise SabalError("a model that trains anew", str(path), "do not store estimators")

    def _features(self, items: np.ndarray) -> np.ndarray:
        rows = self.x_pool[items]
        if hasattr(self.model, "steps") and len(items):
            return np.asarray(self.model[:-1].transform(rows))
        return rows

    def _probs(self, rows: np.ndarray) -> np.ndarray:
        probs_NC = np.zeros((len(rows), self.classes))
        probs_NC[:, self.model.classes_] = self.model.predict_proba(rows)
        return probs_NC

    def _label_probs(self, items: np.ndarray) -> np.ndarray:
        probs_NC = self._probs(self.x_pool[items])
        labeled, labels = self._trained_on
        try:
            with few_labels_are_fine():
                temperature = cross_validated_temperature(
                    self.make(0), self.x_pool[labeled], labels
                )
        except SabalError:
            # Too few labels for folds: the prediction itself, and the strategy will say what that
            # means for it.
            return probs_NC
        return np.asarray(apply_temperature(log_probs_of(probs_NC), temperature))
