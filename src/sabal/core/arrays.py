"""The caller's arrays: their library and device, conversions, ranking, chunks.

Large arrays (pool rows by features or classes) stay in the caller's library, on the caller's
device. The result of a pass over the pool (a number per item, a few rows) is small, and is NumPy
in float64 from then on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_cupy_array,
    is_numpy_array,
    is_torch_array,
)

from sabal.core.threads import blas_threads, share_out
from sabal.errors import InputError

Array = Any  # an array of any library that follows the array API standard
CHUNK_BYTES = 2 * 2**20  # temporaries of matrix products: enough for BLAS to be efficient
CACHE_BYTES = 2**20  # temporaries of elementwise passes: they stay in the processor's cache

THREADED_BYTES = 2**27  # arrays from this size on are read in several threads

SEGMENTS = 64
"""Number of parts in which a sum over a pool is computed, whatever computes it.

A pool in memory, on disk or on a cluster therefore gives the same sums to the last digit, and the
messages of a cluster do not grow with the pool.
"""

SHORTEST_SEGMENT = 4096  # smallest number of rows of such a part


class LazyRows:
    """Base class of rows that are read or computed on request; see `sabal.core.rows`.

    They look like an array with one row per item as far as a pass over a pool needs it: a shape, a
    dtype, a namespace, and `[rows]`, which returns a plain array.
    """

    shape: tuple[int, ...]
    dtype: Any

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """What all rows would take in memory."""
        size = getattr(self.dtype, "itemsize", None) or np.dtype(self.dtype).itemsize
        return int(np.prod(self.shape, dtype=np.int64)) * int(size)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TypeError(
            "these rows are not in memory: ask for some with [rows], or for all with rows.load()"
        )


def is_lazy(value: Any) -> bool:
    """Return whether `value` is read or computed on request rather than in memory."""
    return isinstance(value, LazyRows)


def as_array(value: Any, name: str) -> Array:
    """Return `value` as a floating-point array of its own library; lists and data frames as NumPy.

    Integers and short floats are widened (they cannot be computed with); nothing is narrowed. Lazy
    rows are returned as they are.
    """
    if is_lazy(value):
        return value
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
    if array.dtype.kind == "O" and array.ndim == 1:
        array = _stacked(array, name)
    if array.dtype.kind == "O" and hasattr(value, "to_numpy"):
        array = _from_nullable_frame(value, array)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"`{name}` as an array of real numbers",
            f"dtype {array.dtype}",
            "convert it to float32 or float64",
        )
    return array


def _stacked(column: np.ndarray, name: str) -> np.ndarray:
    """Convert a column of equally long (nested) lists, as data frames have them."""
    if not all(hasattr(row, "__len__") and not isinstance(row, str | bytes) for row in column):
        return column
    rows = [np.asarray(row) for row in column]
    rows = [_stacked(row, name) if row.dtype.kind == "O" and row.ndim == 1 else row for row in rows]
    if len({row.shape for row in rows}) > 1:
        raise InputError(
            f"`{name}` as a rectangular array of numbers",
            "lists of different lengths",
            "make every row equally long",
        )
    return np.stack(rows) if rows else column


def _from_nullable_frame(frame: Any, otherwise: np.ndarray) -> np.ndarray:
    """Convert a pandas frame of nullable numbers; gaps become NaN, which later checks refuse."""
    try:
        return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        return otherwise


def namespace(*arrays: Array) -> Any:
    """Return the array API namespace of `arrays`, which must share one library and one device."""
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
    """Return `array` in main memory as NumPy, without a copy where possible."""
    if is_torch_array(array):
        return array.detach().cpu().numpy()
    if is_cupy_array(array):
        return array.get()
    return np.asarray(array)


def to_float64_numpy(array: Array) -> np.ndarray:
    """Return `array` as NumPy in float64, in which everything small is computed."""
    return np.asarray(to_numpy(array), dtype=np.float64)


def to_backend_of(values: np.ndarray, reference: Array) -> Array:
    """Return NumPy `values` in the library, on the device and in the dtype of `reference`."""
    xp = array_namespace(reference)
    if is_numpy_array(reference):
        return values.astype(reference.dtype, copy=False)
    return xp.asarray(np.ascontiguousarray(values), dtype=reference.dtype, device=device(reference))


def take_rows(array: Array, indices: np.ndarray) -> Array:
    """Return the rows of `array` at `indices` (a copy), in the array's own library."""
    if is_numpy_array(array) or is_lazy(array):
        return array[indices]
    xp = array_namespace(array)
    return xp.take(array, xp.asarray(indices, device=device(array)), axis=0)


