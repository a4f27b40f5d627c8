"""Exports the current answers, or the open items, as the bytes of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sabal.core.files import write_bytes_whole
from sabal.errors import FileError
from sabal.labeling.exchange.answer_rows import BATCH_COLUMNS, COLUMNS, DECIDES, RowValues
from sabal.labeling.exchange.formats import check_format, write_csv, write_jsonl, write_parquet
from sabal.labeling.exchange.image_tools import write_cvat, write_fiftyone
from sabal.labeling.exchange.label_studio import LOCAL_FILES, write_tasks
from sabal.labeling.project import Project
from sabal.labeling.store import Store
from sabal.labeling.store.records import CHECK, IMPORTED, LABEL, SKIP, TRAIN, BatchItem

SPLITS = {TRAIN: "train", CHECK: "test"}
WRITERS = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}
IMAGE_WRITERS = {"cvat": write_cvat, "fiftyone": write_fiftyone}


def export_bytes(
    store: Store, format: str, *, batch: bool = False, media_url: str = LOCAL_FILES
) -> bytes:
    """Return the current labels and skips as a file, or the items that need an answer (`batch`).

    Answers are sorted by time, independently of the store: importing an export and exporting it
    again gives the same bytes. `media_url` makes the path of an image its address in Label Studio.
    """
    check_format(format)
    rows = open_rows(store) if batch else _answer_rows(store)
    if format == "label-studio":
        return write_tasks(rows, media_url)
    return WRITERS[format](rows, BATCH_COLUMNS if batch else COLUMNS)


def export_file(
    store: Store,
    path: str | Path,
    format: str,
    *,
    batch: bool = False,
    media_url: str = LOCAL_FILES,
) -> Path:
    """Write an export to a file, whole or not at all; see `export_bytes`."""
    target = Path(path)
    if target.is_dir():
        raise FileError("a file to write to", f"the folder {target}", "name a file in it")
    return write_bytes_whole(target, export_bytes(store, format, batch=batch, media_url=media_url))


def export_images(project: Project, format: str, *, batch: bool = False) -> bytes:
    """Return the labels that stand, or the items that need an answer, in a format for images."""
    if project.settings.kind != "image":
        raise FileError(
            f"a project of images for {format}", f"{project.settings.kind}s", "use another format"
        )
    rows = open_rows(project.store) if batch else _labeled_rows(project.store)
    return IMAGE_WRITERS[format](rows, project.classes, project.data_root)


def _labeled_rows(store: Store) -> list[RowValues]:
    """Return a row for every item that has a label, in the order chosen."""
    return [
        {**_open_row(item, len(batch)), "label": item.label}
        for batch in _batches(store, first=IMPORTED)
        for item in batch
        if item.label is not None
    ]


def _answer_rows(store: Store) -> list[RowValues]:
    answers = [
        *({**vars(answer), "action": LABEL} for answer in store.labels()),
        *({**vars(answer), "action": SKIP} for answer in store.skipped()),
    ]
    for answer in answers:
        answer["decides"] = DECIDES if answer["decides"] else None
    rows = sorted(answers, key=lambda row: (row["time"], row["id"], row["annotator"]))
    return _with_content(store, rows)


def open_rows(store: Store) -> list[RowValues]:
    """Return the open items of all batches in the order chosen."""
    wanted = store.settings.overlap
    return [
        _open_row(item, len(batch))
        for batch in _batches(store, first=0)
        for item in batch
        if len(item.answered_by) < wanted
    ]


def _open_row(item: BatchItem, size: int) -> RowValues:
    return {
        "id": item.item,
        "round": item.round,
        "weight": item.weight,
        "action": None,
        "role": item.role,
        "split": SPLITS[item.role],
        "rank": item.rank,
        "kind": item.kind,
        "content": item.content,
        # The first of its batch has priority 1, and the last one 1 / size.
        "priority": (size - item.rank + 1) / size,
        # Whoever sees a prediction tends to agree: the labels that measure the model get none.
        "guess": None if item.role == CHECK else item.why.get("guess"),
    }


def _with_content(store: Store, rows: list[RowValues]) -> list[RowValues]:
    """Add the content of the items to rows of answers."""
    items = {item.item: item for batch in _batches(store, first=IMPORTED) for item in batch}
    return [
        {
            **row,
            "split": SPLITS[item.role],
            "rank": item.rank,
            "kind": item.kind,
            "content": item.content,
        }
        for row in rows
        for item in [items[row["id"]]]
    ]


def _batches(store: Store, first: int) -> Iterator[list[BatchItem]]:
    return (store.batch(each.number) for each in store.rounds() if each.number >= first)
