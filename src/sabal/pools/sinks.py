"""Destinations of decoded rows: memory, or a scratch folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from sabal.core.rows import RawRows, StoredRows
from sabal.pools.ids import StoredStrings, as_strings, encode, split
from sabal.pools.pool import FILE_ARRAYS
from sabal.pools.scratch import Scratch


class Numbers:
    """Rows of numbers (or strings of fixed length), kept in memory until they are spilled.

    `row` is the shape of a row. With `scratch`, rows are written to disk from the start. With
    `rows`, their number, memory for all is reserved once, and there is no second copy at the end.
    """

    def __init__(
        self,
        name: str,
        row: tuple[int, ...],
        dtype: np.dtype,
        scratch: Scratch | None,
        rows: int | None = None,
    ) -> None:
        self.name = name
        self.row = row
        self.dtype = dtype
        self.size = 0
        self._held: list[np.ndarray] = []
        self._whole = None if rows is None else np.empty((rows, *row), dtype=dtype)
        self._scratch = scratch
        self._file: BinaryIO | None = None if scratch is None else scratch.create(f"{name}.raw")

    def write(self, block: np.ndarray) -> None:
        """Add some rows."""
        start, self.size = self.size, self.size + block.shape[0]
        if self._whole is not None:
            self._whole[start : self.size] = block
        elif self._scratch is None or self._file is None:
            # A copy, as the caller may reuse the buffer for the next block.
            self._held.append(np.array(block, dtype=self.dtype, order="C"))
        elif block.nbytes:
            raw = np.ascontiguousarray(block, dtype=self.dtype).reshape(-1).view(np.uint8)
            self._scratch.write(self._file, raw.data)

    def spill(self, scratch: Scratch) -> None:
        """Move the rows to a scratch folder, and write further rows there."""
        held, self._held, self.size = self._held, [], 0
        self._scratch, self._file = scratch, scratch.create(f"{self.name}.raw")
        while held:
            self.write(held.pop(0))

    def done(self) -> np.ndarray | RawRows:
        """Return all rows."""
        if self._whole is not None:
            return self._whole
        shape = (self.size, *self.row)
        if self._scratch is None or self._file is None:
            whole = np.empty(shape, dtype=self.dtype)
            start = 0
            while self._held:
                block = self._held.pop(0)
                whole[start : start + block.shape[0]] = block
                start += block.shape[0]
            return whole
        path = self._scratch.close(self._file)
        kind = StoredRows if self.name in FILE_ARRAYS else RawRows
        return kind(path, shape=shape, dtype=self.dtype, owner=self._scratch)


class Strings:
    """Strings of any length, stored as concatenated bytes and end offsets.

    They are UTF-8 if `text`, and bytes otherwise.
    """

    def __init__(self, name: str, *, text: bool, scratch: Scratch | None) -> None:
        self.name = name
        self.text = text
        self._bytes = Numbers(f"{name}-bytes", (), np.dtype(np.uint8), scratch)
        self._ends = Numbers(f"{name}-ends", (), np.dtype(np.int64), scratch)
        self._ends.write(np.zeros(1, dtype=np.int64))

    @property
    def size(self) -> int:
        """The number of strings so far."""
        return self._ends.size - 1

    def write_encoded(self, data: np.ndarray, lengths: np.ndarray) -> None:
        """Add strings, given as concatenated bytes and lengths."""
        self._ends.write(self._bytes.size + np.cumsum(lengths, dtype=np.int64))
        self._bytes.write(data)

    def write(self, block: np.ndarray) -> None:
        """Add the strings of a NumPy array."""
        encoded = [encode(value) if self.text else value for value in block.tolist()]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        self.write_encoded(np.frombuffer(b"".join(encoded), dtype=np.uint8), lengths)

    def spill(self, scratch: Scratch) -> None:
        """Move the rows to a scratch folder, and write further rows there."""
        self._bytes.spill(scratch)
        self._ends.spill(scratch)

    def done(self) -> np.ndarray | StoredStrings:
        """Return all strings."""
        data, ends = self._bytes.done(), self._ends.done()
        if isinstance(data, RawRows) and isinstance(ends, RawRows):
            return StoredStrings(data, ends, text=self.text)
        return as_strings(split(np.asarray(data), np.asarray(ends)), text=self.text)


Sink = Numbers | Strings


@dataclass(frozen=True)
class Wanted:
    """The rows of a pool to read, and whether they stay on disk (`stored`)."""

    start: int
    stop: int
    stored: bool
    scratch: Scratch

    def __len__(self) -> int:
        return self.stop - self.start

    def numbers(self, name: str, row: tuple[int, ...], dtype: np.dtype) -> Numbers:
        """Return a sink for numbers that have to be decoded."""
        if self.stored:
            return Numbers(name, row, dtype, self.scratch)
        return Numbers(name, row, dtype, None, rows=len(self))

    def strings(self, name: str, *, text: bool) -> Strings:
        """Return a sink for strings that have to be decoded."""
        return Strings(name, text=text, scratch=self.scratch if self.stored else None)
