"""Arrays in the .npy format, alone or inside an archive: their headers and their rows."""

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
from sabal.pools.contents import NAMES, ArraySpec, unreadable
from sabal.pools.pool import FILE_ARRAYS
from sabal.pools.sinks import Wanted

BLOCK_BYTES = 16 * 2**20  # bytes transposed from columns to rows at a time


@dataclass(frozen=True)
class NpyHeader:
    """The header of a .npy file; `length` is the size of the header itself."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool
    length: int

    @property
    def nbytes(self) -> int:
        """The number of bytes after the header."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def row_bytes(self) -> int:
        """The number of bytes per row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def by_rows(self) -> bool:
        """Whether the array is stored row by row."""
        return not self.fortran or len(self.shape) < 2

    def spec(self, *, spilled: bool = False) -> ArraySpec:
        """Return the metadata of the array."""
        return ArraySpec.of_numbers(self.shape, self.dtype, spilled or not self.by_rows)


def read_header(stream: IO[bytes]) -> NpyHeader:
    """Return the header at the start of `stream`; raise ValueError if it is not supported."""
    start = stream.tell()
    version = np.lib.format.read_magic(stream)
    # Version 3 is for structured arrays with non-Latin-1 field names, which are not numeric arrays.
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
    return NpyHeader(tuple(shape), dtype, bool(fortran), stream.tell() - start)


@dataclass(frozen=True)
class NpyRegion:
    """An array in a file; `offset` is the position of its first value."""

    path: Path
    header: NpyHeader
    offset: int

    def rows(self, name: str, wanted: Wanted) -> np.ndarray | RawRows:
        """Return some rows of the array, which is called `name`."""
        header = self.header
        if not header.by_rows:
            return self._transposed(name, wanted)
        kind = StoredRows if wanted.stored and name in FILE_ARRAYS else RawRows
        rows = kind(
            self.path,
            shape=(len(wanted), *header.shape[1:]),
            dtype=header.dtype,
            offset=self.offset + wanted.start * header.row_bytes,
        )
        return rows if wanted.stored else load(rows)

    def _transposed(self, name: str, wanted: Wanted) -> np.ndarray | RawRows:
        """Return the rows of an array that is stored column by column."""
        header = self.header
        length, row = header.shape[0], header.shape[1:]
        # In reverse order, the axes are in storage order.
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
        """Return all arrays of the pool, in memory."""
        arrays = {}
        for name in NAMES:
            if name in self._files:
                try:
                    arrays[name] = np.load(self._files[name], allow_pickle=False, mmap_mode="r")
                except BAD_ARCHIVE as error:
                    raise unreadable(self._files[name], error) from None
        return arrays

    def specs(self) -> dict[str, ArraySpec]:
        """Return the metadata of all arrays of the pool."""
        return {name: self._region(name).header.spec() for name in NAMES if name in self._files}

    def read(self, names: list[str], wanted: Wanted) -> dict[str, Any]:
        """Return the requested rows of some arrays."""
        return {name: self._region(name).rows(name, wanted) for name in names}

    def _region(self, name: str) -> NpyRegion:
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
        return NpyRegion(path, header, header.length)
