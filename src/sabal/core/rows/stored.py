"""Rows in a file: read, never mapped, because mapped pages count as memory in use."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
from array_api_compat import numpy as compat_numpy

from sabal.core.arrays import LazyRows, as_array, row_chunks, to_numpy
from sabal.errors import FileError, InputError

READ_BYTES = 4 * 2**20  # buffer for rows that cannot be read straight to their destination
GAP_BYTES = 32 * 2**10  # reading over a gap of this size is cheaper than a second read


class DataFile:
    """A file that is opened when it is first read, by each process separately.

    `owner` is an object that has to live as long as the file is needed, such as its temporary
    folder. It is not sent to other processes.
    """

    def __init__(self, path: str | Path, owner: object = None) -> None:
        # Another process may have another working directory.
        self.path = os.path.abspath(path)
        self.owner = owner
        self._descriptor: int | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[DataFile], tuple[str]]:
        return DataFile, (self.path,)

    def read_into(self, target: np.ndarray, offset: int) -> None:
        """Fill `target`, an array of bytes, from `offset` on; thread-safe."""
        descriptor, view, done = self._open(), target.data, 0
        while done < len(view):
            try:
                count = os.preadv(descriptor, [view[done:]], offset + done)
            except OSError as error:
                raise _unreadable(self.path, error) from None
            if count == 0:
                raise FileError(
                    f"at least {offset + len(view)} bytes in {self.path}",
                    f"a file that ends after {os.fstat(descriptor).st_size}",
                    "write the file again; it was cut short",
                )
            done += count

    def _open(self) -> int:
        with self._lock:
            if self._descriptor is None:
                try:
                    self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
                except OSError as error:
                    raise _unreadable(self.path, error) from None
                weakref.finalize(self, os.close, self._descriptor).atexit = False
            return self._descriptor


class RawRows(LazyRows):
    """Rows of a file from the byte `offset` on, as they are written except for the byte order."""

    device = "cpu"

    def __init__(
        self,
        path: str | Path | DataFile,
        *,
        shape: tuple[int, ...],
        dtype: Any,
        offset: int = 0,
        owner: object = None,
    ) -> None:
        self._file = path if isinstance(path, DataFile) else DataFile(path, owner)
        self._stored = np.dtype(dtype)
        if not shape or min(shape) < 0 or self._stored.hasobject:
            raise InputError(
                "rows of plain numbers or strings",
                f"shape {tuple(shape)} of {self._stored}",
                "give the shape and the dtype that the file was written with",
            )
        self.shape = tuple(int(length) for length in shape)
        self.dtype = self._handed_out(self._stored)
        self._offset = offset
        self._row_bytes = self._stored.itemsize * int(np.prod(shape[1:], dtype=np.int64))

    def _handed_out(self, stored: np.dtype) -> np.dtype:
        return stored.newbyteorder("=")

    @property
    def path(self) -> str:
        """The file."""
        return self._file.path

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return compat_numpy

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._file.path!r}, shape={self.shape}, dtype={self.dtype})"

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """Read some rows as a new array: a slice with step 1, or row numbers in any order."""
        if isinstance(rows, slice):
            start, stop = bounds(rows, len(self))
            return self._between(start, stop)
        return self._gathered(row_numbers(rows, len(self)))

    def part(self, start: int, stop: int) -> Self:
        """Return the rows from `start` up to `stop`, still in the file."""
        start, stop = bounds(slice(start, stop), len(self))
        return type(self)(
            self._file,
            shape=(stop - start, *self.shape[1:]),
            dtype=self._stored,
            offset=self._offset + start * self._row_bytes,
        )

    def _between(self, start: int, stop: int) -> np.ndarray:
        count = stop - start
        found = self._room(count)
        if found.nbytes == 0:
            return found
        if self.dtype == self._stored:
            self._file.read_into(_bytes(found), self._offset + start * self._row_bytes)
            return found
        buffer = self._buffer(count)
        for rows in row_chunks(count, self._row_bytes, READ_BYTES):
            found[rows] = self._read(buffer, start + rows.start, rows.stop - rows.start)
        return found

    def _gathered(self, numbers: np.ndarray) -> np.ndarray:
        found = self._room(numbers.size)
        if found.nbytes == 0:
            return found
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        buffer = self._buffer(int(numbers[-1] - numbers[0]) + 1)
        # A single row is read straight to its place if nothing has to be converted.
        places = None
        if self.dtype == self._stored:
            places = _bytes(found).reshape(numbers.size, self._row_bytes)
        for first, last in self._runs(numbers):
            low = int(numbers[first])
            if places is not None and last - first == 1:
                offset = self._offset + low * self._row_bytes
                self._file.read_into(places[order[first]], offset)
            else:
                block = self._read(buffer, low, int(numbers[last - 1]) - low + 1)
                found[order[first:last]] = block[numbers[first:last] - low]
        return found

    def _runs(self, numbers: np.ndarray) -> Iterator[tuple[int, int]]:
        """Yield runs of sorted row `numbers` to read at once: close together, not too many."""
        longest = max(1, READ_BYTES // self._row_bytes)
        far = max(1, GAP_BYTES // self._row_bytes) + 1
        starts = [0, *(np.flatnonzero(np.diff(numbers) > far) + 1).tolist()]
        for first, last in zip(starts, [*starts[1:], numbers.size], strict=True):
            while numbers[last - 1] - numbers[first] >= longest:
                split = first + int(np.searchsorted(numbers[first:last], numbers[first] + longest))
                yield first, split
                first = split
            yield first, last

    def _read(self, buffer: np.ndarray, start: int, count: int) -> np.ndarray:
        """Read rows as they are in the file into `buffer`, which the next call overwrites."""
        target = buffer[: count * self._row_bytes]
        self._file.read_into(target, self._offset + start * self._row_bytes)
        return target.view(self._stored).reshape(count, *self.shape[1:])

    def _buffer(self, rows: int) -> np.ndarray:
        longest = max(1, READ_BYTES // self._row_bytes)
        return np.empty(min(rows, longest) * self._row_bytes, dtype=np.uint8)

    def _room(self, rows: int) -> np.ndarray:
        shape = (rows, *self.shape[1:])
        # Strings without characters: NumPy would allocate room for one.
        make = np.zeros if self._row_bytes == 0 else np.empty
        return make(shape, dtype=self.dtype)


class StoredRows(RawRows):
    """Rows of numbers in one raw region of a file, read on request.

    They have the dtype that `as_array` would widen them to, so that results do not depend on
    whether a pool is in memory.
    """

    def _handed_out(self, stored: np.dtype) -> np.dtype:
        return as_array(np.empty(0, dtype=stored), "rows").dtype


def bounds(rows: slice, length: int) -> tuple[int, int]:
    """Return the first row of a slice, and the one after its last."""
    start, stop, step = rows.indices(length)
    if step != 1:
        raise TypeError(f"rows are read in order: expected a slice with step 1, got {rows}")
    return start, max(start, stop)


def row_numbers(rows: Any, length: int) -> np.ndarray:
    """Return row numbers in any order as NumPy; negative ones are refused."""
    numbers = to_numpy(rows)
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and numbers.size):
        raise TypeError(f"expected a slice or a list of row numbers, got {type(rows).__name__}")
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < length):
        raise IndexError(f"expected row numbers from 0 to {length - 1}")
    return numbers.astype(np.int64, copy=False)


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


def _unreadable(path: str, error: OSError) -> FileError:
    return FileError(f"a readable file at {path}", error.strerror or str(error), "check the path")
