"""Predictions of a fitted scikit-learn estimator for a pool."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from sabal.core.checks import check_choice
from sabal.errors import InputError
from sabal.predictions.calibration import (
    apply_temperature,
    check_instance,
    cross_validated_temperature,
)
from sabal.predictions.softmax import log_probs_of
from sabal.predictions.spread import means_and_variances
from sabal.predictions.tree_features import (
    has_leaves,
    ignores_units,
    leaf_features,
    ranked_columns,
)

DENSE_COLUMNS = 2048
"""Sparse features with more columns are projected rather than converted to dense."""

PROJECTED_COLUMNS = 512

LOSSES = ("softmax", "sigmoid", "squared")


class EstimatorPrediction:
    """The arrays of a pool that an estimator predicts, each computed on first use.

    The parameters are those of `sabal.query`. `notes` is filled as arrays are computed.

    Attributes
    ----------
    loss : str
        What the estimator predicts: one class, several labels, or numbers.
    """

    def __init__(
        self,
        estimator: Any,
        X_pool: Any,
        X_labeled: Any,
        y_labeled: Any,
        features: Any,
        labeled_features: Any,
        loss: str | None = None,
    ) -> None:
        check_instance(estimator)
        estimator = getattr(estimator, "best_estimator_", estimator)  # of a search
        self.loss = _loss_of(estimator) if loss is None else check_choice(loss, "loss", LOSSES)
        if self.loss != "squared":
            _check_classifier(estimator)
        if (X_labeled is None) != (y_labeled is None):
            raise InputError(
                "X_labeled and y_labeled together", "one without the other", "pass both or none"
            )
        if labeled_features is not None and features is None:
            raise InputError(
                "`labeled_features` beside `features`",
                "no features",
                "pass X_labeled and y_labeled",
            )
        self.estimator, self.X_pool = estimator, X_pool
        self.X_labeled, self.y_labeled = X_labeled, y_labeled
        self.columns = _Columns(estimator, X_pool, features is None)
        self.features = self.columns.dense(features)
        self.labeled_features = self.columns.dense(labeled_features)
        self.size = rows_of(X_pool)

    @property
    def notes(self) -> dict[str, Any]:
        """Facts about how the arrays were computed."""
        return self.columns.notes

    def arrays(self) -> dict[str, Any]:
        """Return the arrays of the pool, or functions that compute them."""
        found: dict[str, Any] = {"features": self.features, "loss": self.loss}
        if self.features is None:
            found["features"] = lambda: self.columns.of(self.X_pool)
        if self.loss == "squared":
            found |= {"means": lambda: self._moments[0], "variances": lambda: self._moments[1]}
        else:
            found["probs"] = self._probs
        labeled: Any = self.labeled_features
        if self.X_labeled is not None:
            if self.loss == "softmax":
                found["label_probs"] = self._label_probs
            if self.features is None:
                labeled = self._labeled_columns
        return {**found, "labeled_features": labeled}

    def _probs(self) -> np.ndarray:
        probs = _call_checked(self.estimator.predict_proba, self.X_pool)
        if isinstance(probs, list):
            return _rates(probs, self.estimator.classes_)
        return np.asarray(probs)

    def _label_probs(self) -> np.ndarray:
        temperature = cross_validated_temperature(self.estimator, self.X_labeled, self.y_labeled)
        self.notes["temperature"] = temperature
        return np.asarray(apply_temperature(log_probs_of(self._probs()), temperature))

    def _labeled_columns(self) -> np.ndarray:
        return self.columns.of(self.X_labeled)

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean and the variance of every prediction of a regressor."""
        steps = self.columns.before_last_of(self.estimator)
        X = self.X_pool if steps is None else _call_checked(steps.transform, self.X_pool)
        return _call_checked(lambda rows: means_and_variances(last_step(self.estimator), rows), X)


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    from sklearn.pipeline import Pipeline

    return last_step(estimator[-1]) if isinstance(estimator, Pipeline) else estimator


def _loss_of(estimator: Any) -> str:
    """Return what an estimator predicts, as far as it says so itself."""
    if is_regressor(estimator):
        return "squared"
    last = last_step(estimator)
    several = (
        isinstance(getattr(last, "classes_", None), list)  # forests, neighbours, MultiOutput
        or getattr(last, "multilabel_", False)  # OneVsRestClassifier
        or hasattr(last, "order_")  # ClassifierChain
        or (getattr(last, "out_activation_", "") == "logistic" and last.n_outputs_ > 1)  # MLP
    )
    return "sigmoid" if several else "softmax"


def is_regressor(estimator: Any) -> bool:
    """Return whether an estimator says that it is a regressor."""
    from sklearn import base

    if hasattr(estimator, "__sklearn_tags__"):
        return bool(base.is_regressor(estimator))
    # Releases of scikit-learn before 1.6, and estimators of other packages.
    return getattr(estimator, "_estimator_type", None) == "regressor"


