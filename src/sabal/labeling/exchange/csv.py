"""CSV that a spreadsheet may open without running anything, and that reads back exactly."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sabal.errors import FileError
from sabal.labeling.exchange.rows import Found, Row

GUARDED = re.compile(r"'*[=+\-@\t\r]")
"""What a spreadsheet might take for a formula, and what looks like such a text with its guard."""


def write_csv(rows: Sequence[Row], columns: Sequence[str]) -> bytes:
    """A header and the rows, in UTF-8."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_guarded(row.get(name)) for name in columns])
    return file.getvalue().encode()


def read_csv(data: bytes, source: str) -> list[Found]:
    """The rows below the header, which names the columns."""
    try:
        # A spreadsheet may put a mark of the encoding at the very beginning.
        text = data.decode("utf-8-sig")
        with _cells_of_any_length():
            return list(_found(text, source))
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"CSV in UTF-8 in {source}", str(error), "write the file again") from None


def _found(text: str, source: str) -> Iterator[Found]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns = next(reader, [])
    missing = [name for name in ("id", "label") if columns.count(name) != 1]
    if missing:
        raise FileError(
            f"a header with the columns id and label, each once, in {source}",
            ",".join(columns) or "an empty file",
            f"check {' and '.join(missing)}, and that columns have commas between",
        )
    for cells in reader:
        where = f"line {reader.line_num} of {source}"
        if not cells:
            continue
        if len(cells) != len(columns):
            raise FileError(f"{len(columns)} cells in {where}", str(len(cells)), "correct the file")
        yield Found(dict(zip(columns, map(_bare, cells), strict=True)), where)


def _guarded(value: object) -> object:
    """A text that might be taken for a formula gets an apostrophe in front.

    So does one that has apostrophes before such a beginning: taking one off is then always right.
    """
    return f"'{value}" if isinstance(value, str) and GUARDED.match(value) else value


def _bare(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and GUARDED.match(cell) else cell


@contextmanager
def _cells_of_any_length() -> Iterator[None]:
    """A text to be labelled may be longer than the cells that the csv module takes by itself."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)
