"""Pools at a URL (s3://, gs://, ...): Parquet files, which are read in parts, or copies."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Any

from sabal.core.extras import import_optional
from sabal.core.urls import file_system, local_path, url_errors
from sabal.errors import FileError
from sabal.pools.chunks import pool_of_chunks
from sabal.pools.contents import PER_ITEM, Contents, check_names
from sabal.pools.frames import Columns, arrow_columns
from sabal.pools.pool_files import read_pool
from sabal.pools.scratch import Scratch, removed_on_error

BATCH_ROWS = 4096  # rows decoded at a time


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file in some file system; `groups` are the lengths of its row groups."""

    system: Any
    path: str
    url: str
    groups: tuple[int, ...]
    schema: Any

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

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
    pq = import_optional("pyarrow.parquet", "parquet", "to read pools at a URL")

    system, paths = files_at(url)
    paths = [each for each in paths if each.endswith(".parquet")]
    if not paths:
        raise FileError(
            "a .parquet file, or a folder of them, at a URL",
            url,
            "save the pool as Parquet, or copy it to a folder that all machines can read",
        )
    found = []
    with reading(url):
        for each in paths:
            with system.open_input_file(each) as stream:
                reader = pq.ParquetFile(stream)
                about = reader.metadata
                groups = (about.row_group(k).num_rows for k in range(about.num_row_groups))
                found.append(ParquetFile(system, each, url, tuple(groups), reader.schema_arrow))
    return found


def files_at(url: str) -> tuple[Any, list[str]]:
    """Return the file system of `url`, and the file there or the files in the folder there."""
    fs = import_optional("pyarrow.fs", "parquet", "to read pools at a URL")
    system, path = file_system(url)
    with reading(url):
        path = path.rstrip("/")
        info = system.get_file_info(path)
        if info.type == fs.FileType.NotFound:
            fix = "pass the folder, without *" if "*" in path else "check the URL"
            raise FileError("a pool file or folder", f"nothing at {url}", fix)
        if info.type != fs.FileType.Directory:
            return system, [path]
        inside = system.get_file_info(fs.FileSelector(path))
        return system, sorted(each.path for each in inside if each.is_file)


def remote_size(url: str) -> int:
    """Return the number of items of the pool at `url`."""
    files = parquet_files(url)
    check_names(url, files[0].names, set(files[0].names) & set(PER_ITEM))
    return sum(file.rows for file in files)


def read_url(
    url: str,
    *,
    memory: int | None = None,
    scratch: str | Path | None = None,
    columns: Columns | None = None,
    loss: str = "softmax",
) -> Contents:
    """Read the pool at `url`; the parameters are those of `select_pool`.

    Parquet files are read in parts. An .npz file, or a folder of .npy files, is copied first.
    """
    here = local_path(url)
    if here is not None and columns is None:
        return read_pool(here, memory=memory, scratch=scratch, loss=loss)
    system, paths = files_at(url)
    kinds = {PurePosixPath(path).suffix for path in paths}
    if ".npy" not in kinds and kinds != {".npz"}:
        return read_remote(url, memory=memory, scratch=scratch, columns=columns, loss=loss)
    with removed_on_error(Scratch(scratch)) as folder:
        copies = [_copied(system, path, url, folder) for path in paths if _is_array(path)]
        pool = copies[0] if kinds == {".npz"} else copies[0].parent
        contents = read_pool(pool, memory=memory, scratch=scratch, loss=loss)
        contents.pool.owner = folder
        return contents


def read_remote(
    url: str,
    start: int = 0,
    stop: int | None = None,
    *,
    memory: int | None = None,
    scratch: str | Path | None = None,
    columns: Columns | None = None,
    loss: str = "softmax",
) -> Contents:
    """Read some rows of the Parquet pool at `url`; the parameters are those of `select_pool`."""
    files = parquet_files(url)
    stop = sum(file.rows for file in files) if stop is None else stop
    wanted = arrow_columns(files[0].schema, columns, url)
    chunks = _batches(files, wanted, start, stop)
    found = pool_of_chunks(
        chunks, memory=memory, scratch=scratch, columns=columns, loss=loss, source=url
    )
    return replace(found, ignored=tuple(n for n in files[0].names if n not in wanted))


def _batches(files: list[ParquetFile], wanted: list[str], start: int, stop: int) -> Iterator[Any]:
    begin = 0
    for file in files:
        if missing := [name for name in wanted if name not in file.names]:
            raise FileError(
                f"column `{missing[0]}` in every file at {file.url}",
                f"{file.path} without it",
                "give every file the same columns",
            )
        yield from file.batches(wanted, start - begin, stop - begin, BATCH_ROWS)
        begin += file.rows


def _is_array(path: str) -> bool:
    return PurePosixPath(path).suffix in (".npy", ".npz")


def _copied(system: Any, path: str, url: str, folder: Scratch) -> Path:
    """Return a copy of a file in a scratch folder."""
    target = folder.create(PurePosixPath(path).name)
    with reading(url), system.open_input_stream(path) as stream:
        shutil.copyfileobj(stream, target)
    return folder.close(target)


@contextmanager
def reading(url: str) -> Iterator[None]:
    """Turn Arrow's errors into a FileError about this URL."""
    fix = (
        "check the URL and the permissions, or copy the pool to a folder that all machines can read"
    )
    with url_errors(url, f"a pool that can be read at {url}", fix):
        yield
