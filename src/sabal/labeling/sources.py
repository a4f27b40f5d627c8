"""Where items come from: a folder of images, a .csv or .jsonl file, or a .parquet table."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sabal.core.extras import import_optional
from sabal.errors import FileError
from sabal.labeling.exchange.answer_rows import check_rows
from sabal.labeling.exchange.formats import parquet_batches
from sabal.labeling.store.records import PoolItem

MAX_DATA_BYTES = 2**32  # of the texts in a table: they are read as a whole
MAX_KEY_LENGTH = 1_000
MAX_DETAILS = 50  # other columns that are kept, so that people can look at them
MAX_DETAIL_LENGTH = 2_000
IMAGE_ENDINGS = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})
FILE_ENDINGS = (".csv", ".jsonl", ".parquet")
TEXT, IMAGES, FEATURES = "text", ("image", "path"), "features"  # the usual columns


Entry = tuple[str, str, dict[str, str]]
"""The key of an item, its content, and its other columns."""


@dataclass(frozen=True)
class ItemSource:
    """The items of a pool by row."""

    kind: str
    items: list[PoolItem]


def read_source(
    path: Path, *, text_column: str | None = None, id_column: str | None = None
) -> ItemSource:
    """Read the ids and texts of items, but no image and no features."""
    if path.is_dir():
        return _read_images(path)
    ending = path.suffix.lower()
    if ending not in FILE_ENDINGS:
        raise FileError(
            "a folder of images, or a .csv, .jsonl or .parquet file", str(path), "pass one of these"
        )
    if not path.is_file():
        raise FileError(f"a file or folder at {path}", "nothing there", "check the path")
    if ending == ".parquet":
        return _read_table(path, text_column, id_column)
    rows = _csv_rows(path) if ending == ".csv" else _json_rows(path)
    return make_source(path, "text", _texts(path, rows, text_column or "text", id_column))


def has_features(path: Path) -> bool:
    """Return whether a source is a table with a column of features."""
    return path.suffix.lower() == ".parquet" and FEATURES in _column_names(path)


def feature_width(path: Path) -> int:
    """Return the number of features a row of a table has."""
    with _parquet_file(path) as file:
        batch = next(file.iter_batches(batch_size=1, columns=[FEATURES]), None)
        if batch is None or not batch.num_rows:
            return 0
        return int(np.asarray(batch.column(FEATURES)[0].as_py(), dtype=float).size)


def read_features(path: Path) -> np.ndarray:
    """Return the features of a table in their own precision."""
    from sabal.pools.parquet import to_array

    with _parquet_file(path) as file:
        column = file.read(columns=[FEATURES]).column(FEATURES).combine_chunks()
        rows = to_array(column, FEATURES, path)
    return rows.reshape(len(rows), -1)


def _read_images(folder: Path) -> ItemSource:
    """Read all images below a folder; the id of an image is its path below the folder."""
    names = sorted(_image_names(folder))
    if not names:
        raise FileError(
            f"images ({', '.join(sorted(IMAGE_ENDINGS))}) in {folder}", "none", "check the folder"
        )
    return make_source(folder, "image", ((name, name, {}) for name in names))


def _image_names(folder: Path) -> Iterator[str]:
    # Linked folders are not followed: they may lead outside, or back.
    for place, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        below = Path(place).relative_to(folder)
        for name in files:
            if not name.startswith(".") and Path(name).suffix.lower() in IMAGE_ENDINGS:
                yield (below / name).as_posix()


def _refuse(error: OSError) -> None:
    raise FileError("a folder that can be read", str(error), "check its permissions")


def _texts(
    path: Path, rows: Iterator[dict[str, Any]], text_column: str, id_column: str | None
) -> Iterator[Entry]:
    """Yield id, text and details of every row; without a column of ids, rows are counted."""
    has_ids: bool | None = None
    for number, row in enumerate(rows):
        if number == 0 and text_column not in row:
            raise FileError(
                f"a column `{text_column}` in {path}",
                f"{', '.join(map(str, row))}",
                "name the column of the texts with --text-column (columns have commas between)",
            )
        text = row.get(text_column)
        if not isinstance(text, str):
            raise FileError(
                f"a text in column `{text_column}` of every row of {path}",
                f"none in row {number + 1}",
                "repair the row, or take it out",
            )
        if has_ids is None:
            has_ids = id_column is not None or "id" in row
        key = row.get(id_column or "id") if has_ids else number
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise FileError(
                f"an id in column `{id_column or 'id'}` of every row of {path}",
                f"{key!r} in row {number + 1}",
                "name another column, or repair the row",
            )
        yield str(key), text, _details(row, (text_column, id_column or "id"))


def _details(row: Mapping[str, Any], used: Collection[str | None]) -> dict[str, str]:
    """Return the columns of a row that are neither its text nor its id, as texts."""
    others = [name for name in row if name not in used and row[name] not in (None, "")]
    return {_shown(name): _shown(row[name]) for name in others[:MAX_DETAILS]}


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)
    # Neither NUL nor an unpaired surrogate can be stored in every database.
    text = text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= MAX_DETAIL_LENGTH else f"{text[:MAX_DETAIL_LENGTH]}…"


def _csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        # The byte order mark that spreadsheets write is no part of the first name.
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            for row in reader:
                if None in row:
                    # Cut off at the comma, half a text would be labelled.
                    raise FileError(
                        f"as many cells as the header of {path} has",
                        f"more in line {reader.line_num}",
                        "put quotes around texts that have commas in them",
                    )
                yield row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(path, error) from None


def _json_rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line in file:
                if line.strip():
                    row = json.loads(line)
                    if not isinstance(row, dict):
                        raise ValueError(f"a line with a {type(row).__name__}")
                    yield row
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> FileError:
    return FileError(f"readable rows in UTF-8 in {path}", str(error), "write the file again")


def _read_table(path: Path, text_column: str | None, id_column: str | None) -> ItemSource:
    """Read the rows of a table; the content is a column `text`, `image` or `path`, else the id."""
    names = _column_names(path)
    content = text_column or next((name for name in (TEXT, *IMAGES) if name in names), None)
    kind = "image" if text_column is None and content in IMAGES else "text"
    ids = id_column or ("id" if "id" in names else None)
    for name in (content, ids):
        if name is not None and name not in names:
            raise FileError(f"a column `{name}` in {path}", ", ".join(names), "name another")
    if content is None and FEATURES not in names:
        raise FileError(
            f"a column `{TEXT}`, {' or '.join(f'`{x}`' for x in IMAGES)} or `{FEATURES}` in {path}",
            ", ".join(names),
            "name the column of texts",
        )
    others = [name for name in _simple_columns(path) if name not in (content, ids, FEATURES)]
    return make_source(path, kind, _table_entries(path, content, ids, others[:MAX_DETAILS]))


def _column_names(path: Path) -> list[str]:
    with _parquet_file(path) as file:
        return list(file.schema_arrow.names)


def _simple_columns(path: Path) -> list[str]:
    """Return the columns whose cells a person can read: texts, numbers, dates."""
    with _parquet_file(path) as file:
        return [
            column.name
            for column in file.schema_arrow
            if not column.type.num_fields and "binary" not in str(column.type)
        ]


def _table_entries(
    path: Path, content: str | None, ids: str | None, others: Sequence[str]
) -> Iterator[Entry]:
    wanted = [name for name in dict.fromkeys((content, ids, *others)) if name is not None]
    with _parquet_file(path) as file:
        check_rows(file.metadata.num_rows, str(path))
        if not wanted:
            yield from ((str(row), str(row), {}) for row in range(file.metadata.num_rows))
            return
        number = 0
        for batch in parquet_batches(path, wanted, str(path), MAX_DATA_BYTES):
            columns = {name: batch.column(name).to_pylist() for name in wanted}
            for k in range(batch.num_rows):
                key = str(number) if ids is None else _cell(columns[ids][k], ids, path)
                shown = key if content is None else _cell(columns[content][k], content, path)
                yield key, shown, _details({name: columns[name][k] for name in others}, ())
                number += 1


def _cell(value: Any, name: str, path: Path) -> str:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise FileError(
        f"column `{name}` of {path} with a text in every row", repr(value), "fill or drop the row"
    )


@contextmanager
def _parquet_file(path: Path) -> Iterator[Any]:
    pa = import_optional("pyarrow", "app", "to read Parquet files")
    pq = import_optional("pyarrow.parquet", "app", "to read Parquet files")

    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise FileError(f"a readable Parquet file {path}", str(error), "write it again") from None


def make_source(path: Path, kind: str, entries: Iterable[Entry]) -> ItemSource:
    """Return a source of entries; keys must be distinct, and keys and contents valid text."""
    items: list[PoolItem] = []
    seen: set[str] = set()
    for row, (key, content, details) in enumerate(entries):
        if not key or len(key) > MAX_KEY_LENGTH or key in seen or "\0" in key:
            raise FileError(
                f"a distinct id of 1 to {MAX_KEY_LENGTH} characters, without NUL, for every item "
                f"of {path}",
                f"{key[:100]!r} at item {row}",
                "repair it, or name another column of ids",
            )
        for text in (key, content):
            _check_text(path, row, text)
        seen.add(key)
        items.append(PoolItem(row, key, kind, content, details))
    if not items:
        raise FileError(f"items in {path}", "none", "check what the path points to")
    blank = [item.id for item in items if not item.content.strip()]
    if blank:
        raise FileError(
            f"something to see in every row of {path}",
            f"{len(blank)} of {len(items)} empty, row {blank[0] + 1} first",
            "fill these rows or take them out, or name another column",
        )
    return ItemSource(kind, items)


def _check_text(path: Path, row: int, text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise FileError(
            f"names and texts of {path} in valid Unicode",
            f"item {row}, {text[:100]!a}",
            "rename or repair it",
        ) from None