def _rates(probs: list[Any], classes: list[Any]) -> np.ndarray:
    """Return the probability of each label, from a prediction per output of 0 or 1."""
    columns = []
    for output, (probs_NC, classes_C) in enumerate(zip(probs, classes, strict=True)):
        names = np.asarray(classes_C)
        if names.dtype.kind not in "biuf" or not np.isin(names, (0, 1)).all():
            raise InputError(
                "a classifier of one class per item, or of labels that are 0 or 1",
                f"output {output} of {len(probs)} with the classes {names.tolist()}",
                "choose for one output at a time",
            )
        # A label that has always been the same so far has a single column.
        probs_NC = np.asarray(probs_NC)
        found = [probs_NC[:, k] for k, name in enumerate(names) if name == 1]
        columns.append(found[0] if found else np.zeros(len(probs_NC)))
    return np.stack(columns, axis=1)


def _check_classifier(estimator: Any) -> None:
    if not hasattr(estimator, "predict_proba"):
        calibrate = "wrap it in sklearn.calibration.CalibratedClassifierCV"
        arrays = "use sabal.select with the features and predictions of your model"
        raise InputError(
            "a scikit-learn classifier with predict_proba, or a regressor",
            type(estimator).__name__,
            calibrate if hasattr(estimator, "decision_function") else arrays,
        )


class _Columns:
    """What an estimator's last step sees of items, as a dense array.

    This is its input, and for trees their leaves, or the ranks of the input.
    """

    def __init__(self, estimator: Any, X_pool: Any, wanted: bool) -> None:
        self.before_last = self.before_last_of(estimator) if wanted else None
        self.last = estimator if self.before_last is None else estimator[-1]
        self.X_pool = X_pool
        self.notes: dict[str, Any] = {}

    @staticmethod
    def before_last_of(estimator: Any) -> Any:
        """Return the steps of a pipeline before its last; None if there are none."""
        from sklearn.pipeline import Pipeline

        several = isinstance(estimator, Pipeline) and len(estimator) > 1
        return estimator[:-1] if several else None

    def of(self, X: Any) -> np.ndarray:
        """Return the features of some rows."""
        seen = self._seen(X)
        if has_leaves(self.last, seen):
            self.notes["features_from"] = "leaves"
            return leaf_features(self.last, seen)
        if ignores_units(self.last):
            self.notes["features_from"] = "ranks"
            return ranked_columns(self._numbers(seen), self._numbers(self._seen(self.X_pool)))
        return self._numbers(seen)

    def _seen(self, X: Any) -> Any:
        return X if self.before_last is None else _call_checked(self.before_last.transform, X)

    def _numbers(self, seen: Any) -> np.ndarray:
        """Return the input of the last step as an array."""
        if hasattr(seen, "tocsr"):
            return self.dense(seen)
        try:
            return np.asarray(seen, dtype=np.float64 if not _is_float32(seen) else np.float32)
        except (TypeError, ValueError):
            raise InputError(
                "numbers as the input of the estimator's last step",
                "values that are not numeric",
                "pass features= with one numeric row per item",
            ) from None

    def dense(self, matrix: Any) -> Any:
        """Return a sparse matrix as an array of at most `DENSE_COLUMNS`, all else as it is."""
        if not hasattr(matrix, "tocsr"):
            return matrix
        if matrix.shape[1] <= DENSE_COLUMNS:
            return np.asarray(matrix.toarray())
        from sklearn.random_projection import SparseRandomProjection

        # A fixed seed, so that pool and labelled items share one projection.
        projection = SparseRandomProjection(PROJECTED_COLUMNS, dense_output=True, random_state=0)
        self.notes["features_projected_from"] = matrix.shape[1]
        return np.asarray(projection.fit_transform(matrix.tocsr()))


def _call_checked(call: Any, X: Any) -> Any:
    """Return `call(X)`, and turn scikit-learn's errors about the input into InputError."""
    from sklearn.exceptions import NotFittedError

    try:
        return call(X)
    except InputError:
        raise
    except NotFittedError as error:
        raise InputError("a fitted estimator", str(error), "call fit first") from None
    except ValueError as error:
        # Only the first line: scikit-learn adds long advice, or the whole array.
        reason = str(error).splitlines()[0][:200]
        raise InputError(
            "`X_pool` as the estimator was trained on", reason, "pass the same columns"
        ) from None


def rows_of(X: Any) -> int:
    """Return the number of rows of an array, a sparse matrix, a frame or a list."""
    shape = getattr(X, "shape", None)
    if shape:
        return int(shape[0])
    try:
        return len(X)
    except TypeError:
        raise InputError(
            "`X_pool` with a row for every item", repr(X), "pass query(estimator, X_pool, budget)"
        ) from None


def _is_float32(values: Any) -> bool:
    return getattr(values, "dtype", None) == np.float32
