"""Arrays in .npz archives: read in place, or decompressed into a scratch folder."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from sabal.core.arrays import row_chunks
from sabal.core.files import BAD_ARCHIVE, read_npz, unreadable_archive
from sabal.core.rows import RawRows
from sabal.pools.contents import NAMES, ArraySpec
from sabal.pools.npy import NpyHeader, NpyRegion, read_header
from sabal.pools.sinks import Numbers, Wanted

PIECE_BYTES = 2**20  # bytes decompressed at a time

_ENTRY = struct.Struct("<4s22xHH")
"""The signature of an entry, and the lengths of the name and the extra field that follow."""


class NpzFile:
    """An archive of arrays in the .npy format."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._archive() as archive:
            self._members = {
                member.filename.removesuffix(".npy"): member for member in archive.infolist()
            }
        self.names = list(self._members)

    def whole(self) -> dict[str, np.ndarray]:
        """Return all arrays of the pool, in memory."""
        return read_npz(self.path, NAMES)[1]

    def specs(self) -> dict[str, ArraySpec]:
        """Return the metadata of all arrays of the pool."""
        found = {}
        with self._archive() as archive:
            for name in self.names:
                if name in NAMES:
                    found[name] = self._spec(archive, name)
        return found

    def read(self, names: list[str], wanted: Wanted) -> dict[str, Any]:
        """Return the requested rows of some arrays."""
        with self._archive() as archive:
            return {name: self._rows(archive, name, wanted) for name in names}

    def _spec(self, archive: zipfile.ZipFile, name: str) -> ArraySpec:
        with archive.open(self._members[name]) as stream:
            header = self._header(stream, name)
        spec = header.spec(spilled=self._compressed(name))
        if self._compressed(name) and not header.by_rows:
            return replace(spec, spilled=2 * spec.spilled)
        return spec

    def _rows(self, archive: zipfile.ZipFile, name: str, wanted: Wanted) -> np.ndarray | RawRows:
        with archive.open(self._members[name]) as stream:
            header = self._header(stream, name)
            if not self._compressed(name):
                if len(wanted) == header.shape[0]:
                    # zipfile compares the checksum at the end of the member.
                    _skip(stream)
                offset = self._first_byte(name) + header.length
                return NpyRegion(self.path, header, offset).rows(name, wanted)
            if header.by_rows:
                _skip(stream, wanted.start * header.row_bytes)
                sink = wanted.numbers(name, header.shape[1:], header.dtype)
                _inflate(stream, sink, len(wanted))
                if wanted.stop == header.shape[0]:
                    _skip(stream)
                return sink.done()
            # Stored column by column, all of it has to be decompressed to select rows.
            inflated = Numbers(f"{name}-columns", (), np.dtype(np.uint8), wanted.scratch)
            _inflate(stream, inflated, header.nbytes)
            _skip(stream)
        columns = inflated.done()
        assert isinstance(columns, RawRows)  # noqa: S101
        rows = NpyRegion(Path(columns.path), header, 0).rows(name, wanted)
        wanted.scratch.discard(Path(columns.path))
        return rows

    def _header(self, stream: IO[bytes], name: str) -> NpyHeader:
        header = read_header(stream)
        if header.length + header.nbytes > self._members[name].file_size:
            raise ValueError(f"fewer numbers in `{name}` than its header promises")
        return header

    def _compressed(self, name: str) -> bool:
        return self._members[name].compress_type != zipfile.ZIP_STORED

    def _first_byte(self, name: str) -> int:
        """Return the offset of a member's data, after its local header of variable length."""
        start = self._members[name].header_offset
        with self.path.open("rb") as file:
            file.seek(start)
            _, name_length, extra_length = _ENTRY.unpack(file.read(_ENTRY.size))
        return start + _ENTRY.size + name_length + extra_length

    @contextmanager
    def _archive(self) -> Iterator[zipfile.ZipFile]:
        try:
            if not zipfile.is_zipfile(self.path):
                raise ValueError("a file that is no .npz archive, or only part of one")
            with zipfile.ZipFile(self.path) as archive:
                yield archive
        except BAD_ARCHIVE as error:
            raise unreadable_archive(self.path, error) from None


def _inflate(stream: IO[bytes], sink: Numbers, rows: int) -> None:
    """Copy `rows` rows from `stream` to `sink`."""
    row_bytes = math.prod(sink.row) * sink.dtype.itemsize
    for chunk in row_chunks(rows, row_bytes, PIECE_BYTES):
        wanted = (chunk.stop - chunk.start) * row_bytes
        data = stream.read(wanted)
        if len(data) < wanted:
            raise ValueError("fewer numbers than a header promises")
        block = np.frombuffer(data, dtype=sink.dtype)
        sink.write(block.reshape(chunk.stop - chunk.start, *sink.row))


def _skip(stream: IO[bytes], count: int | None = None) -> None:
    """Skip `count` bytes, or the rest of the stream if None."""
    while count is None or count > 0:
        data = stream.read(PIECE_BYTES if count is None else min(count, PIECE_BYTES))
        if not data:
            return
        count = None if count is None else count - len(data)
