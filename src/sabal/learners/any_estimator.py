"""A learner around any scikit-learn estimator, on data of any kind: rows, texts, frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from sabal.errors import InputError
from sabal.learners.estimator_learner import ignore_few_labels_warning, weight_keyword
from sabal.learners.learner import Learner
from sabal.pools import ArrayPool
from sabal.predictions.calibration import check_instance, rows_at
from sabal.predictions.from_estimator import EstimatorPrediction, is_regressor, rows_of

STEP = 0.1
"""Predictions of a regressor are the same if they differ by less of the labels' deviation."""


class AnyEstimatorLearner(Learner):
    """A scikit-learn classifier or regressor, a clone of which is fitted in every training.

    Labels are what the estimator takes: classes of any type, rows of zeros and ones, or numbers.

    Parameters
    ----------
    estimator : classifier or regressor
        As in `sabal.query`. Where its `random_state` is None, the seed of the training is used.
    x_pool : array, sparse matrix, DataFrame or list
        The items of the pool.
    features : array, optional
        What tells items apart, where that is not what the estimator sees.
    """

    def __init__(self, estimator: Any, x_pool: Any, features: Any = None) -> None:
        check_instance(estimator)
        if not hasattr(estimator, "fit"):
            raise InputError(
                "an estimator with fit and predict",
                type(estimator).__name__,
                "pass a scikit-learn estimator, or a sabal.loop.Learner",
            )
        super().__init__(x_pool, 0)
        self.estimator, self.features = estimator, features
        self.model: Any = None
        self._one_class = False
        self._trained_on: tuple[np.ndarray, np.ndarray] = (np.empty(0, int), np.empty(0, int))

    def prepare(self, x: Any) -> Any:
        """Return data as they are."""
        return x

    @property
    def size(self) -> int:
        """The number of items in the pool, labelled or not."""
        return rows_of(self.x_pool)

    @property
    def trained(self) -> bool:
        """Whether there is a trained model."""
        return self.model is not None

    @property
    def gives(self) -> tuple[str, ...]:
        """The names of the arrays that `outputs` has once the model is trained."""
        if is_regressor(self.estimator):
            return ("features", "means", "variances", "labeled_features")
        return ("features", "probs", "label_probs", "labeled_features")

    def train(
        self, items: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, seed: int
    ) -> None:
        """Fit a clone; while there is a single class, predict that one for every item."""
        from sklearn.base import clone
        from sklearn.dummy import DummyClassifier

        self._trained_on = (items, labels)
        rows = rows_at(self.x_pool, items)
        single = labels.ndim == 1 and np.unique(labels).size < 2
        self._one_class = single and not is_regressor(self.estimator)
        if self._one_class:
            self.model = DummyClassifier(strategy="prior").fit(rows, labels)
            return
        self.model = _seeded(clone(self.estimator), seed)
        keywords = {} if weights is None else {weight_keyword(self.model): weights}
        with ignore_few_labels_warning():
            self.model.fit(rows, labels, **keywords)

    def outputs(self, items: np.ndarray, labeled: np.ndarray, seed: int) -> ArrayPool:
        """Return the arrays of `sabal.query`, or before training the features alone."""
        if not self.trained or self._one_class:
            return self._without_model(items, labeled)
        known, labels = self._trained_on
        own, theirs = None, None
        if self.features is not None:
            own, theirs = rows_at(self.features, items), rows_at(self.features, known)
        said = EstimatorPrediction(
            self.model,
            rows_at(self.x_pool, items),
            rows_at(self.x_pool, known),
            labels,
            own,
            theirs,
        )
        return ArrayPool(size=len(items), **said.arrays())

    def _without_model(self, items: np.ndarray, labeled: np.ndarray) -> ArrayPool:
        space = self._numbers()
        if space is None:
            return ArrayPool(size=len(items))
        known = rows_at(space, labeled) if len(labeled) else None
        return ArrayPool(features=rows_at(space, items), labeled_features=known)

    def _numbers(self) -> Any:
        """Return what is known of the items without a model; None for texts and the like."""
        if self.features is not None:
            return self.features
        if hasattr(self.x_pool, "tocsr"):
            return None
        try:
            return np.asarray(self.x_pool, dtype=np.float64)
        except (TypeError, ValueError):
            return None

    def probs(self, items: np.ndarray) -> np.ndarray:
        """Return the predicted probabilities of rows of the pool, (items, classes)."""
        return self.predict_proba(rows_at(self.x_pool, items))

    def predict_proba(self, x: Any) -> np.ndarray:
        """Return the predicted probabilities of any data of the pool's kind, (n, classes)."""
        return np.asarray(self._model().predict_proba(x))

    def predict(self, x: Any) -> np.ndarray:
        """Return the predictions for any data of the pool's kind, as the estimator makes them."""
        return np.asarray(self._model().predict(x))

    def decide(self, x: Any) -> np.ndarray:
        """Return predictions to compare between rounds; numbers in steps of `STEP` deviations."""
        found = self.predict(x)
        if not is_regressor(self.estimator):
            return found
        deviation = np.std(self._trained_on[1].astype(np.float64), axis=0)
        return np.asarray(np.round(found / np.maximum(STEP * deviation, 1e-300)))

    def decide_items(self, items: np.ndarray) -> np.ndarray:
        """Return predictions to compare between rounds, for rows of the pool."""
        return self.decide(rows_at(self.x_pool, items))

    def space(self, items: np.ndarray) -> np.ndarray:
        """Return rows of the pool as the last step of a pipeline sees them."""
        return np.asarray(self.outputs(items, self._trained_on[0], 0).features)

    def measure(self, x: Any, y: Any) -> dict[str, float]:
        """Return `accuracy`, and `log_loss` of classes; for a regressor `rmse` and `r2`."""
        from sklearn import metrics

        found, y = self.predict(x), np.asarray(y)
        if is_regressor(self.estimator):
            rmse = float(np.sqrt(metrics.mean_squared_error(y, found)))
            return {"rmse": rmse, "r2": float(metrics.r2_score(y, found))}
        measured = {"accuracy": float(np.mean(found == y))}
        classes = getattr(self._model(), "classes_", None)
        if y.ndim == 1 and isinstance(classes, np.ndarray) and np.isin(y, classes).all():
            loss = metrics.log_loss(y, self.predict_proba(x), labels=classes)
            measured["log_loss"] = float(loss)
        return measured

    def _model(self) -> Any:
        if self.model is None:
            raise InputError("a trained model", "none yet", "tell some labels and call fit()")
        return self.model


def _seeded(estimator: Any, seed: int) -> Any:
    """Set the seed of an estimator and of its parts wherever it has none."""
    unset = {
        name: seed
        for name, value in estimator.get_params().items()
        if value is None and name.split("__")[-1] == "random_state"
    }
    return estimator.set_params(**unset)
