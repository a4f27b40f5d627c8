"""Checks of input: each returns the value to use, or raises an `InputError` with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import device

from sabal.core.arrays import (
    CACHE_BYTES,
    Array,
    all_finite,
    as_array,
    namespace,
    row_chunks,
    to_float64_numpy,
    to_numpy,
)
from sabal.errors import InputError, shown

SUM_TOLERANCE = 1e-3  # of the sum of a row of probabilities: room for float16 and long rows
LARGEST_NUMBER = 1e100  # largest value of an option: products with anything in a pool stay finite
LARGEST_WHOLE = 2**53  # largest option that is a count: floats above it skip whole numbers
LARGEST_SQUARE = 1e280  # largest squared length of an atom: above it, sums overflow float64

RandomState = int | np.random.Generator | np.random.RandomState | None
"""What a caller may pass as `random_state`."""

MAX_SEED = 2**63 - 1
"""The largest seed that the files of a selection can hold; a generator may have a larger one."""


def check_features(value: Any, name: str = "features") -> Array:
    """Return features as an (n, d) array of finite numbers."""
    return _finite(_with_axes(value, name, ("items", "dimensions")), name)


def check_logits(value: Any, name: str = "logits") -> Array:
    """Return logits as an (n, classes) array of finite numbers."""
    return _finite(_with_axes(value, name, ("items", "classes")), name)


def check_probs(value: Any, name: str = "probs") -> Array:
    """Return probabilities as an (n, classes) array whose rows are distributions."""
    probs_NC = _with_axes(value, name, ("items", "classes"))
    xp = namespace(probs_NC)
    sums_N, lowest = np.empty(probs_NC.shape[0]), np.inf
    ones_C = _ones(probs_NC)
    for rows in row_chunks(probs_NC.shape[0], 8 * probs_NC.shape[1]):
        chunk = probs_NC[rows]
        # A product with ones is the fastest sum, and NaN and infinity show up in it, too.
        sums_N[rows] = to_float64_numpy(chunk @ ones_C)
        # `min` may lose a NaN here; the sums keep it.
        lowest = min(lowest, float(xp.min(chunk)))
    if not (lowest >= 0 and np.all(np.isfinite(sums_N))):
        _finite(probs_NC, name)
        raise InputError(
            f"`{name}` to hold probabilities",
            f"a negative entry ({lowest:.4g})",
            "pass logits as `logits=`; log-probabilities of posterior samples as `log_probs=`",
        )
    _check_sums(sums_N, name)
    return probs_NC


def check_scores(value: Any, name: str = "scores") -> Array:
    """Return scores as an (n,) array of finite numbers of at least 0."""
    scores_N = _finite(_with_axes(value, name, ("items",)), name)
    xp = namespace(scores_N)
    lowest, highest = float(xp.min(scores_N[:])), float(xp.max(scores_N[:]))
    if not 0 <= lowest <= highest <= LARGEST_NUMBER:
        raise InputError(
            f"`{name}` from 0 to {LARGEST_NUMBER:g}, larger for items that are worth more",
            f"{lowest if lowest < 0 else highest:.4g}",
            "subtract the smallest, or pass for instance 1 - confidence",
        )
    return scores_N


def check_log_probs(value: Any, name: str = "log_probs") -> Array:
    """Return posterior log-probabilities as an (n, samples, classes) array; -inf is allowed."""
    log_probs_NKC = _with_axes(value, name, ("items", "posterior samples", "classes"))
    xp = namespace(log_probs_NKC)
    n, samples, classes = log_probs_NKC.shape
    ones_C = _ones(log_probs_NKC)
    for rows in row_chunks(n, 8 * samples * classes, CACHE_BYTES):
        chunk = log_probs_NKC[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            sums_NK = to_numpy(xp.exp(chunk) @ ones_C)
        # A sum of 1 leaves no room for NaN or infinity, nor for more than the tolerance above 0.
        if sums_NK.min() >= 1.0 - SUM_TOLERANCE and sums_NK.max() <= 1.0 + SUM_TOLERANCE:
            continue
        row = int(np.all(np.abs(sums_NK - 1.0) <= SUM_TOLERANCE, axis=1).argmin())
        largest = float(xp.max(chunk[row]))
        if np.isnan(largest) or largest > SUM_TOLERANCE:
            raise InputError(
                f"`{name}` to hold log-probabilities (at most 0, no NaN)",
                f"NaN or a positive entry at item {rows.start + row}",
                "apply log_softmax over the classes first",
            )
        _check_sums(sums_NK[row], f"{name}[{rows.start + row}]")
    return log_probs_NKC


def check_budget(budget: Any, n: int) -> int:
    """Return the budget as an int between 1 and n."""
    whole = isinstance(budget, int | np.integer) and not isinstance(budget, bool)
    if not whole or budget < 1:
        raise InputError(
            "`budget` as a whole number of at least 1", shown(budget), "pass for instance budget=20"
        )
    if budget > n:
        raise InputError(
            f"`budget` of at most {n}, the size of the pool",
            shown(budget),
            "lower the budget or enlarge the pool",
        )
    return int(budget)


def check_number(
    value: Any, name: str, *, above: float | None = None, maximum: float = LARGEST_NUMBER
) -> float:
    """Return a number of at least 0, or strictly above `above`, and of at most `maximum`."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(
        value, bool
    )
    high_enough = number and (value > above if above is not None else value >= 0)
    if not high_enough or not value <= maximum:
        bound = "of at least 0" if above is None else f"above {above:g}"
        raise InputError(
            f"`{name}` as a number {bound} and at most {maximum:g}",
            shown(value),
            f"pass for instance {name}=1.0",
        )
    return float(value)


