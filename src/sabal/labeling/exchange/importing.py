"""Labels of a file into the store: all of them, or none if the file makes no sense."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sabal.errors import FileError, UnknownNameError, did_you_mean
from sabal.labeling.exchange.csv import read_csv
from sabal.labeling.exchange.formats import check_format, format_of
from sabal.labeling.exchange.jsonl import read_jsonl
from sabal.labeling.exchange.label_studio import read_tasks
from sabal.labeling.exchange.parquet import read_parquet
from sabal.labeling.exchange.rows import Found, answer_in, check_size
from sabal.labeling.store import Store
from sabal.labeling.store.records import ImportedLabel

READERS = {
    "csv": read_csv,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "label-studio": read_tasks,
}

PART = 2**20
"""Bytes that are read at a time."""


@dataclass(frozen=True)
class Imported:
    """What an import did.

    labels, skips: answers that were added. already: answers that were there before.
    waiting: rows without an answer. unknown: ids that the project does not have.
    """

    labels: int
    skips: int
    already: int
    waiting: int
    unknown: list[str]


def import_file(store: Store, path: str | Path, format: str | None = None) -> Imported:
    """Add the answers in a file; the format is that of its ending unless it is named.

    Importing a file again adds nothing.
    """
    source = Path(path)
    reader = READERS[format_of(source) if format is None else check_format(format)]
    found = reader(_bytes(source), str(source))
    answers = list(_answers(found, store.settings.classes))
    # Of two answers of one person to one item the later one stands, wherever it is in the file.
    answers.sort(key=lambda answer: (answer.time is None, answer.time or ""))
    report = store.import_labels(answers)
    return Imported(
        labels=report.added - report.skipped,
        skips=report.skipped,
        already=report.already,
        waiting=len(found) - len(answers),
        unknown=report.unknown,
    )


def _answers(rows: Iterable[Found], classes: Iterable[str]) -> Iterable[ImportedLabel]:
    known = tuple(classes)
    for found in rows:
        answer = answer_in(found)
        if answer is None:
            continue
        if answer.label is not None and answer.label not in known:
            raise UnknownNameError(
                f"a class out of {', '.join(known)} in {found.where}",
                repr(answer.label),
                did_you_mean(answer.label, known, "correct the file, or the classes"),
            )
        yield answer


def _bytes(source: Path) -> bytes:
    parts, size = [], 0
    try:
        with source.open("rb") as file:
            # By reading, not by asking: a pipe has no size.
            while part := file.read(PART):
                parts.append(part)
                size += len(part)
                check_size(size, str(source))
    except OSError as error:
        raise FileError(
            f"a file to import at {source}", error.strerror or str(error), "check the path"
        ) from None
    return b"".join(parts)
