"""The caller's arrays: their library and device, conversions, ranking, chunks, generators.

Large arrays (pool rows by features or classes) stay in the caller's library, on the caller's
device. What a pass over the pool brings back (a number per item, a handful of rows) is small, and
is NumPy in float64 from then on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_cupy_array,
    is_numpy_array,
    is_torch_array,
)

from sabal.errors import InputError, shown

Array = Any
"""An array of any library that follows the array API standard."""

CHUNK_BYTES = 2 * 2**20
"""Temporaries of a pass that multiplies matrices: large enough for BLAS, small for the machine."""

CACHE_BYTES = 2**20
"""Temporaries of a pass that works entry by entry: they should stay in the processor's cache."""

SEGMENTS = 64
"""Sums over a pool are closed in so many parts, which never depend on who computes them.

So a pool in memory, on disk or on a cluster gives the same sums to the last digit, and what a
cluster sends back does not grow with the pool.
"""

LARGEST_SEED = 2**63 - 1
"""What the files of a selection can hold; a generator may be seeded with more."""

SHORTEST_SEGMENT = 4096
"""Rows below which a part is not worth having."""


def as_array(value: Any, name: str) -> Array:
    """`value` as a floating-point array of the library it came in; lists and frames become NumPy.

    Integers and short floats are widened (they cannot be computed with); nothing is narrowed.
    """
    if hasattr(value, "part"):
        return value  # rows that are read when they are asked for (rows/)
    array = _unwrapped(value, name)
    xp = array_namespace(array)
    if xp.isdtype(array.dtype, ("bool", "integral")):
        # float32 holds every 16-bit integer exactly; wider ones need float64.
        short = xp.isdtype(array.dtype, "bool") or xp.iinfo(array.dtype).bits <= 16
        return xp.astype(array, xp.float32 if short else xp.float64)
    if array.dtype in (xp.float32, xp.float64):
        return array
    # Half precision and bfloat16 are 16 bits wide; NumPy's long double has no common counterpart.
    return xp.astype(array, xp.float32 if array.itemsize <= 2 else xp.float64)


def _unwrapped(value: Any, name: str) -> Array:
    if is_torch_array(value):
        value = value.detach()
        if value.is_sparse or value.is_complex() or value.is_quantized or value.is_meta:
            raise InputError(
                f"`{name}` to be a dense array of real numbers",
                f"a torch tensor of {value.dtype}, layout {value.layout}, on {value.device}",
                "convert it with .to_dense() or .float(), on a device that holds numbers",
            )
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise InputError(
            f"`{name}` without masked entries",
            "a NumPy masked array",
            "fill or drop the masked rows first",
        )
    if is_array_api_obj(value) and not is_numpy_array(value):
        return value
    if hasattr(value, "tocsr"):
        raise InputError(
            f"`{name}` as a dense array",
            f"a sparse matrix of shape {value.shape}",
            "call .toarray(), or reduce it first (for instance with TruncatedSVD)",
        )
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"`{name}` as a rectangular array of numbers", str(error), "make every row equally long"
        ) from None
    if array.dtype.kind == "O" and hasattr(value, "to_numpy"):
        array = _from_nullable_frame(value, array)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"`{name}` as an array of real numbers",
            f"dtype {array.dtype}",
            "convert it to float32 or float64",
        )
    return array


def _from_nullable_frame(frame: Any, otherwise: np.ndarray) -> np.ndarray:
    """A pandas frame of nullable numbers; gaps become NaN, and are refused as such later."""
    try:
        return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        return otherwise


def namespace(*arrays: Array) -> Any:
    """The array API namespace of `arrays`, which must share one library and one device."""
    given = [array for array in arrays if array is not None]
    try:
        xp = array_namespace(*given)
    except TypeError:
        kinds = sorted({f"{type(a).__module__}.{type(a).__name__}" for a in given})
        raise InputError(
            "all arrays from one array library",
            " and ".join(kinds),
            "convert them all to NumPy, or all to PyTorch",
        ) from None
    devices = {str(device(array)) for array in given}
    if len(devices) > 1:
        raise InputError(
            "all arrays on one device",
            " and ".join(sorted(devices)),
            "move them to the same device",
        )
    return xp


def to_numpy(array: Array) -> np.ndarray:
    """`array` in main memory as NumPy, without a copy where that is possible."""
    if is_torch_array(array):
        return array.detach().cpu().numpy()
    if is_cupy_array(array):
        return array.get()
    return np.asarray(array)


def to_float64_numpy(array: Array) -> np.ndarray:
    """`array` as NumPy in float64: what everything small is computed in."""
    return np.asarray(to_numpy(array), dtype=np.float64)


