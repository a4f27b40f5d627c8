"""Posterior samples from other libraries, whose axes and units are told and never guessed."""

from __future__ import annotations

from typing import Any

import numpy as np

from sabal.core.arrays import Array, as_array, namespace
from sabal.core.checks import check_choice, check_log_probs, check_logits, check_probs
from sabal.errors import InputError, shown

OURS = "NKC"
"""Items, posterior samples, classes."""

VALUES = ("probs", "log_probs", "logits")


def log_probs_from(array: Any, *, axes: str, values: str) -> Array:
    """(n, samples, classes) log-probabilities, as `sabal.select(log_probs=...)` takes them.

    axes: the axes of `array` in their order, N for items, K for posterior samples, C for classes:
        "NKC" of batchbald_redux, "NCK" of baal, "KNC" of laplace-torch's `predictive_samples` and
        of a stack of what the members of an ensemble predict for the pool.
    values: what `array` holds: "probs", "log_probs" or "logits".
    The samples have to be the same models for every item, or equal items look unrelated: dropout
    masks drawn for every item anew are not, nor is pred_type="glm" of laplace-torch ("nn", of the
    whole pool in one call, is). The array stays in its library.
    """
    if not isinstance(axes, str) or sorted(axes) != sorted(OURS):
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
    array_NKC = xp.permute_dims(given, tuple(axes.index(letter) for letter in OURS))
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