def check_whole(value: Any, name: str, *, minimum: int = 1) -> int:
    """Return a whole number of at least `minimum`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not minimum <= value <= LARGEST_WHOLE:
        raise InputError(
            f"`{name}` as a whole number of at least {minimum}",
            shown(value),
            f"pass for instance {name}={max(minimum, 1)}",
        )
    return int(value)


def check_flag(value: Any, name: str) -> bool:
    """Return True or False; other values that are truthy or falsy are refused."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"`{name}` as True or False", shown(value), "pass one of these")
    return bool(value)


def check_choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(
            f"`{name}` as one of {', '.join(choices)}", shown(value), "pick one of these"
        )
    return str(value)


def check_square(square: float, name: str) -> float:
    """Return a squared length of the rows of `name` (largest or mean) if it is small enough."""
    if not square <= LARGEST_SQUARE:
        raise InputError(
            f"`{name}` whose squared lengths are at most {LARGEST_SQUARE:g}",
            f"{square:.3g}",
            "divide the features by a constant; a selection depends on their scale little or not",
        )
    return square


def check_same_items(**arrays: Array) -> int:
    """Return the number of items that all `arrays` (by name) agree on."""
    sizes = {name: array.shape[0] for name, array in arrays.items() if array is not None}
    if len(set(sizes.values())) > 1:
        raise InputError(
            "every array to have one row per item",
            ", ".join(f"{name} with {size} rows" for name, size in sizes.items()),
            "pass arrays that describe the same items in the same order",
        )
    return next(iter(sizes.values()))


def check_same_classes(**arrays: Array) -> None:
    """Check that `arrays` (by name) have the same number of classes on their last axis."""
    classes = {name: array.shape[-1] for name, array in arrays.items() if array is not None}
    if len(set(classes.values())) > 1:
        raise InputError(
            "the same number of classes everywhere",
            ", ".join(f"{name} with {count}" for name, count in classes.items()),
            "give every class a column in each array, in the same order",
        )


