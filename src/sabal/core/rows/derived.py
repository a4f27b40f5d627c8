"""Rows computed from other rows, a few at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from sabal.core.arrays import Array, LazyRows, is_lazy, row_chunks, take_rows, to_numpy
from sabal.core.rows.stored import RawRows, bounds, row_numbers
from sabal.errors import InputError


class DerivedRows(LazyRows):
    """Rows computed from other rows on request: `function(*(source[rows] ...))`.

    The function makes rows of `shape` and `dtype` from the same rows of every source, each
    independently. The sources are arrays or lazy rows, of one library and device.
    """

    def __init__(
        self, function: Callable[..., Array], *sources: Array, shape: tuple[int, ...], dtype: Any
    ) -> None:
        self._function = function
        self.sources = sources
        self.shape = tuple(int(length) for length in shape)
        self.dtype = dtype
        lengths = {int(source.shape[0]) for source in sources}
        if lengths != {self.shape[0]}:
            raise InputError(
                f"sources of {self.shape[0]} rows",
                f"{', '.join(map(str, sorted(lengths))) or 'no source'}",
                "derive rows from arrays that describe the same items",
            )

    @property
    def device(self) -> Any:
        """The device of the rows once they are computed."""
        return device(self.sources[0])

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return array_namespace(self.sources[0])

    def __repr__(self) -> str:
        return f"DerivedRows(shape={self.shape}, dtype={self.dtype}, of={list(self.sources)})"

    def __getitem__(self, rows: slice | np.ndarray) -> Array:
        """Compute some rows: a slice with step 1, or row numbers in any order."""
        if isinstance(rows, slice):
            between = slice(*bounds(rows, len(self)))
            return self._function(*(source[between] for source in self.sources))
        numbers = row_numbers(rows, len(self))
        return self._function(*(take_rows(source, numbers) for source in self.sources))

    def part(self, start: int, stop: int) -> DerivedRows:
        """Return the rows from `start` up to `stop`, still to be computed."""
        start, stop = bounds(slice(start, stop), len(self))
        sources = (
            source.part(start, stop) if is_lazy(source) else source[start:stop]
            for source in self.sources
        )
        shape = (stop - start, *self.shape[1:])
        return DerivedRows(self._function, *sources, shape=shape, dtype=self.dtype)


def derived(function: Callable[[Array], Array], source: Array) -> Array:
    """Apply `function` to every row of `source`; for rows on disk, on request."""
    if not is_stored(source):
        return function(source)
    sample = function(source[:0])
    return DerivedRows(
        function, source, shape=(source.shape[0], *sample.shape[1:]), dtype=sample.dtype
    )


def is_stored(array: Any) -> bool:
    """Return whether `array` is read from a file on request, or derived from rows that are."""
    if isinstance(array, DerivedRows):
        return any(is_stored(source) for source in array.sources)
    return isinstance(array, RawRows)


def load(rows: Array) -> np.ndarray:
    """Return all of `rows`, of any kind, in memory as NumPy."""
    if isinstance(rows, RawRows):
        return rows[:]
    if not isinstance(rows, DerivedRows):
        return to_numpy(rows)
    found: np.ndarray | None = None
    for chunk in row_chunks(len(rows), rows.nbytes // max(1, len(rows))):
        block = to_numpy(rows[chunk])
        if found is None:
            found = np.empty(rows.shape, dtype=block.dtype)
        found[chunk] = block
    return to_numpy(rows[:]) if found is None else found
