"""The uncertainty of regressors: their own standard deviation, or the spread of an ensemble."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from sabal.errors import InputError


def means_and_variances(regressor: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the variance of a fitted regressor's prediction, (n, outputs) each.

    The variance is the square of the standard deviation that `predict(X, return_std=True)` returns
    (Gaussian processes, Bayesian ridge regression), or the variance between the members of an
    ensemble (forests, bagging, voting). `MultiOutputRegressor` has a regressor per output.
    """
    if "return_std" in inspect.signature(regressor.predict).parameters:
        mean, deviation = regressor.predict(X, return_std=True)
        return _columns(mean), _columns(deviation) ** 2
    if not hasattr(regressor, "estimators_") and hasattr(regressor, "predict"):
        # An ensemble that is not fitted has no members yet: let it say so itself.
        regressor.predict(X)
    if type(regressor).__name__ == "MultiOutputRegressor":
        found = [means_and_variances(each, X) for each in regressor.estimators_]
        return np.hstack([mean for mean, _ in found]), np.hstack([var for _, var in found])
    predictions_KNO = np.stack([_columns(each) for each in _member_predictions(regressor, X)])
    return predictions_KNO.mean(axis=0), predictions_KNO.var(axis=0)


def _member_predictions(regressor: Any, X: Any) -> list[Any]:
    """Return the prediction of every member of an ensemble."""
    members: Any = getattr(regressor, "estimators_", None)
    # The trees of gradient boosting, a matrix, add up; those of an ensemble agree or disagree.
    independent = isinstance(members, list) and not hasattr(regressor, "order_")
    if not independent or len(members) < 2:
        raise InputError(
            "a regressor with predict(X, return_std=True), or an ensemble of several",
            type(regressor).__name__,
            "wrap it in sklearn.ensemble.BaggingRegressor, or pass means= and variances= to "
            "sabal.select",
        )
    columns = getattr(regressor, "estimators_features_", [slice(None)] * len(members))
    # Members are trained on arrays, and would warn about the names of columns.
    plain = X if hasattr(X, "tocsr") else np.asarray(X)
    return [
        each.predict(X if hasattr(each, "feature_names_in_") else plain[:, used])
        for each, used in zip(members, columns, strict=True)
    ]


def _columns(values: Any) -> np.ndarray:
    """Return an (n, outputs) array; (n,) is one output."""
    array = np.asarray(values, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array
