"""Read a data set in parts, score each with a model, and write the predictions."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sabal.core.arrays import as_array, to_numpy
from sabal.core.checks import check_same_items
from sabal.core.extras import import_optional
from sabal.core.urls import is_url, write_file
from sabal.errors import FileError, InputError, UnknownNameError, did_you_mean
from sabal.pools.contents import PER_ITEM
from sabal.pools.parquet import to_array
from sabal.pools.pool import FILE_ARRAYS
from sabal.pools.remote import ParquetFile, parquet_files

Batch = dict[str, np.ndarray]
ScoreFunction = Callable[[Batch], Mapping[str, Any]]
"""Returns some of `features`, `logits`, `probs`, `log_probs`, ... for a batch."""

MAX_PART_ROWS = 65_536  # the maximum number of rows of a part, unless a row group is larger


class DataPart(Protocol):
    """Rows of a data set that one worker scores and writes to one file."""

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield the rows, at most `size` at a time."""


@dataclass(frozen=True)
class ParquetPart:
    """Whole row groups of a Parquet file."""

    file: ParquetFile
    start: int
    stop: int

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield the rows, at most `size` at a time."""
        for batch in self.file.batches(None, self.start, self.stop, size):
            yield {name: _column(batch.column(name), name) for name in batch.schema.names}


@dataclass(frozen=True)
class NpyPart:
    """The same rows of several .npy files."""

    files: dict[str, str]
    start: int
    stop: int

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield the rows, at most `size` at a time."""
        arrays = {name: _mapped(path) for name, path in self.files.items()}
        for start in range(self.start, self.stop, size):
            rows = slice(start, min(start + size, self.stop))
            yield {name: np.array(array[rows]) for name, array in arrays.items()}


def parts_of(source: str | Path, batch_size: int, workers: int) -> list[DataPart]:
    """Return the parts of a data set, in order; several per worker if it is large enough."""
    text = os.fspath(source)
    folder = Path(text)
    if not is_url(text) and folder.is_dir() and any(folder.glob("*.npy")):
        return _npy_parts(folder.absolute(), batch_size, workers)
    if is_url(text):
        files = parquet_files(text)
    elif folder.is_dir() or folder.suffix == ".parquet":
        files = parquet_files(folder.absolute().as_uri())
    else:
        raise FileError(
            "a .parquet file, or a folder of .parquet or .npy files",
            text if folder.exists() else f"nothing at {text}",
            "check the path",
        )
    size = sum(file.rows for file in files)
    if not size:
        raise FileError("a data set with rows", f"none in {text}", "check the path")
    target = _rows_in_a_part(size, batch_size, workers)
    return [part for file in files for part in _parquet_parts(file, target)]


def _rows_in_a_part(rows: int, batch_size: int, workers: int) -> int:
    wanted = min(MAX_PART_ROWS, math.ceil(rows / (4 * workers)))
    return batch_size * max(1, math.ceil(wanted / batch_size))


def _parquet_parts(file: ParquetFile, target: int) -> list[DataPart]:
    """Return parts of whole row groups, as a split group would be decoded twice."""
    bounds, end = [0], 0
    for rows in file.groups:
        end += rows
        if end - bounds[-1] >= target:
            bounds.append(end)
    if end > bounds[-1]:
        bounds.append(end)
    return [ParquetPart(file, *pair) for pair in pairwise(bounds)]


def _npy_parts(folder: Path, batch_size: int, workers: int) -> list[DataPart]:
    files = {path.stem: str(path) for path in sorted(folder.glob("*.npy"))}
    arrays = {name: _mapped(path) for name, path in files.items()}
    if any(array.ndim == 0 for array in arrays.values()):
        raise FileError(f"arrays with rows in {folder}", "a single number", "save rows")
    size = check_same_items(**arrays)
    if not size:
        raise FileError("a data set with rows", f"none in {folder}", "check the path")
    step = _rows_in_a_part(size, batch_size, workers)
    return [NpyPart(files, start, min(start + step, size)) for start in range(0, size, step)]


def _mapped(path: str) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FileError(f"a readable array in {path}", str(error), "write it again") from None


def _column(column: Any, name: str) -> np.ndarray:
    """Return a column as a numeric array, or as an object array (texts, images, ...)."""
    column = getattr(column, "storage", column)
    try:
        return to_array(column, name, Path())
    except FileError:
        found = np.empty(len(column), dtype=object)
        found[:] = column.to_pylist()
        return found


def write_scores(
    part: DataPart, score: ScoreFunction, batch_size: int, path: str | Path
) -> tuple[int, str]:
    """Score a part, write it to a Parquet file, and return its number of rows and schema."""
    pa = import_optional("pyarrow", "ray", "to write Parquet files")
    pq = import_optional("pyarrow.parquet", "ray", "to write Parquet files")

    rows, schema = 0, None

    def write(target: Path) -> None:
        nonlocal rows, schema
        writer = None
        for batch in part.batches(batch_size):
            table = pa.table(_columns(_scored(score, batch)))
            if writer is None:
                schema = table.schema
                writer = pq.ParquetWriter(target, schema)
            if table.schema != schema:
                raise schema_mismatch(str(schema), str(table.schema))
            writer.write_table(table)
            rows += table.num_rows
        if writer is not None:
            writer.close()

    write_file(path, write)
    return rows, str(schema)


def schema_mismatch(first: str, other: str) -> InputError:
    """Return the error for a model whose batches have different columns."""
    return InputError(
        f"the same arrays for every batch ({first})", other, "return arrays of one shape and dtype"
    )


def _scored(score: ScoreFunction, batch: Batch) -> dict[str, np.ndarray]:
    """Return the checked output of `score` for a batch; ids pass through."""
    size = len(next(iter(batch.values())))
    output = score(batch)
    if not isinstance(output, Mapping):
        raise InputError(
            "a dict of arrays from `score`", type(output).__name__, 'return {"features": ...}'
        )
    found: dict[str, np.ndarray] = {}
    for name, value in output.items():
        if name not in PER_ITEM:
            raise UnknownNameError(
                f"arrays named {', '.join(PER_ITEM)} from `score`",
                repr(name),
                did_you_mean(str(name), PER_ITEM, "leave it out"),
            )
        found[name] = np.asarray(value) if name == "id" else to_numpy(as_array(value, name))
    if not set(found) & set(FILE_ARRAYS):
        raise InputError(
            f"some of {', '.join(FILE_ARRAYS)} from `score`",
            " and ".join(found) or "nothing",
            'return for instance {"features": ..., "logits": ...}',
        )
    if "id" in batch:
        found.setdefault("id", batch["id"])
    for name, array in found.items():
        if array.ndim == 0 or array.shape[0] != size:
            raise InputError(
                f"`{name}` with a row for each of the {size} items of a batch",
                f"shape {array.shape}",
                "return one row for every row that came",
            )
    return found


def _columns(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return Arrow columns; arrays with several values per item become fixed-size lists."""
    import pyarrow as pa

    columns = {}
    for name in PER_ITEM:
        if name in arrays:
            array = arrays[name]
            values = pa.array(array.tolist() if name == "id" else array.reshape(-1))
            for length in reversed(array.shape[1:]):
                values = pa.FixedSizeListArray.from_arrays(values, length)
            columns[name] = values
    return columns
