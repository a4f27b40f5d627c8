"""Items of which some are labelled: NaN or None marks those that are not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sabal.errors import InputError
from sabal.predictions.calibration import check_instance, rows_at
from sabal.predictions.from_estimator import rows_of


def split_by_labels(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of `X` without a label, and those with one.

    A label is missing if it is NaN, None or pandas' NA; of several labels for an item, if any is.
    """
    missing_N = missing_labels(y)
    size = rows_of(X)
    if missing_N.shape[0] != size:
        raise InputError(
            f"`y` with an entry for each of the {size} rows of X",
            f"{missing_N.shape[0]} entries",
            "pass NaN or None for items without a label",
        )
    if not missing_N.any():
        raise InputError(
            "items without a label in `y`", "none", "pass NaN or None for the items to choose from"
        )
    return np.flatnonzero(missing_N), np.flatnonzero(~missing_N)


def missing_labels(y: Any) -> np.ndarray:
    """Return whether the label of each item is missing."""
    if hasattr(y, "isna"):  # pandas
        missing = np.asarray(y.isna())
    elif getattr(y, "dtype", None) is not None and np.asarray(y).dtype.kind in "biufc":
        missing = np.isnan(np.asarray(y))
    else:
        # Not as an array: NumPy would turn NaN among strings into text.
        missing = np.array([_is_missing(label) for label in y], dtype=bool)
    return np.asarray(missing.reshape(missing.shape[0], -1).any(axis=1))


def labels_at(y: Any, rows: np.ndarray) -> np.ndarray:
    """Return the labels of some rows, none of which is missing."""
    known = rows_at(y, rows)
    labels = np.asarray(known if hasattr(known, "dtype") else list(known))
    return np.array(labels.tolist()) if labels.dtype.kind == "O" else labels


def fitted(estimator: Any, X: Any, y: np.ndarray | None) -> Any:
    """Return the estimator, or a clone trained on these items if it is not fitted yet."""
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    check_instance(estimator)
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        if y is None:
            raise InputError(
                "a fitted estimator, or labels to train it on",
                "neither",
                "label some items first; sabal.select(budget, features=X) needs no model",
            ) from None
        return clone(estimator).fit(X, y)
    except TypeError:
        return estimator  # no estimator of scikit-learn, which cannot tell
    return estimator


def _is_missing(label: Any) -> bool:
    if isinstance(label, list | tuple | np.ndarray):
        return any(_is_missing(each) for each in label)
    number = isinstance(label, float | np.floating)
    return label is None or type(label).__name__ == "NAType" or (number and math.isnan(label))
