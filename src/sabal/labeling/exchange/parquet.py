"""Parquet: a column for each that a row has, with types."""

from __future__ import annotations

import io
from collections.abc import Sequence

from sabal.errors import FileError
from sabal.labeling.exchange.rows import BATCH_COLUMNS, Found, Row, check_size

NUMBERS = {"round": "int64", "rank": "int64", "weight": "float64"}
"""The types of the columns that are not text."""


def write_parquet(rows: Sequence[Row], columns: Sequence[str]) -> bytes:
    """A Parquet file of the rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            name: pa.array([row.get(name) for row in rows], type=NUMBERS.get(name, "string"))
            for name in columns
        }
    )
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def read_parquet(data: bytes, source: str) -> list[Found]:
    """The rows of a Parquet file; columns that mean nothing here are not read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(data))
        names = file.schema_arrow.names
        if "id" in names and "label" in names:
            groups = (file.metadata.row_group(k) for k in range(file.num_row_groups))
            check_size(sum(group.total_byte_size for group in groups), source)
            rows = file.read([name for name in BATCH_COLUMNS if name in names]).to_pylist()
            return [Found(row, f"row {k} of {source}") for k, row in enumerate(rows, start=1)]
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise FileError(
            f"a readable Parquet file {source}", str(error), "write the file again"
        ) from None
    raise FileError(
        f"the columns id and label in {source}", ", ".join(names) or "none", "name the columns so"
    )
