"""Pools in a Parquet file or a folder of them: read whole, or decoded a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from sabal.core.extras import import_optional
from sabal.errors import FileError
from sabal.pools.contents import PER_ITEM, ArraySpec, unreadable
from sabal.pools.scratch import Scratch
from sabal.pools.sinks import Sink, Strings, Wanted

BATCH_BYTES = 2**20  # bytes decoded at a time

BUFFER_BYTES = 2**18
"""Bytes of a column read at a time.

Without it, Arrow reads the column of a whole row group, and a file may be a single row group.
"""


class ParquetPool:
    """A .parquet file, or a folder of them in name order."""

    def __init__(self, path: Path) -> None:
        ds = import_optional("pyarrow.dataset", "parquet", "to read Parquet files")

        self.path = path
        with _reading(path):
            self._dataset = ds.dataset(str(path), format="parquet")
            self._types = {field.name: field.type for field in self._dataset.schema}
        self.names = list(self._dataset.schema.names)
        self._columns = [name for name in PER_ITEM if name in self.names]

    def whole(self) -> dict[str, np.ndarray]:
        """Return all arrays of the pool, in memory."""
        # In blocks: Arrow's table of the whole file would be in memory beside the arrays.
        everything = Wanted(0, sum(self._sizes), stored=False, scratch=Scratch())
        return self.read(self._columns, everything)

    def specs(self) -> dict[str, ArraySpec]:
        """Return the metadata of all arrays of the pool."""
        return dict(self._specs)

    def read(self, names: list[str], wanted: Wanted) -> dict[str, Any]:
        """Return the requested rows of some columns, decoded together."""
        import pyarrow as pa

        specs = {name: self._specs[name] for name in names}
        sinks = {name: self._sink(name, spec, wanted) for name, spec in specs.items()}
        width = sum(spec.nbytes // max(1, spec.shape[0]) for spec in specs.values())
        step = max(1, BATCH_BYTES // max(1, width))
        first = 0
        for file, size in zip(self._dataset.files, self._sizes, strict=True):
            start, stop = max(wanted.start - first, 0), min(wanted.stop - first, size)
            first += size
            for batch in self._batches(file, names, start, stop, step):
                for name, sink in sinks.items():
                    self._write(sink, self._column(batch, name, file), name, specs[name])
        pa.default_memory_pool().release_unused()
        for name, sink in sinks.items():
            if sink.size != len(wanted):
                raise unreadable(self.path, f"{sink.size} of {len(wanted)} rows of `{name}`")
        return {name: sink.done() for name, sink in sinks.items()}

    @cached_property
    def _sizes(self) -> list[int]:
        """The number of rows of each file."""
        with _reading(self.path):
            return [_open(file).metadata.num_rows for file in self._dataset.files]

    @cached_property
    def _specs(self) -> dict[str, ArraySpec]:
        """The metadata of every column, from the first row and the metadata of all files."""
        size = sum(self._sizes)
        for file, rows in zip(self._dataset.files, self._sizes, strict=True):
            for batch in self._batches(file, self._columns, 0, min(rows, 1), 1):
                return {
                    name: self._spec(self._column(batch, name, file), name, size)
                    for name in self._columns
                }
        return {name: ArraySpec((0,), np.dtype(np.float64), 0) for name in self._columns}

    def _spec(self, first: Any, name: str, size: int) -> ArraySpec:
        if _is_text(first.type) or _is_bytes(first.type):
            with _reading(self.path):
                encoded = sum(_column_bytes(_open(file), name) for file in self._dataset.files)
            # In memory: four bytes per character, and temporarily a Python string each.
            return ArraySpec((size,), None, 4 * encoded + 64 * size, encoded + 8 * (size + 1))
        row = to_array(first, name, self.path)
        return ArraySpec.of_numbers((size, *row.shape[1:]), row.dtype, True)

    def _sink(self, name: str, spec: ArraySpec, wanted: Wanted) -> Sink:
        if spec.dtype is None:
            return wanted.strings(name, text=_is_text(self._types[name]))
        return wanted.numbers(name, spec.shape[1:], spec.dtype)

    def _write(self, sink: Sink, column: Any, name: str, spec: ArraySpec) -> None:
        if isinstance(sink, Strings):
            _check_gaps(column, name, self.path)
            with _reading(self.path):
                sink.write_encoded(*_encoded(column))
            return
        block = to_array(column, name, self.path)
        if block.shape[1:] != spec.shape[1:]:
            raise _ragged(name, self.path)
        sink.write(block)

    def _column(self, batch: Any, name: str, file: str) -> Any:
        """Return a column of a batch, cast to its type in the first file."""
        if name not in batch.schema.names:
            raise FileError(
                f"column `{name}` of {self.path} without gaps",
                f"{file} without this column",
                "give every file the same columns",
            )
        with _reading(file):
            column = batch.column(name)
            return column if column.type == self._types[name] else column.cast(self._types[name])

    def _batches(
        self, file: str, names: Sequence[str], start: int, stop: int, step: int
    ) -> Iterator[Any]:
        """Yield rows of a file, at most `step` at a time, reading only the row groups needed."""
        if start >= stop:
            return
        with _reading(file):
            reader = _open(file)
            groups = reader.metadata
            sizes = [groups.row_group(k).num_rows for k in range(groups.num_row_groups)]
            begins = [0, *accumulate(sizes)]
            chosen = [
                k for k, begin in enumerate(begins[:-1]) if begin < stop and begins[k + 1] > start
            ]
            at = begins[chosen[0]]
            for batch in reader.iter_batches(step, chosen, columns=names, use_threads=False):
                begin, end = max(start - at, 0), min(stop - at, batch.num_rows)
                at += batch.num_rows
                if begin < end:
                    yield batch.slice(begin, end - begin)
                if at >= stop:
                    return


def to_array(column: Any, name: str, source: str | Path) -> np.ndarray:
    """Return an Arrow column of numbers, strings or equally long (nested) lists as an array."""
    import pyarrow as pa

    if hasattr(column, "to_numpy_ndarray") and not column.null_count:
        return np.asarray(column.to_numpy_ndarray())  # tensors of one shape
    values = column = getattr(column, "storage", column)  # of an extension type
    shape = [len(values)]
    while pa.types.is_nested(values.type):
        no_list = pa.types.is_struct(values.type) or pa.types.is_map(values.type)
        if no_list or not hasattr(values, "flatten") or values.null_count:
            raise FileError(
                f"column `{name}` of {source} as lists of numbers, one for every row",
                f"{column.type} with {values.null_count} empty rows",
                "fill or drop these rows",
            )
        entries = values.flatten()
        length, ragged = divmod(len(entries), len(values)) if len(values) else (0, 0)
        lengths = values.value_lengths() if hasattr(values, "value_lengths") else None
        if ragged or (lengths is not None and any(x.as_py() != length for x in lengths.unique())):
            raise _ragged(name, source)
        shape.append(length)
        values = entries
    _check_gaps(values, name, source)
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(shape)


def _check_gaps(values: Any, name: str, source: str | Path) -> None:
    if values.null_count:
        raise FileError(
            f"column `{name}` of {source} without gaps",
            f"{values.null_count} empty entries",
            "fill or drop these rows",
        )


def _ragged(name: str, source: str | Path) -> FileError:
    return FileError(
        f"lists of one length in column `{name}` of {source}",
        "lists of different lengths",
        "give every item the same number of entries",
    )


def _open(file: str) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False, memory_map=False)


def _column_bytes(reader: Any, name: str) -> int:
    """Return the uncompressed size of a column of a file."""
    groups = [reader.metadata.row_group(k) for k in range(reader.metadata.num_row_groups)]
    columns = [group.column(k) for group in groups for k in range(group.num_columns)]
    return sum(c.total_uncompressed_size for c in columns if c.path_in_schema == name)


def _encoded(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of all strings of a column, and the length of each."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    column = column.cast(pa.large_string() if _is_text(column.type) else pa.large_binary())
    # Report invalid UTF-8 now rather than at the end of the selection.
    column.validate(full=True)
    _, ends, data = column.buffers()
    bounds = np.frombuffer(ends, dtype=np.int64)[column.offset :][: len(column) + 1]
    blob = np.frombuffer(data or b"", dtype=np.uint8)
    return blob[bounds[0] : bounds[-1]], np.diff(bounds)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view"


def _is_bytes(kind: Any) -> bool:
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or str(kind) == "binary_view"
    )


@contextmanager
def _reading(source: str | Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        # KeyError: two columns with the same name.
        raise unreadable(source, error) from None
