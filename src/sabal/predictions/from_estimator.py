"""Predictions of a fitted scikit-learn classifier for a pool."""

from __future__ import annotations

from typing import Any

import numpy as np

from sabal.errors import InputError
from sabal.predictions.calibration import (
    apply_temperature,
    check_instance,
    cross_validated_temperature,
)
from sabal.predictions.softmax import log_probs_of

DENSE_COLUMNS = 2048
"""Sparse features with more columns are projected rather than converted to dense."""

PROJECTED_COLUMNS = 512


class EstimatorPrediction:
    """The arrays of a pool that a classifier predicts, each computed on first use.

    The parameters are those of `sabal.query`. `notes` is filled as arrays are computed.
    """

    def __init__(
        self,
        estimator: Any,
        X_pool: Any,
        X_labeled: Any,
        y_labeled: Any,
        features: Any,
        labeled_features: Any,
    ) -> None:
        check_instance(estimator)
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
        self.features, self.labeled_features = features, labeled_features
        self.columns = _Columns(estimator, features is None)
        self.size = _rows(X_pool)

    @property
    def notes(self) -> dict[str, Any]:
        """Facts about how the arrays were computed."""
        return self.columns.notes

    def arrays(self) -> dict[str, Any]:
        """Return the arrays of the pool, or functions that compute them."""
        found: dict[str, Any] = {"features": self.features, "probs": self._probs}
        if self.features is None:
            found["features"] = lambda: self.columns.of(self.X_pool)
        labeled: Any = self.labeled_features
        if self.X_labeled is not None:
            found["label_probs"] = self._label_probs
            if self.features is None:
                labeled = self._labeled_columns
        return {**found, "labeled_features": labeled}

    def _probs(self) -> np.ndarray:
        return _predict(self.estimator, self.X_pool)

    def _label_probs(self) -> np.ndarray:
        temperature = cross_validated_temperature(self.estimator, self.X_labeled, self.y_labeled)
        self.notes["temperature"] = temperature
        return np.asarray(apply_temperature(log_probs_of(self._probs()), temperature))

    def _labeled_columns(self) -> np.ndarray:
        return self.columns.of(self.X_labeled)


def _check_classifier(estimator: Any) -> None:
    if not hasattr(estimator, "predict_proba"):
        calibrate = "wrap it in sklearn.calibration.CalibratedClassifierCV"
        arrays = "use sabal.select with the features and predictions of your model"
        raise InputError(
            "a scikit-learn classifier with predict_proba",
            type(estimator).__name__,
            calibrate if hasattr(estimator, "decision_function") else arrays,
        )


class _Columns:
    """The input of an estimator's last step as a dense array."""

    def __init__(self, estimator: Any, wanted: bool) -> None:
        from sklearn.pipeline import Pipeline

        self.before_last = (
            estimator[:-1]
            if wanted and isinstance(estimator, Pipeline) and len(estimator) > 1
            else None
        )
        self.notes: dict[str, Any] = {}

    def of(self, X: Any) -> np.ndarray:
        """Return the columns of some rows."""
        seen = X if self.before_last is None else _call_checked(self.before_last.transform, X)
        if hasattr(seen, "tocsr"):
            return self._dense(seen.tocsr())
        try:
            return np.asarray(seen, dtype=np.float64 if not _is_float32(seen) else np.float32)
        except (TypeError, ValueError):
            raise InputError(
                "numbers as the input of the classifier's last step",
                "values that are not numeric",
                "pass features= with one numeric row per item",
            ) from None

    def _dense(self, matrix: Any) -> np.ndarray:
        if matrix.shape[1] <= DENSE_COLUMNS:
            return np.asarray(matrix.toarray())
        from sklearn.random_projection import SparseRandomProjection

        # A fixed seed, so that pool and labelled items share one projection.
        projection = SparseRandomProjection(PROJECTED_COLUMNS, dense_output=True, random_state=0)
        self.notes["features_projected_from"] = matrix.shape[1]
        return np.asarray(projection.fit_transform(matrix))


def _predict(estimator: Any, X: Any) -> np.ndarray:
    probs = _call_checked(estimator.predict_proba, X)
    if isinstance(probs, list):
        raise InputError(
            "a classifier of one label per item",
            f"predictions for {len(probs)} outputs",
            "choose for one output at a time",
        )
    return np.asarray(probs)


def _call_checked(call: Any, X: Any) -> Any:
    """Return `call(X)`, and turn scikit-learn's errors about the input into InputError."""
    from sklearn.exceptions import NotFittedError

    try:
        return call(X)
    except NotFittedError as error:
        raise InputError("a fitted classifier", str(error), "call fit first") from None
    except ValueError as error:
        # Only the first line: scikit-learn adds long advice, or the whole array.
        reason = str(error).splitlines()[0][:200]
        raise InputError(
            "`X_pool` as the classifier was trained on", reason, "pass the same columns"
        ) from None


def _rows(X: Any) -> int:
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
