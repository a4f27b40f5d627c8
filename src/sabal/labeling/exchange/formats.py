"""The file formats of labels: their names, and reading and writing CSV, JSONL and Parquet.

CSV is safe to open in a spreadsheet, which runs nothing in it, and reads back exactly.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sabal.core.extras import import_optional
from sabal.core.files import is_stream
from sabal.errors import FileError, UnknownNameError, did_you_mean
from sabal.labeling.exchange.answer_rows import (
    BATCH_COLUMNS,
    FileRow,
    RowValues,
    check_rows,
    check_size,
)

ENDINGS = {"csv": ".csv", "jsonl": ".jsonl", "parquet": ".parquet", "label-studio": ".json"}
"""The file ending of each format."""

FORMATS = tuple(ENDINGS)

IMAGE_ENDINGS = {"cvat": ".xml", "fiftyone": ".json"}
"""The file ending of each format for images only. A `.json` file is taken for Label Studio's."""

ALL_FORMATS = (*FORMATS, *IMAGE_ENDINGS)

MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
    "label-studio": "application/json",
}
"""The media type of each format."""

TEXT_TYPES = ("string", "large_string", "binary", "large_binary")
ROWS_PER_BATCH = 10_000  # rows of a Parquet file that are decoded at a time
FORMULA = r"(?='*[=+\-@＝＋－＠\t\r\n])"  # noqa: RUF001  # some spreadsheets take the wide signs
FORMULA_INSIDE = r"(?='*[=+\-@＝＋－＠](?!\)))"  # noqa: RUF001  # no formula begins like ;-)
FORMULAS = re.compile(f"^{FORMULA}|;{FORMULA_INSIDE}")
GUARDED = re.compile(f"^'{FORMULA}|;'{FORMULA_INSIDE}")
"""Where a cell looks like a formula: at its beginning, and, as some countries separate cells by
semicolons, behind one. And where it would, but for an apostrophe."""
NUMBERS = {
    "round": "int64",
    "rank": "int64",
    "weight": "float64",
    "probability": "float64",
}  # the other columns are text


def format_of(path: str | Path) -> str:
    """Return the format of a file by its ending."""
    ending = Path(path).suffix.lower()
    for name, usual in {**ENDINGS, **IMAGE_ENDINGS}.items():
        if usual == ending:
            return name
    raise FileError(
        f"a file name that ends in {', '.join(ENDINGS.values())}",
        str(path),
        "choose one of these endings, or name the format with --format",
    )


def format_to_write(path: str | Path) -> str:
    """Return the format to write to `path`; CSV for streams without a known ending."""
    ending = Path(path).suffix.lower()
    return "csv" if is_stream(path) and ending not in ENDINGS.values() else format_of(path)


def check_format(name: str, known: Sequence[str] = FORMATS) -> str:
    """Return the name of a format; refuse one that does not exist."""
    if name not in known:
        raise UnknownNameError(
            f"a format out of {', '.join(known)}", repr(name), did_you_mean(name, known)
        )
    return name


