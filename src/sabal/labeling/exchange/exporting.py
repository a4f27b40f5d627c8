"""What stands in the store, or waits for an answer, as the bytes of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sabal.core.files import write_bytes_whole
from sabal.errors import FileError
from sabal.labeling.exchange.csv import write_csv
from sabal.labeling.exchange.formats import check_format
from sabal.labeling.exchange.jsonl import write_jsonl
from sabal.labeling.exchange.label_studio import LOCAL_FILES, write_tasks
from sabal.labeling.exchange.parquet import write_parquet
from sabal.labeling.exchange.rows import BATCH_COLUMNS, COLUMNS, Row
from sabal.labeling.store import Store
from sabal.labeling.store.records import IMPORTED, LABEL, SKIP, BatchItem, LabelRow

WRITERS = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}


def export_bytes(
    store: Store, format: str, *, batch: bool = False, media_url: str = LOCAL_FILES
) -> bytes:
    """The labels and skips that stand; with `batch`, the items that wait for an answer instead.

    The order is that of time, and does not depend on the store: importing what was exported, and
    exporting it again, gives the same bytes.
    media_url: for label-studio, what comes before the path of an image.
    """
    check_format(format)
    rows = _open_rows(store) if batch else _answer_rows(store)
    if format == "label-studio":
        return write_tasks(rows if batch else _with_content(store, rows), media_url)
    return WRITERS[format](rows, BATCH_COLUMNS if batch else COLUMNS)


def export_file(
    store: Store,
    path: str | Path,
    format: str,
    *,
    batch: bool = False,
    media_url: str = LOCAL_FILES,
) -> Path:
    """The same, into a file that is whole or absent."""
    target = Path(path)
    if target.is_dir():
        raise FileError("a file to write to", f"the folder {target}", "name a file in it")
    return write_bytes_whole(target, export_bytes(store, format, batch=batch, media_url=media_url))


def _answer_rows(store: Store) -> list[Row]:
    answers = [
        *(_answer_row(answer, LABEL) for answer in store.labels()),
        *(_answer_row(answer, SKIP) for answer in store.skipped()),
    ]
    return sorted(answers, key=lambda row: (row["time"], row["id"], row["annotator"]))


def _answer_row(answer: LabelRow, action: str) -> Row:
    return {
        "id": answer.id,
        "label": answer.label,
        "annotator": answer.annotator,
        "round": answer.round,
        "weight": answer.weight,
        "time": answer.time,
        "action": action,
        "role": answer.role,
    }


def _open_rows(store: Store) -> list[Row]:
    """Items of all batches that fewer people have answered than should, in the order of choice."""
    wanted = store.settings.overlap
    return [
        {
            "id": item.item,
            "label": None,
            "annotator": None,
            "round": item.round,
            "weight": item.weight,
            "time": None,
            "action": None,
            "role": item.role,
            "rank": item.rank,
            "kind": item.kind,
            "content": item.content,
        }
        for item in _batches(store, first=0)
        if len(item.answered_by) < wanted
    ]


def _with_content(store: Store, rows: list[Row]) -> list[Row]:
    """Rows of answers with what was shown to whoever gave them."""
    items = {item.item: item for item in _batches(store, first=IMPORTED)}
    return [
        {**row, "rank": item.rank, "kind": item.kind, "content": item.content}
        for row in rows
        for item in [items[row["id"]]]
    ]


def _batches(store: Store, first: int) -> Iterator[BatchItem]:
    for each in store.rounds():
        if each.number >= first:
            yield from store.batch(each.number)
