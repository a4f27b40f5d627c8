"""Is this usable as the output of a model with this loss? As in `sabal.core.checks`."""

from __future__ import annotations

from typing import Any

from sabal.core.arrays import Array, as_array, namespace, row_chunks
from sabal.core.checks import LARGEST_SQUARE, check_features, check_logits
from sabal.core.rows import derived
from sabal.errors import InputError


def check_rates(value: Any, name: str) -> Array:
    """Probabilities of independent labels as an (n, labels) array; rows sum to anything."""
    rates_NL = check_logits(value, name)
    lowest, highest = _ends(rates_NL)
    if lowest < 0 or highest > 1:
        raise InputError(
            f"`{name}` between 0 and 1",
            f"entries from {lowest:.4g} to {highest:.4g}",
            "pass raw scores as `logits=`",
        )
    return rates_NL


def check_means(value: Any, name: str) -> Array:
    """Means as an (n, outputs) array of finite numbers; (n,) is one output."""
    means_NO = check_features(_columns(value, name), name)
    _check_largest(max(map(abs, _ends(means_NO))), LARGEST_SQUARE**0.5, name)
    return means_NO


def check_variances(value: Any, name: str) -> Array:
    """Variances as an (n, outputs) array of at least 0; (n,) is one output."""
    variances_NO = check_features(_columns(value, name), name)
    lowest, highest = _ends(variances_NO)
    if lowest < 0:
        raise InputError(
            f"`{name}` of at least 0", f"{lowest:.4g}", "pass squared standard deviations"
        )
    _check_largest(highest, LARGEST_SQUARE, name)
    return variances_NO


def _columns(value: Any, name: str) -> Array:
    """An array with an axis for the outputs, where it has none for its one output."""
    array = as_array(value, name)
    return derived(lambda rows_N: rows_N[:, None], array) if array.ndim == 1 else array


def _ends(array_NC: Array) -> tuple[float, float]:
    """The smallest and the largest entry."""
    xp = namespace(array_NC)
    lowest, highest = float("inf"), float("-inf")
    for rows in row_chunks(array_NC.shape[0], 8 * array_NC.shape[1]):
        chunk = array_NC[rows]
        lowest, highest = min(lowest, float(xp.min(chunk))), max(highest, float(xp.max(chunk)))
    return lowest, highest


def _check_largest(largest: float, limit: float, name: str) -> None:
    if largest > limit:
        raise InputError(
            f"`{name}` of at most {limit:g}", f"{largest:.3g}", "divide the targets by a constant"
        )
