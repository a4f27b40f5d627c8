"""Posterior samples of other libraries, whose axes and units are given, never guessed."""

from __future__ import annotations

from typing import Any

import numpy as np

from sabal.core.arrays import Array, as_array, namespace
from sabal.core.checks import check_choice, check_log_probs, check_logits, check_probs
from sabal.errors import InputError, shown

SABAL_AXES = "NKC"  # items, posterior samples, classes
VALUES = ("probs", "log_probs", "logits")


def log_probs_from(array: Any, *, axes: str, values: str) -> Array:
    """Convert posterior samples into log-probabilities for `sabal.select(log_probs=...)`.

    The samples have to be the same models for every item; otherwise equal items look unrelated.
    This excludes dropout masks that are drawn for every item separately, and pred_type="glm" of
    laplace-torch; pred_type="nn" in one call for the whole pool is suitable.

    Parameters
    ----------
    array : array
        The samples.
    axes : str
        The axes of `array` in their order: N for items, K for posterior samples, C for classes.
        "NKC" for batchbald_redux, "NCK" for baal, "KNC" for `predictive_samples` of laplace-torch
        and for stacked predictions of the members of an ensemble.
    values : {"probs", "log_probs", "logits"}
        What `array` holds.

    Returns
    -------
    array
        (n, samples, classes) log-probabilities, in the array library of `array`.
    """
    if not isinstance(axes, str) or sorted(axes) != sorted(SABAL_AXES):
        raise InputError(
            "`axes` as the letters N (items), K (samples) and C (classes) in the array's order",
            shown(axes),
            'pass for instance axes="KNC"',
        )
    check_choice(values, "values", VALUES)
    given = as_array(array, "array")
    if given.ndim != len(axes):
        raise InputError(
            f"an array with the {len(axes)} axes {', '.join(axes)}",
            f"shape {tuple(given.shape)}",
            "add the missing axis, or average over those that are too many",
        )
    xp = namespace(given)
    array_NKC = xp.permute_dims(given, tuple(axes.index(letter) for letter in SABAL_AXES))
    if values == "log_probs":
        return check_log_probs(array_NKC)
    rows_RC = xp.reshape(array_NKC, (-1, array_NKC.shape[2]))
    if values == "logits":
        return xp.reshape(_log_softmax(check_logits(rows_RC)), array_NKC.shape)
    with np.errstate(divide="ignore"):  # a probability of 0 is -inf
        return xp.reshape(xp.log(check_probs(rows_RC)), array_NKC.shape)


def _log_softmax(logits_RC: Array) -> Array:
    xp = namespace(logits_RC)
    shifted = logits_RC - xp.max(logits_RC, axis=-1, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))
