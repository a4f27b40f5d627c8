"""Choosing with a trained scikit-learn classifier: what it says of a pool becomes Outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sabal.api import choose
from sabal.errors import InputError
from sabal.pools.outputs import Outputs
from sabal.predictions.calibration import (
    apply_temperature,
    check_instance,
    cross_validated_temperature,
    log_probs_of,
)
from sabal.selection import Selection
from sabal.sparse.formulate import RandomState

DENSE_COLUMNS = 2048
"""Sparse features up to this many columns are made dense as they are; wider ones are projected."""

PROJECTED_COLUMNS = 512


def query(
    estimator: Any,
    X_pool: Any,
    budget: int,
    *,
    X_labeled: Any = None,
    y_labeled: Any = None,
    features: Any = None,
    labeled_features: Any = None,
    strategy: str = "sabal",
    ids: Any = None,
    random_state: RandomState = None,
    **options: Any,
) -> Selection:
    """Choose `budget` rows of `X_pool` to label, with a fitted scikit-learn classifier.

    The prediction is `estimator.predict_proba(X_pool)`. The features are what the final step of a
    pipeline sees, `X_pool` itself for any other classifier, or `features` when given. Sparse
    features with many columns are projected at random to 512 (distances keep).

    X_labeled, y_labeled: what the classifier was trained on. With them the label distribution is
        the prediction at a temperature found by cross-validation (trained once per fold, only for
        strategies that use it), and strategies that look at labelled items can.
    labeled_features: where `features` are given, those of what is labelled already.
    strategy, ids, random_state, options: as in `sabal.select`.
    """
    check_instance(estimator)
    if not hasattr(estimator, "predict_proba"):
        calibrate = "wrap it in sklearn.calibration.CalibratedClassifierCV"
        arrays = "use sabal.select with the features and predictions of your model"
        raise InputError(
            "a scikit-learn classifier with predict_proba",
            type(estimator).__name__,
            calibrate if hasattr(estimator, "decision_function") else arrays,
        )
    if (X_labeled is None) != (y_labeled is None):
        raise InputError(
            "X_labeled and y_labeled together", "one without the other", "pass both or none"
        )
    if labeled_features is not None and features is None:
        raise InputError(
            "`labeled_features` beside `features`", "no features", "pass X_labeled and y_labeled"
        )
    columns = _Columns(estimator, features is None)
    notes = columns.notes

    def pool_probs() -> np.ndarray:
        return _predict(estimator, X_pool)

    def label_probs() -> np.ndarray:
        temperature = cross_validated_temperature(estimator, X_labeled, y_labeled)
        notes["temperature"] = temperature
        return np.asarray(apply_temperature(log_probs_of(pool_probs()), temperature))

    outputs = Outputs(
        size=_rows(X_pool),
        features=(lambda: columns.of(X_pool)) if features is None else features,
        probs=pool_probs,
        label_probs=None if X_labeled is None else label_probs,
        labeled_features=(
            labeled_features
            if X_labeled is None or features is not None
            else lambda: columns.of(X_labeled)
        ),
        ids=ids,
    )
    selection = choose(outputs, budget, strategy, random_state, options)
    return replace(selection, evidence={**selection.evidence, **notes})


class _Columns:
    """The numbers that an estimator's last step sees, dense."""

    def __init__(self, estimator: Any, wanted: bool) -> None:
        from sklearn.pipeline import Pipeline

        self.before_last = (
            estimator[:-1]
            if wanted and isinstance(estimator, Pipeline) and len(estimator) > 1
            else None
        )
        self.notes: dict[str, Any] = {}

    def of(self, X: Any) -> np.ndarray:
        seen = X if self.before_last is None else _said_plainly(self.before_last.transform, X)
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

        # Seeded by nothing but the width: pool and labelled items share one projection.
        projection = SparseRandomProjection(PROJECTED_COLUMNS, dense_output=True, random_state=0)
        self.notes["features_projected_from"] = matrix.shape[1]
        return np.asarray(projection.fit_transform(matrix))


def _predict(estimator: Any, X: Any) -> np.ndarray:
    probs = _said_plainly(estimator.predict_proba, X)
    if isinstance(probs, list):
        raise InputError(
            "a classifier of one label per item",
            f"predictions for {len(probs)} outputs",
            "choose for one output at a time",
        )
    return np.asarray(probs)


def _said_plainly(call: Any, X: Any) -> Any:
    """`call(X)`, with scikit-learn's complaints about the caller's input as our own errors."""
    from sklearn.exceptions import NotFittedError

    try:
        return call(X)
    except NotFittedError as error:
        raise InputError("a fitted classifier", str(error), "call fit first") from None
    except ValueError as error:
        # Only its first line: scikit-learn adds pages of advice, or the whole array.
        said = str(error).splitlines()[0][:200]
        raise InputError(
            "`X_pool` as the classifier was trained on", said, "pass the same columns"
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
