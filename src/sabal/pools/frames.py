"""Pools in tables: data frames, Arrow tables and datasets, and whatever streams Arrow data.

pandas needs no other package. Everything else comes in through the Arrow PyCapsule interface
(`__arrow_c_stream__`: polars, DuckDB, pyarrow, ...) or as an iterable of such parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sabal.core.arrays import as_array, to_numpy
from sabal.core.extras import import_optional
from sabal.errors import FileError, InputError, UnknownNameError, did_you_mean
from sabal.pools.contents import PER_ITEM, check_names
from sabal.pools.parquet import to_array

BATCH_ROWS = 4096  # rows of a Hugging Face dataset converted at a time

LABELS = ("label", "labels", "target", "targets", "class", "y")
"""Columns that are labels by their name, and so never features unless that is said."""

THE_TABLE = "the table"

Columns = Mapping[str, str | Sequence[str]]
"""The columns of each array: one column of lists, or one column per number."""


def is_table(value: Any) -> bool:
    """Return whether `value` is a data frame, an Arrow table, or something that streams Arrow."""
    return _is_pandas(value) or _arrow_reader(value) is not None


def table_chunks(table: Any, columns: Columns | None = None) -> Iterator[dict[str, Any]]:
    """Yield the arrays of a pool in a table, some rows at a time.

    Parameters
    ----------
    table : table
        See `is_table`. The index of a pandas frame is used as ids, unless there is a column `id`
        or the index is the default one.
    columns : mapping, optional
        The columns of each array; see `arrays_of_columns`.
    """
    if _is_pandas(table):
        chunk = chunk_of_table(table, columns)
        if "id" not in chunk and (ids := index_ids(table)) is not None:
            chunk["id"] = ids
        yield chunk
        return
    read = _arrow_reader(table)
    if read is None:
        raise InputError("a table", type(table).__name__, "pass a data frame or an Arrow table")
    for part in read(table):
        # A part may have several chunks of its own.
        for batch in part.to_batches() if hasattr(part, "to_batches") else [part]:
            yield chunk_of_table(batch, columns)


def table_arrays(table: Any, columns: Columns | None = None) -> dict[str, np.ndarray]:
    """Return the arrays of a pool in a table, whole; ids are called `ids`."""
    parts = list(table_chunks(table, columns))
    names = list(parts[0]) if parts else []
    whole = {}
    for name in names:
        blocks = [np.asarray(part[name]) if name == "id" else part[name] for part in parts]
        whole["ids" if name == "id" else name] = np.concatenate(
            blocks if name == "id" else [to_numpy(as_array(block, name)) for block in blocks]
        )
    return whole


def chunk_of_table(
    table: Any, columns: Columns | None = None, source: str = THE_TABLE
) -> dict[str, Any]:
    """Return the arrays in a pandas frame, or in an Arrow record batch or table of `source`."""
    if _is_pandas(table):
        names = [str(name) for name in table.columns]
        numeric = [name for name, kind in zip(names, table.dtypes, strict=True) if _number(kind)]

        def column(name: str) -> Any:
            return table.iloc[:, names.index(name)]
    else:
        table = _one_batch(table)
        names = list(table.schema.names)
        numeric = _numeric_names(table.schema)

        def column(name: str) -> Any:
            return _arrow_column(table.column(name), name, source)

    wanted = arrays_of_columns(names, numeric, columns, source)
    return {array: _joined(found, column) for array, found in wanted.items()}


def arrow_columns(schema: Any, columns: Columns | None, source: str) -> list[str]:
    """Return the columns of an Arrow schema that a pool uses, in their order."""
    wanted = arrays_of_columns(schema.names, _numeric_names(schema), columns, source)
    used = {
        name for found in wanted.values() for name in ([found] if isinstance(found, str) else found)
    }
    return [name for name in schema.names if name in used]


def arrays_of_columns(
    names: Sequence[str],
    numeric: Sequence[str],
    columns: Columns | None = None,
    source: str = THE_TABLE,
) -> dict[str, str | list[str]]:
    """Return the columns of each array of a pool.

    A column with the name of an array is that array. If there is no such column, and every column
    but `id` is numeric, each is a feature. `columns` overrides both.

    Parameters
    ----------
    names, numeric : sequence of str
        All columns of the table, and those with numbers.
    columns : mapping, optional
        For some arrays, a column of lists, or a list of columns with a number each.
    source : str
        What the table is called in messages.
    """
    _check_once(names)
    given = {} if columns is None else _checked(columns, names)
    found: dict[str, str | list[str]] = {name: name for name in PER_ITEM if name in names}
    found |= given
    if set(found) - {"id"}:
        if not given:
            check_names(source, names, found)
        return found
    others = [name for name in names if name not in (found.get("id"), "id")]
    odd = [name for name in others if name not in numeric or name.lower() in LABELS]
    if odd or not others:
        raise InputError(
            f"a table with some of {', '.join(PER_ITEM)}, or with features only",
            f"the columns {', '.join(names) or '(none)'} in {source}",
            "say which columns are features: columns={'features': [...]}, or on the command line "
            "--columns features=NAME",
        )
    return {**found, "features": others}


def index_ids(*frames: Any) -> np.ndarray | None:
    """Return the index of the first pandas object as ids; None if it is the default index.

    An index that repeats, or that is neither integers nor text, is no list of ids either.
    """
    for frame in frames:
        if not _is_pandas(frame, series=True):
            continue
        index = frame.index
        plain = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
        values = np.asarray(index)
        if values.dtype.kind == "O" and all(isinstance(value, str) for value in values):
            values = values.astype(str)
        usable = values.ndim == 1 and values.dtype.kind in "iuU" and index.is_unique
        return values if usable and not plain else None
    return None


def _checked(columns: Columns, names: Sequence[str]) -> dict[str, str | list[str]]:
    if not isinstance(columns, Mapping):
        raise InputError(
            "`columns` as a dict from arrays to columns",
            type(columns).__name__,
            "pass for instance columns={'features': 'embedding'}",
        )
    found: dict[str, str | list[str]] = {}
    for array, given in columns.items():
        if array not in PER_ITEM:
            raise UnknownNameError(
                f"`columns` of some of {', '.join(PER_ITEM)}",
                repr(array),
                did_you_mean(str(array), PER_ITEM),
            )
        several = not isinstance(given, str) and isinstance(given, Sequence | np.ndarray)
        listed = [str(name) for name in given] if several else [str(given)]
        for name in listed:
            if name not in names:
                raise UnknownNameError(
                    f"columns of the table ({', '.join(names)})", name, did_you_mean(name, names)
                )
        if not listed:
            raise InputError(f"columns of `{array}`", "an empty list", "name at least one")
        found[array] = listed if several else listed[0]
    return found


def _check_once(names: Sequence[str]) -> None:
    twice = [name for name in set(names) if list(names).count(name) > 1]
    if twice:
        raise InputError("columns with distinct names", f"{twice[0]!r} twice", "rename one of them")


def _joined(columns: str | list[str], column: Callable[[str], Any]) -> Any:
    """Return a column as it is, or several side by side."""
    if isinstance(columns, str):
        return column(columns)
    return np.stack([to_numpy(as_array(column(name), name)) for name in columns], axis=1)


def _is_pandas(value: Any, *, series: bool = False) -> bool:
    kinds = [cls for cls in type(value).__mro__ if cls.__module__.split(".")[0] == "pandas"]
    names = ("DataFrame", "Series") if series else ("DataFrame",)
    return any(cls.__name__ in names for cls in kinds)


def _number(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in "biuf"


def _arrow_reader(value: Any) -> Callable[[Any], Any] | None:
    """Return what iterates over the Arrow data of `value`; None if there is none."""
    if hasattr(value, "__arrow_c_stream__"):
        return _stream
    if hasattr(value, "__arrow_c_array__"):
        return lambda table: [table]
    if hasattr(value, "with_format") and hasattr(value, "iter"):  # Hugging Face
        return lambda table: table.with_format("arrow").iter(batch_size=BATCH_ROWS)
    if hasattr(value, "to_batches") and hasattr(value, "count_rows"):  # an Arrow dataset or scanner
        return lambda table: table.to_batches()
    if hasattr(value, "to_arrow_iter"):  # Daft
        return lambda table: table.to_arrow_iter()
    if hasattr(value, "toArrow"):  # Spark
        return lambda table: [table.toArrow()]
    return None


def _stream(table: Any) -> Any:
    return _pyarrow().RecordBatchReader.from_stream(table)


def _one_batch(table: Any) -> Any:
    """Return a record batch (of any library) or a table of Arrow."""
    if hasattr(table, "schema") and hasattr(table, "column"):
        return table
    if hasattr(table, "__arrow_c_array__"):
        return _pyarrow().record_batch(table)
    return _stream(table).read_all()


def _pyarrow() -> Any:
    return import_optional("pyarrow", "parquet", "to read Arrow data")


def _numeric_names(schema: Any) -> list[str]:
    types = _pyarrow().types
    tests = (types.is_integer, types.is_floating, types.is_boolean)
    return [field.name for field in schema if any(test(field.type) for test in tests)]


def _arrow_column(column: Any, name: str, source: str) -> np.ndarray:
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    try:
        return to_array(column, name, source)
    except FileError as error:
        raise InputError(error.expected, error.got, error.fix) from None
