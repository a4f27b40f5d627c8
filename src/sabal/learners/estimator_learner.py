"""Learners around scikit-learn classifiers: no PyTorch, trained in seconds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from sabal.errors import SabalError
from sabal.learners.learner import Learner
from sabal.pools import ArrayPool
from sabal.predictions.calibration import apply_temperature, cross_validated_temperature
from sabal.predictions.softmax import log_probs_of


@contextmanager
def ignore_few_labels_warning() -> Iterator[None]:
    """Silence scikit-learn's warning about many classes among few labels: that is normal here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        yield


def weight_keyword(estimator: Any) -> str:
    """Return the keyword of `fit` that passes weights, also through a pipeline."""
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{weight_keyword(last)}"
    return "sample_weight"


def logistic(seed: int) -> Any:
    """Return a multinomial logistic regression on standardised features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, random_state=seed))


def forest(seed: int) -> Any:
    """Return a random forest of 200 trees."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(200, random_state=seed)


ESTIMATORS: dict[str, Callable[[int], Any]] = {"logistic": logistic, "forest": forest}


class EstimatorLearner(Learner):
    """A scikit-learn classifier that is built anew from a seed for every training.

    Models are not stored: these estimators are trained again as quickly as a file is checked.

    Parameters
    ----------
    make : callable
        Returns a classifier with `predict_proba` for a seed. What reaches the last step of a
        pipeline is its features.
    x_pool : numpy.ndarray
        Rows of numbers, flattened if they have more axes.
    classes : int or sequence of str
        The number of classes, or their names. Classes without a label so far get probability 0.
    """

    def __init__(
        self, make: Callable[[int], Any], x_pool: np.ndarray, classes: int | Sequence[str]
    ) -> None:
        super().__init__(x_pool, classes)
        self.make = make
        self.model: Any = None
        self._trained_on: tuple[np.ndarray, np.ndarray] = (np.empty(0, int), np.empty(0, int))

    @property
    def trained(self) -> bool:
        """Whether there is a trained model."""
        return self.model is not None

    @property
    def gives(self) -> tuple[str, ...]:
        """The names of the arrays that `outputs` has once the model is trained."""
        return ("features", "probs", "label_probs", "labeled_features")

    def prepare(self, x: Any) -> np.ndarray:
        """Return data as rows of floats."""
        return np.asarray(x, dtype=np.float64).reshape(len(x), -1)

    def train(
        self, items: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, seed: int
    ) -> None:
        """Fit a new estimator; while there is a single class, predict that one for every item."""
        self._trained_on = (items, labels)
        if np.unique(labels).size < 2:
            from sklearn.dummy import DummyClassifier

            self.model = DummyClassifier(strategy="prior").fit(self.x_pool[items], labels)
            return
        self.model = self.make(seed)
        keywords = {} if weights is None else {weight_keyword(self.model): weights}
        with ignore_few_labels_warning():
            self.model.fit(self.x_pool[items], labels, **keywords)

    def outputs(self, items: np.ndarray, labeled: np.ndarray, seed: int) -> ArrayPool:
        """Return features, probabilities and a cross-validated label distribution."""
        if not self.trained:
            return ArrayPool(size=len(items), features=lambda: self.x_pool[items])
        return ArrayPool(
            size=len(items),
            features=lambda: self.space(items),
            probs=lambda: self.probs(items),
            label_probs=lambda: self._label_probs(items),
            labeled_features=lambda: self.space(labeled),
        )

    def probs(self, items: np.ndarray) -> np.ndarray:
        """Return the predicted probabilities of rows of the pool, (items, classes)."""
        return self._probs(self.x_pool[items])

    def predict_proba(self, x: Any) -> np.ndarray:
        """Return the predicted probabilities of any data of the pool's kind, (n, classes)."""
        return self._probs(self.prepare(x))

    def space(self, items: np.ndarray) -> np.ndarray:
        """Return rows of the pool as the last step of a pipeline sees them."""
        from sklearn.pipeline import Pipeline

        rows = self.x_pool[items]
        if isinstance(self.model, Pipeline) and len(items):
            return np.asarray(self.model[:-1].transform(rows))
        return rows

    def _probs(self, rows: np.ndarray) -> np.ndarray:
        probs_NC = np.zeros((len(rows), self.classes))
        probs_NC[:, self.model.classes_] = self.model.predict_proba(rows)
        return probs_NC

    def _label_probs(self, items: np.ndarray) -> np.ndarray:
        probs_NC = self.probs(items)
        labeled, labels = self._trained_on
        try:
            with ignore_few_labels_warning():
                temperature = cross_validated_temperature(
                    self.make(0), self.x_pool[labeled], labels
                )
        except SabalError:
            # Too few labels for folds: use the prediction itself; the strategy says what that
            # means for it.
            return probs_NC
        return np.asarray(apply_temperature(log_probs_of(probs_NC), temperature))