def to_backend_of(values: np.ndarray, reference: Array) -> Array:
    """NumPy `values` in the library, on the device and in the dtype of `reference`."""
    xp = array_namespace(reference)
    if is_numpy_array(reference):
        return values.astype(reference.dtype, copy=False)
    return xp.asarray(np.ascontiguousarray(values), dtype=reference.dtype, device=device(reference))


def take_rows(array: Array, indices: np.ndarray) -> Array:
    """The rows of `array` at `indices` (a copy), in the array's own library."""
    # Rows on disk, and rows derived from others, have parts, and know how to be indexed.
    if is_numpy_array(array) or hasattr(array, "part"):
        return array[indices]
    xp = array_namespace(array)
    return xp.take(array, xp.asarray(indices, device=device(array)), axis=0)


def all_finite(array: Array) -> bool:
    """Whether every entry is finite, at the cost of one sum when it is."""
    if 0 in array.shape:
        return True
    xp = array_namespace(array)
    entries = int(np.prod(array.shape[1:], dtype=np.int64))
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in row_chunks(array.shape[0], 8 * entries):
            chunk = array[rows]
            # The sum itself may overflow: only then look at the entries.
            if not np.isfinite(float(xp.sum(chunk))) and not bool(xp.all(xp.isfinite(chunk))):
                return False
    return True


def row_chunks(rows: int, bytes_per_row: int, limit: int = CHUNK_BYTES) -> Iterator[slice]:
    """Slices that cover `rows` rows, each about `limit` bytes of temporaries at most."""
    step = max(1, limit // max(1, bytes_per_row))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def row_norms_squared(array: Array) -> np.ndarray:
    """Return ||row||^2 of a matrix, summed in float64 so that tiny and huge scales survive."""
    result = np.empty(array.shape[0])
    for rows in row_chunks(array.shape[0], 8 * array.shape[1]):
        chunk = to_float64_numpy(array[rows])
        result[rows] = np.einsum("ij,ij->i", chunk, chunk)
    return result


def per_row(measure: Callable[[np.ndarray], np.ndarray], array: Array) -> np.ndarray:
    """Return a number for every row of a matrix, a block in float64 at a time."""
    result_N = np.empty(array.shape[0])
    for rows in row_chunks(array.shape[0], 24 * array.shape[1], CACHE_BYTES):
        result_N[rows] = measure(to_float64_numpy(array[rows]))
    return result_N


def segments_of(rows: int) -> list[slice]:
    """At most `SEGMENTS` slices that cover `rows` rows, of `SHORTEST_SEGMENT` rows or more."""
    step = max(SHORTEST_SEGMENT, -(-rows // SEGMENTS))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def top_k(scores: np.ndarray, k: int) -> np.ndarray:
    """Indices of the `k` largest scores, largest first; of equal ones, the lower index first."""
    n = scores.shape[0]
    if k == 0:
        return np.zeros(0, dtype=np.int64)
    if k >= n:
        return np.argsort(-scores, kind="stable")
    threshold = np.partition(scores, n - k)[n - k]
    above = np.flatnonzero(scores > threshold)
    level = np.flatnonzero(scores == threshold)[: k - above.size]
    chosen = np.sort(np.concatenate([above, level]))
    return chosen[np.argsort(-scores[chosen], kind="stable")]


def power_of_two(*arrays: Array | None, minimum: float = 0.0) -> float:
    """A unit in which squares neither overflow nor vanish, and dividing by which rounds nothing.

    Its reciprocal is finite in the dtype of every array.
    """
    given = [(array_namespace(a), a) for a in arrays if a is not None]
    largest = max(minimum, *(float(end) for xp, a in given for end in (xp.max(a), -xp.min(a))))
    if largest == 0:
        return 1.0
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    return max(unit, *(float(xp.finfo(a.dtype).smallest_normal) for xp, a in given))


def generator(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """A NumPy generator from a seed, a generator (used as it is) or None (fresh entropy)."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(seed_of(random_state))


def seed_of(random_state: int | np.random.Generator | None) -> int | None:
    """The seed behind `random_state`: drawn afresh for None, unknowable for a generator.

    Drawing it here rather than inside NumPy lets a result name the seed that repeats it.
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    if isinstance(random_state, np.random.Generator):
        return None
    whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not whole or not 0 <= random_state <= LARGEST_SEED:
        raise InputError(
            "`random_state` as an integer from 0 to 2**63 - 1, a numpy.random.Generator or None",
            shown(random_state),
            "pass for instance random_state=0",
        )
    return int(random_state)
