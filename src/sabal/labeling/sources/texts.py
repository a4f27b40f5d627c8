"""Texts in a .csv file with a header, or in a .jsonl file with an object a line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sabal.errors import FileError
from sabal.labeling.sources.source import Source, source_of


def read_texts(path: Path, text_column: str | None, id_column: str | None) -> Source:
    """A text a row; without a column of ids (`id` if there is one) rows are counted from 0."""
    rows = _csv_rows(path) if path.suffix.lower() == ".csv" else _json_rows(path)
    return source_of(path, "text", _entries(path, rows, text_column or "text", id_column))


def _entries(
    path: Path, rows: Iterator[dict[str, Any]], text_column: str, id_column: str | None
) -> Iterator[tuple[str, str]]:
    own_ids: bool | None = None
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
        if own_ids is None:
            own_ids = id_column is not None or "id" in row
        key = row.get(id_column or "id") if own_ids else number
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise FileError(
                f"an id in column `{id_column or 'id'}` of every row of {path}",
                f"{key!r} in row {number + 1}",
                "name another column, or repair the row",
            )
        yield str(key), text


def _csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        # The mark at the beginning that spreadsheets write is no part of the first name.
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
