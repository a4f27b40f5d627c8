"""Imports the labels of a file into the store, after checking all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from sabal.errors import FileError, UnknownNameError, did_you_mean
from sabal.labeling.exchange.answer_rows import FileRow, answer_in, check_size
from sabal.labeling.exchange.formats import (
    ALL_FORMATS,
    check_format,
    format_of,
    read_csv,
    read_jsonl,
    read_parquet,
)
from sabal.labeling.exchange.image_tools import read_cvat, read_fiftyone
from sabal.labeling.exchange.label_studio import read_tasks
from sabal.labeling.store import Store
from sabal.labeling.store.records import ImportedLabel, ImportReport

READERS = {
    "csv": read_csv,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "label-studio": read_tasks,
    "cvat": read_cvat,
    "fiftyone": read_fiftyone,
}

BYTES_PER_READ = 2**20


def import_file(store: Store, path: str | Path, format: str | None = None) -> ImportReport:
    """Add the answers in a file; importing a file again adds nothing."""
    source = Path(path)
    reader = READERS[format_of(source) if format is None else check_format(format, ALL_FORMATS)]
    found = reader(_bytes(source), str(source))
    answers = list(_answers(found, store.known_classes))
    return replace(import_answers(store, answers), waiting=len(found) - len(answers))


def import_answers(store: Store, answers: Iterable[ImportedLabel]) -> ImportReport:
    """Add answers; of two of one person to one item the later one is current, wherever it is."""
    by_time = sorted(answers, key=lambda answer: (answer.time is None, answer.time or ""))
    return store.import_labels(by_time)


def _answers(rows: Iterable[FileRow], classes: Iterable[str]) -> Iterable[ImportedLabel]:
    known = tuple(dict.fromkeys(classes))
    for found in rows:
        answer = checked_answer(found, known)
        if answer is not None:
            yield answer


def checked_answer(found: FileRow, known: Collection[str]) -> ImportedLabel | None:
    """Return the answer in a row, whose class must be `known`; None if it has none yet."""
    answer = answer_in(found)
    if answer is not None and answer.label is not None and answer.label not in known:
        raise UnknownNameError(
            f"a class out of {', '.join(known)} in {found.where}",
            repr(answer.label),
            did_you_mean(answer.label, known, "correct the file, or the classes"),
        )
    return answer


def _bytes(source: Path) -> bytes:
    parts, size = [], 0
    try:
        with source.open("rb") as file:
            # Counted while reading: a pipe has no size.
            while part := file.read(BYTES_PER_READ):
                parts.append(part)
                size += len(part)
                check_size(size, str(source))
    except OSError as error:
        raise FileError(
            f"a file to import at {source}", error.strerror or str(error), "check the path"
        ) from None
    return b"".join(parts)
