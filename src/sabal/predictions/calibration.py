"""Calibration: an estimate q of the label distribution of the pool.

q is not the model's raw prediction p. With q = p every gradient atom is exactly zero, so q has to
come from another source: held-out labels (temperature scaling), cross-validation, or a posterior.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sabal.core.arrays import Array, as_array, take_rows, to_float64_numpy, to_numpy
from sabal.core.checks import (
    check_logits,
    check_number,
    check_same_items,
    check_whole,
)
from sabal.errors import InputError
from sabal.predictions.softmax import log_probs_of, softmax

LOG_TEMPERATURE_BOUNDS = (np.log(1e-2), np.log(1e2))


def apply_temperature(logits: Any, temperature: float) -> Array:
    """Return q = softmax(logits / T).

    Parameters
    ----------
    logits : array of shape (n, classes)
        Logits or log-probabilities.
    temperature : float
        T; above 1 the result is less confident than the prediction.
    """
    temperature = check_number(temperature, "temperature", above=0.0)
    return softmax(check_logits(logits) / temperature)


def fit_temperature(logits: Any, labels: Any) -> float:
    """Return the temperature T for which softmax(logits / T) fits held-out labels best.

    Parameters
    ----------
    logits : array of shape (n, classes)
        Logits or log-probabilities of held-out items.
    labels : array of shape (n,)
        Their class indices.

    Notes
    -----
    The negative log-likelihood is convex in 1/T, so it has one minimum in log T, which is found by
    a bounded search. If the logits separate the labels without an error the minimum is at T = 0;
    then a small T is returned below which the likelihood does not change.
    """
    logits_NC = to_float64_numpy(check_logits(logits))
    n, classes = logits_NC.shape
    labels_N = _check_labels(labels, n, classes)
    centred_NC = logits_NC - logits_NC.max(axis=1, keepdims=True)
    of_label_N = centred_NC[np.arange(n), labels_N]

    def negative_log_likelihood(log_temperature: float) -> float:
        scale = np.exp(-log_temperature)
        log_normaliser_N = np.log(np.exp(scale * centred_NC).sum(axis=1))
        return float(np.mean(log_normaliser_N - scale * of_label_N))

    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        negative_log_likelihood,
        bounds=LOG_TEMPERATURE_BOUNDS,
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(np.exp(found.x))


def cross_validated_temperature(
    estimator: Any, X: Any, y: Any, *, folds: int = 5, random_state: int | None = 0
) -> float:
    """Return a temperature for a scikit-learn classifier without held-out labels.

    Clones of `estimator` are trained on all folds but one and predict the remaining fold; the
    temperature is fitted to these predictions. Held-out rows of a class that is missing from the
    other folds are ignored.

    Parameters
    ----------
    estimator : classifier
        A classifier with `predict_proba`.
    X : array-like with n rows
        The labelled items.
    y : array of shape (n,)
        Their labels.
    folds : int
        The number of folds, at most the size of the smallest class if that is 2 or more.
    random_state : int, optional
        The seed of the folds.
    """
    from sklearn.base import clone
    from sklearn.model_selection import KFold, StratifiedKFold

    folds = check_whole(folds, "folds", minimum=2)
    check_instance(estimator)
    y = np.asarray(y)
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if y.ndim != 1 or y.size != rows:
        raise InputError(
            "one label for every row of the labelled items",
            f"{rows} rows and labels of shape {y.shape}",
            "pass rows and labels of the same items",
        )
    classes, class_N, counts = np.unique(y, return_inverse=True, return_counts=True)
    if classes.size < 2 or y.size < 4:
        raise InputError(
            "at least 4 labelled items of at least 2 classes",
            f"{y.size} items of {classes.size} classes",
            "label more, or pass `label_probs`",
        )
    # Folds are stratified unless a class has only one item.
    stratified = counts.min() >= 2
    splitter_class = StratifiedKFold if stratified else KFold
    splits = min(folds, int(counts.min()) if stratified else y.size)
    splitter = splitter_class(splits, shuffle=True, random_state=random_state)

    log_probs, targets = [], []
    for train, held_out in splitter.split(np.zeros(y.size), class_N):
        if np.unique(class_N[train]).size < 2:
            continue
        model = clone(estimator).fit(rows_at(X, train), y[train])
        probs_NC = np.asarray(model.predict_proba(rows_at(X, held_out)), dtype=np.float64)
        columns = np.searchsorted(classes, model.classes_)
        known = np.isin(class_N[held_out], columns)
        # Classes that the clone has not seen have probability zero.
        full_NC = np.zeros((held_out.size, classes.size))
        full_NC[:, columns] = probs_NC
        log_probs.append(log_probs_of(full_NC[known]))
        targets.append(class_N[held_out][known])
    return fit_temperature(np.concatenate(log_probs), np.concatenate(targets))


def rows_at(X: Any, indices: np.ndarray) -> Any:
    """Return the rows of an array, a sparse matrix, a frame or a list at `indices`."""
    if hasattr(X, "iloc"):
        return X.iloc[indices]
    if hasattr(X, "tocsr"):
        return X.tocsr()[indices]
    if hasattr(X, "shape"):
        return take_rows(X, indices)
    return [X[index] for index in indices]


def check_instance(estimator: Any) -> None:
    """Raise if `estimator` is a class rather than an instance."""
    if isinstance(estimator, type):
        raise InputError(
            "an estimator", f"the class {estimator.__name__}", f"pass {estimator.__name__}()"
        )


def _check_labels(labels: Any, n: int, classes: int) -> np.ndarray:
    values = as_array(labels, "labels")
    check_same_items(logits=np.empty((n, 1)), labels=values)
    numbers = to_numpy(values)
    if numbers.ndim != 1 or not np.array_equal(numbers, np.floor(numbers)):
        raise InputError(
            "`labels` as one whole number per item",
            f"shape {numbers.shape}, dtype {numbers.dtype}",
            "pass class indices, not one-hot rows",
        )
    if numbers.min() < 0 or numbers.max() >= classes:
        raise InputError(
            f"`labels` between 0 and {classes - 1}, the columns of `logits`",
            f"{int(numbers.min())} to {int(numbers.max())}",
            "encode the labels as column numbers",
        )
    return numbers.astype(np.int64)
