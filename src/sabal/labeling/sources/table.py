"""A .parquet file: texts or paths of images to show, and features of the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sabal.errors import FileError
from sabal.labeling.sources.source import Source, source_of

TEXT, IMAGES, FEATURES = "text", ("image", "path"), "features"
"""Columns by their usual names."""


def read_table(path: Path, text_column: str | None, id_column: str | None) -> Source:
    """The rows of a table: what to show is a column `text`, `image` or `path`, else the id."""
    names = _names(path)
    shown = text_column or next((name for name in (TEXT, *IMAGES) if name in names), None)
    kind = "image" if text_column is None and shown in IMAGES else "text"
    ids = id_column or ("id" if "id" in names else None)
    for name in (shown, ids):
        if name is not None and name not in names:
            raise FileError(f"a column `{name}` in {path}", ", ".join(names), "name another")
    if shown is None and FEATURES not in names:
        raise FileError(
            f"a column `{TEXT}`, {' or '.join(f'`{x}`' for x in IMAGES)} or `{FEATURES}` in {path}",
            ", ".join(names),
            "name the column of texts",
        )
    wanted = [name for name in dict.fromkeys((shown, ids)) if name is not None]
    return source_of(path, kind, _entries(path, wanted, shown, ids))


def has_features(path: Path) -> bool:
    """Whether a source comes with features of its own."""
    return path.suffix.lower() == ".parquet" and FEATURES in _names(path)


def read_features(path: Path) -> np.ndarray:
    """The features of a table, in its own precision."""
    from sabal.pools.parquet import to_array

    with _reading(path) as file:
        column = file.read(columns=[FEATURES]).column(FEATURES).combine_chunks()
        rows = to_array(column, FEATURES, path)
    return rows.reshape(len(rows), -1)


def _names(path: Path) -> list[str]:
    with _reading(path) as file:
        return list(file.schema_arrow.names)


def _entries(
    path: Path, wanted: list[str], shown: str | None, ids: str | None
) -> Iterator[tuple[str, str]]:
    with _reading(path) as file:
        if not wanted:
            yield from ((str(row), str(row)) for row in range(file.metadata.num_rows))
            return
        number = 0
        for batch in file.iter_batches(columns=wanted):
            columns = {name: batch.column(name).to_pylist() for name in wanted}
            for k in range(batch.num_rows):
                key = str(number) if ids is None else _text(columns[ids][k], ids, path)
                yield key, key if shown is None else _text(columns[shown][k], shown, path)
                number += 1


def _text(value: Any, name: str, path: Path) -> str:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise FileError(
        f"column `{name}` of {path} with a text in every row", repr(value), "fill or drop the row"
    )


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise FileError(f"a readable Parquet file {path}", str(error), "write it again") from None
