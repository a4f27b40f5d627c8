"""Arrays in the .npy format, alone or inside an archive: what their header says, and their rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from sabal.core.arrays import row_chunks
from sabal.core.files import BAD_ARCHIVE
from sabal.core.rows import RawRows, StoredRows, load
from sabal.errors import FileError
from sabal.pools.contents import NAMES, Spec, unreadable
from sabal.pools.pool import FILE_ARRAYS
from sabal.pools.sinks import Wanted

BLOCK_BYTES = 16 * 2**20
"""What is turned from columns into rows at a time."""


@dataclass(frozen=True)
class Header:
    """What the header of a .npy file says, and how long it is itself."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool
    length: int

    @property
    def nbytes(self) -> int:
        """How many bytes follow the header."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def row_bytes(self) -> int:
        """How many of them are a row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def by_rows(self) -> bool:
        """Whether one row comes after the other."""
        return not self.fortran or len(self.shape) < 2

    def spec(self, *, spilled: bool = False) -> Spec:
        """The array as a pool knows it."""
        return Spec.of_numbers(self.shape, self.dtype, spilled or not self.by_rows)


def read_header(stream: IO[bytes]) -> Header:
    """The header at the beginning of `stream`; raises ValueError when there is none to be used."""
    start = stream.tell()
    version = np.lib.format.read_magic(stream)
    # Version 3 is for tables with column names beyond Latin-1, which are no arrays of numbers.
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f"version {version} of the .npy format")
    if dtype.hasobject:
        raise ValueError("Python objects, which are never unpickled")
    if any(length < 0 for length in shape):
        raise ValueError(f"shape {shape}")
    return Header(tuple(shape), dtype, bool(fortran), stream.tell() - start)


@dataclass(frozen=True)
class Region:
    """An array in a file, and where its first number is."""

    path: Path
    header: Header
    offset: int

    def rows(self, name: str, wanted: Wanted) -> np.ndarray | RawRows:
        """Some rows of the array, which is called `name`."""
        header = self.header
        if not header.by_rows:
            return self._turned(name, wanted)
        kind = StoredRows if wanted.stored and name in FILE_ARRAYS else RawRows
        rows = kind(
            self.path,
            shape=(len(wanted), *header.shape[1:]),
            dtype=header.dtype,
            offset=self.offset + wanted.start * header.row_bytes,
        )
        return rows if wanted.stored else load(rows)

    def _turned(self, name: str, wanted: Wanted) -> np.ndarray | RawRows:
        """The rows of an array that is written column by column."""
        header = self.header
        length, row = header.shape[0], header.shape[1:]
        # Backwards, its axes are in the order in which it is written.
        columns = RawRows(
            self.path, shape=(math.prod(header.shape),), dtype=header.dtype, offset=self.offset
        )
        sink = wanted.numbers(name, row, header.dtype)
        for chunk in row_chunks(len(wanted), header.row_bytes, BLOCK_BYTES):
            block = np.empty((math.prod(row), chunk.stop - chunk.start), dtype=columns.dtype)
            for column in range(block.shape[0]):
                first = column * length + wanted.start
                block[column] = columns[first + chunk.start : first + chunk.stop]
            sink.write(block.reshape(*reversed(row), block.shape[1]).T)
        return sink.done()


class NpyFolder:
    """A folder of .npy files, one for each array."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files = {file.stem: file for file in sorted(path.glob("*.npy"))}
        self.names = list(self._files)

    def whole(self) -> dict[str, np.ndarray]:
        """Every array a pool may have."""
        arrays = {}
        for name in NAMES:
            if name in self._files:
                try:
                    arrays[name] = np.load(self._files[name], allow_pickle=False, mmap_mode="r")
                except BAD_ARCHIVE as error:
                    raise unreadable(self._files[name], error) from None
        return arrays

    def specs(self) -> dict[str, Spec]:
        """Every array a pool may have, unread."""
        return {name: self._region(name).header.spec() for name in NAMES if name in self._files}

    def read(self, names: list[str], wanted: Wanted) -> dict[str, Any]:
        """The same rows of some arrays."""
        return {name: self._region(name).rows(name, wanted) for name in names}

    def _region(self, name: str) -> Region:
        path = self._files[name]
        try:
            with path.open("rb") as file:
                header = read_header(file)
                size = file.seek(0, 2)
        except BAD_ARCHIVE as error:
            raise unreadable(path, error) from None
        if size < header.length + header.nbytes:
            raise FileError(
                f"{header.length + header.nbytes} bytes in {path}, as its header promises",
                f"{size} bytes",
                "write the file again; it was cut short",
            )
        return Region(path, header, header.length)