def check_ids(ids: Any, n: int) -> np.ndarray:
    """Return distinct ids, one per item, as a NumPy array of integers or strings."""
    try:
        values = np.asarray(list(ids))
    except (TypeError, ValueError):
        raise InputError(
            "`ids` as a sequence of numbers or strings", repr(type(ids)), "pass a list"
        ) from None
    if values.ndim != 1 or values.shape[0] != n:
        raise InputError(
            f"`ids` to have one entry for each of the {n} items",
            f"shape {values.shape}",
            "pass the ids of the pool's rows, in order",
        )
    if values.dtype.kind == "O" and all(isinstance(value, str) for value in values):
        values = values.astype(str)
    if values.dtype.kind not in "iuUS":
        raise InputError(
            "`ids` to be whole numbers or strings",
            f"dtype {values.dtype}",
            "convert them with str() first",
        )
    distinct, counts = np.unique(values, return_counts=True)
    if distinct.shape[0] != n:
        raise InputError(
            "`ids` to be distinct",
            f"{distinct[counts.argmax()]!s} {counts.max()} times",
            "give every item an id of its own",
        )
    return values


def ends(array_NC: Array) -> tuple[float, float]:
    """Return the smallest and the largest entry."""
    xp = namespace(array_NC)
    lowest, highest = float("inf"), float("-inf")
    for rows in row_chunks(array_NC.shape[0], 8 * array_NC.shape[1]):
        chunk = array_NC[rows]
        lowest, highest = min(lowest, float(xp.min(chunk))), max(highest, float(xp.max(chunk)))
    return lowest, highest


def _with_axes(value: Any, name: str, axes: tuple[str, ...]) -> Array:
    array = as_array(value, name)
    if array.ndim != len(axes):
        raise InputError(
            f"`{name}` with {len(axes)} axes ({', '.join(axes)})",
            f"shape {tuple(array.shape)}",
            "reshape it; one row per item comes first",
        )
    if 0 in array.shape:
        raise InputError(
            f"`{name}` with at least one of each of {', '.join(axes)}",
            f"shape {tuple(array.shape)}",
            "pass a pool that is not empty",
        )
    return array


def _finite(array: Array, name: str) -> Array:
    if not all_finite(array):
        xp = namespace(array)
        entries = int(np.prod(array.shape[1:]))
        bad = np.concatenate(
            [
                to_numpy(~xp.isfinite(array[rows])).reshape(rows.stop - rows.start, -1).any(axis=1)
                for rows in row_chunks(array.shape[0], 8 * entries)
            ]
        )
        raise InputError(
            f"`{name}` without NaN or infinity",
            f"{int(bad.sum())} of {bad.size} rows with some, the first at row {int(bad.argmax())}",
            "drop or repair these rows",
        )
    return array


def _ones(array: Array) -> Array:
    """Return a vector of ones to multiply the last axis of `array` with."""
    return namespace(array).ones(array.shape[-1], dtype=array.dtype, device=device(array))


def _check_sums(sums: np.ndarray, name: str) -> None:
    wrong = np.abs(sums - 1.0) > SUM_TOLERANCE
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"every row of `{name}` to sum to 1",
            f"{int(wrong.sum())} rows that do not, the first at row {row} (sum {sums[row]:.4g})",
            "normalise them, or pass raw scores as `logits=`",
        )


def generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator from a seed, a generator (as it is) or None (fresh entropy)."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(seed_of(random_state))


def seed_of(random_state: Any) -> int | None:
    """Return the seed behind `random_state`: a new one for None, None for a generator.

    A `RandomState` of NumPy, or the module `numpy.random` for the global one, as in scikit-learn,
    draws the seed. Drawing it here rather than inside NumPy lets a result name the seed that
    repeats it.
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    if isinstance(random_state, np.random.Generator):
        return None
    if random_state is np.random or isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not whole or not 0 <= random_state <= MAX_SEED:
        raise InputError(
            "`random_state` as an integer from 0 to 2**63 - 1, a numpy.random.Generator or "
            "RandomState, or None",
            shown(random_state),
            "pass for instance random_state=0",
        )
    return int(random_state)
