"""Pools at a URL (s3://, gs://, file://, ...): Parquet files, read through Arrow's file systems."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from sabal.core.extras import import_optional
from sabal.errors import FileError
from sabal.pools.chunks import pool_of_chunks
from sabal.pools.contents import PER_ITEM, Contents, check_names
from sabal.pools.parquet import to_array

BATCH_ROWS = 4096  # rows decoded at a time

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_remote(source: str) -> bool:
    """Return whether `source` is a URL rather than a path."""
    return _URL.match(source) is not None


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file in some file system; `groups` are the lengths of its row groups."""

    system: Any
    path: str
    url: str
    groups: tuple[int, ...]
    names: tuple[str, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(self.groups)

    def batches(self, columns: list[str] | None, start: int, stop: int, step: int) -> Iterator[Any]:
        """Yield rows `start` to `stop` as record batches of at most `step` rows."""
        import pyarrow.parquet as pq

        with reading(self.url), self.system.open_input_file(self.path) as stream:
            ends = [0, *accumulate(self.groups)]
            all_groups = range(len(self.groups))
            groups = [k for k in all_groups if ends[k] < stop and ends[k + 1] > start]
            if not groups:
                return
            at, reader = ends[groups[0]], pq.ParquetFile(stream)
            for batch in reader.iter_batches(step, groups, columns, use_threads=False):
                low, high = max(start - at, 0), min(stop - at, batch.num_rows)
                at += batch.num_rows
                if low < high:
                    yield batch.slice(low, high - low)


def parquet_files(url: str) -> list[ParquetFile]:
    """Return the Parquet files at `url`: one file, or a folder of them in name order."""
    fs = import_optional("pyarrow.fs", "parquet", "to read pools at a URL")
    pq = import_optional("pyarrow.parquet", "parquet", "to read pools at a URL")

    with reading(url):
        system, path = fs.FileSystem.from_uri(url)
        info = system.get_file_info(path)
        if info.type == fs.FileType.NotFound:
            raise FileError("a Parquet file or folder", f"nothing at {url}", "check the URL")
        paths = [path]
        if info.type == fs.FileType.Directory:
            inside = system.get_file_info(fs.FileSelector(path))
            paths = sorted(each.path for each in inside if each.is_file)
        paths = [each for each in paths if each.endswith(".parquet")]
        if not paths:
            raise FileError(
                "a .parquet file, or a folder of them, at a URL",
                url,
                "save the pool as Parquet, or copy it to a folder that all machines can read",
            )
        found = []
        for each in paths:
            with system.open_input_file(each) as stream:
                reader = pq.ParquetFile(stream)
                about = reader.metadata
                groups = (about.row_group(k).num_rows for k in range(about.num_row_groups))
                names = tuple(reader.schema_arrow.names)
                found.append(ParquetFile(system, each, url, tuple(groups), names))
        return found


def remote_size(url: str) -> int:
    """Return the number of items of the pool at `url`."""
    files = parquet_files(url)
    check_names(url, files[0].names, set(files[0].names) & set(PER_ITEM))
    return sum(file.rows for file in files)


def read_remote(
    url: str, start: int, stop: int, *, memory: int | None, scratch: str | None
) -> Contents:
    """Read some rows of the pool at `url`; `memory` and `scratch` are as in `read_pool`."""
    return pool_of_chunks(_chunks(url, start, stop), memory=memory, scratch=scratch)


def _chunks(url: str, start: int, stop: int) -> Iterator[dict[str, np.ndarray]]:
    begin, columns = 0, None
    for file in parquet_files(url):
        if columns is None:
            columns = [name for name in PER_ITEM if name in file.names]
        elif missing := [name for name in columns if name not in file.names]:
            raise FileError(
                f"column `{missing[0]}` in every file at {url}",
                f"{file.path} without it",
                "give every file the same columns",
            )
        for batch in file.batches(columns, start - begin, stop - begin, BATCH_ROWS):
            yield {name: to_array(batch.column(name), name, Path(url)) for name in columns}
        begin += file.rows


@contextmanager
def reading(url: str) -> Iterator[None]:
    """Turn Arrow's errors into a FileError about this URL."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileError(
            f"a pool that can be read at {url}",
            reason,
            "check the URL and the permissions, or copy the pool to a folder that all machines "
            "can read",
        ) from None