def write_csv(rows: Sequence[RowValues], columns: Sequence[str]) -> bytes:
    """Return a header and the rows as CSV in UTF-8."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(map(_guarded, columns))
    for row in rows:
        writer.writerow([_guarded(row.get(name)) for name in columns])
    return file.getvalue().encode()


def read_csv(data: bytes, source: str) -> list[FileRow]:
    """Return the rows of a CSV file whose header names the columns."""
    try:
        # A spreadsheet may write a byte order mark first.
        text = data.decode("utf-8-sig")
        with _unlimited_cells():
            return list(_csv_rows(text, source))
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"CSV in UTF-8 in {source}", str(error), "write the file again") from None


def _csv_rows(text: str, source: str) -> Iterator[FileRow]:
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
        check_rows(reader.line_num, source)
        yield FileRow(dict(zip(columns, map(_unguarded, cells), strict=True)), where)


def _guarded(value: object) -> object:
    """Put an apostrophe before what a spreadsheet may take for a formula.

    One with apostrophes before it gets another one, so that removing one is always right.
    """
    return FORMULAS.sub(lambda found: f"{found[0]}'", value) if isinstance(value, str) else value


def _unguarded(cell: str) -> str:
    return GUARDED.sub(lambda found: found[0][:-1], cell)


@contextmanager
def _unlimited_cells() -> Iterator[None]:
    """Accept cells longer than the default limit of the csv module: texts may be long."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def write_jsonl(rows: Sequence[RowValues], columns: Sequence[str]) -> bytes:
    """Return a JSON object per row and line, in UTF-8."""
    lines = [{name: row.get(name) for name in columns} for row in rows]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def read_jsonl(data: bytes, source: str) -> list[FileRow]:
    """Return the objects of a JSONL file; empty lines are ignored."""
    found: list[FileRow] = []
    # Not splitlines: a JSON string may contain other line separators of Unicode.
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"line {number} of {source}"
        check_rows(len(found), source)
        row = parse_json(line, where)
        if not isinstance(row, dict):
            raise FileError(f"a JSON object in {where}", type(row).__name__, "correct the file")
        found.append(FileRow(row, where))
    return found


def parse_json(data: bytes, where: str) -> Any:
    """Return the value of a JSON text in UTF-8."""
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise FileError(f"JSON in UTF-8 in {where}", str(error), "write the file again") from None


def write_parquet(rows: Sequence[RowValues], columns: Sequence[str]) -> bytes:
    """Return the rows as a Parquet file."""
    pa = import_optional("pyarrow", "app", "to write Parquet files")
    pq = import_optional("pyarrow.parquet", "app", "to write Parquet files")

    table = pa.table(
        {name: pa.array([row.get(name) for row in rows], type=_type_of(name)) for name in columns}
    )
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def _type_of(column: str) -> str:
    return "float64" if column.startswith("p: ") else NUMBERS.get(column, "string")


def read_parquet(data: bytes, source: str) -> list[FileRow]:
    """Return the rows of a Parquet file; unknown columns are not read."""
    pa = import_optional("pyarrow", "app", "to read Parquet files")
    pq = import_optional("pyarrow.parquet", "app", "to read Parquet files")

    try:
        names = pq.read_schema(io.BytesIO(data)).names
        if "id" in names and "label" in names:
            columns = [name for name in BATCH_COLUMNS if name in names]
            batches = parquet_batches(io.BytesIO(data), columns, source)
            rows = (row for batch in batches for row in batch.to_pylist())
            return [FileRow(row, f"row {k} of {source}") for k, row in enumerate(rows, start=1)]
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise FileError(
            f"a readable Parquet file {source}", str(error), "write the file again"
        ) from None
    raise FileError(
        f"the columns id and label in {source}", ", ".join(names) or "none", "name the columns so"
    )


def parquet_batches(
    data: Path | io.BytesIO, columns: Sequence[str], source: str, max_bytes: int | None = None
) -> Iterator[Any]:
    """Yield record batches; a file of a few kilobytes can hold gigabytes, which are counted first.

    Texts are read as they are stored, each once, so that a batch can be measured before it is
    decoded.
    """
    pq = import_optional("pyarrow.parquet", "app", "to read Parquet files")

    schema = pq.read_schema(data)
    texts = [name for name in columns if str(schema.field(name).type) in TEXT_TYPES]
    with pq.ParquetFile(data, read_dictionary=texts) as file:
        groups = (file.metadata.row_group(k) for k in range(file.num_row_groups))
        check_size(sum(group.total_byte_size for group in groups), source, max_bytes)
        check_rows(file.metadata.num_rows, source)
        size = 0
        for batch in file.iter_batches(ROWS_PER_BATCH, columns=columns):
            size += sum(map(_decoded_bytes, batch.columns))
            check_size(size, source, max_bytes)
            yield batch


def _decoded_bytes(column: Any) -> int:
    pa = import_optional("pyarrow", "app", "to read Parquet files")
    pc = import_optional("pyarrow.compute", "app", "to read Parquet files")

    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
    return pc.sum(pc.cast(lengths, "int64")).as_py() or 0