def all_finite(array: Array) -> bool:
    """Return whether every entry is finite, at the cost of one sum if so."""
    if 0 in array.shape:
        return True
    xp = array_namespace(array)
    entries = int(np.prod(array.shape[1:], dtype=np.int64))
    finite = []

    def check(rows: slice) -> None:
        chunk = array[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            # The sum itself may overflow: only then look at the entries.
            finite.append(np.isfinite(float(xp.sum(chunk))) or bool(xp.all(xp.isfinite(chunk))))

    large = is_numpy_array(array) and array.nbytes >= THREADED_BYTES
    share_out(check, list(row_chunks(array.shape[0], 8 * entries)), blas_threads() if large else 1)
    return all(finite)


def row_chunks(rows: int, bytes_per_row: int, limit: int = CHUNK_BYTES) -> Iterator[slice]:
    """Yield slices that cover `rows` rows, each of at most about `limit` bytes."""
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


def weighted_row_sum(weights_N: np.ndarray, array: Array) -> np.ndarray:
    """Return sum_j w_j row_j: float32 products are summed per chunk, and chunks in float64."""
    total = np.zeros(array.shape[1])
    for rows in row_chunks(array.shape[0], 8 * array.shape[1]):
        chunk = array[rows]
        total += to_float64_numpy(to_backend_of(weights_N[rows], chunk) @ chunk)
    return total


def per_row(measure: Callable[[np.ndarray], np.ndarray], array: Array) -> np.ndarray:
    """Return a number for every row of a matrix, a block in float64 at a time."""
    result_N = np.empty(array.shape[0])
    for rows in row_chunks(array.shape[0], 24 * array.shape[1], CACHE_BYTES):
        result_N[rows] = measure(to_float64_numpy(array[rows]))
    return result_N


def segments_of(rows: int) -> list[slice]:
    """Return at most `SEGMENTS` slices over `rows` rows, of `SHORTEST_SEGMENT` or more each."""
    step = max(SHORTEST_SEGMENT, -(-rows // SEGMENTS))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def top_k(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the indices of the `k` largest scores, largest first; ties go to the lower index."""
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


FAR = 2.0**40
"""In units of the largest number of a pool: beyond this, all labelled items are alike."""


def within_reach(labeled_LD: Array, features_ND: Array) -> Array:
    """Return labelled features whose numbers are at most `FAR` times the pool's largest one.

    In a unit of labelled items that are much further away, the distances of the pool would vanish.
    """
    xp = namespace(labeled_LD, features_ND)
    dtype = xp.result_type(labeled_LD, features_ND)
    limit = min(FAR * power_of_two(features_ND), float(xp.finfo(dtype).max))
    return xp.clip(xp.astype(labeled_LD, dtype, copy=False), -limit, limit)


def power_of_two(*arrays: Array | None, minimum: float = 0.0) -> float:
    """Return a power of two near the largest absolute value of `arrays` and `minimum`.

    In this unit squares neither overflow nor vanish, and dividing by it is exact. Its reciprocal is
    finite in the dtype of every array.
    """
    given = [(array_namespace(a), a) for a in arrays if a is not None]
    largest = max(minimum, *(float(end) for xp, a in given for end in (xp.max(a), -xp.min(a))))
    if largest == 0:
        return 1.0
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    return max(unit, *(float(xp.finfo(a.dtype).smallest_normal) for xp, a in given))
