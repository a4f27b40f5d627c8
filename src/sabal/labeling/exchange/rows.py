"""A row of an exchanged file, in whatever format: what is in it, and how it is read.

Every format turns rows into bytes, and bytes into rows; what a row means is settled here alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sabal.errors import FileError
from sabal.labeling.store.connection import as_text
from sabal.labeling.store.records import CHECK, LABEL, SKIP, TRAIN, ImportedLabel

COLUMNS = ("id", "label", "annotator", "round", "weight", "time", "action", "role")
"""A row for every answer that stands: `action` is label or skip, `role` train or check."""

BATCH_COLUMNS = (*COLUMNS, "rank", "content")
"""A row for every item that waits for an answer: label, annotator, time and action are empty."""

SOMEONE = "import"
"""Who answered, where a file does not say."""

LARGEST_FILE = 512 * 2**20
"""Bytes of a file that is imported, also when they are unpacked: all of it is read at once."""

LARGEST = 2**31 - 1
"""The largest whole number that every database takes."""

Row = dict[str, Any]
"""A value for every column; a column that is not there is empty."""


@dataclass(frozen=True)
class Found:
    """A row of a file, and where it is."""

    row: Row
    where: str

    def bad(self, expected: str, got: str, fix: str = "correct the file") -> FileError:
        """The error for a row that makes no sense."""
        return FileError(f"{expected} in {self.where}", got, fix)


def check_size(size: int, source: str) -> None:
    """Refuse a file that would take the memory of the machine."""
    if size > LARGEST_FILE:
        raise FileError(
            f"at most {LARGEST_FILE // 2**20} MB in {source}", "more", "split it into several files"
        )


def answer_in(found: Found) -> ImportedLabel | None:
    """What a row of a file says; None if it waits for an answer still."""
    item, label, action = (_text(found, name) for name in ("id", "label", "action"))
    if item is None:
        raise found.bad("an `id`", "none", "give every row the id of its item")
    if action not in (None, LABEL, SKIP):
        raise found.bad("`action` as label, skip or nothing", repr(action))
    if action == SKIP and label is not None:
        raise found.bad("no `label` where `action` is skip", repr(label))
    if action == LABEL and label is None:
        raise found.bad("a `label` where `action` is label", "none")
    if label is None and action is None:
        return None
    return ImportedLabel(
        id=item,
        label=label,
        annotator=_text(found, "annotator") or SOMEONE,
        round=_whole(found, "round"),
        time=_time(found),
        skip=action == SKIP,
        weight=_weight(found),
        role=_role(found),
    )


def _text(found: Found, name: str) -> str | None:
    """Text that is not empty; whole numbers are taken for their digits."""
    value = found.row.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, str):
        # JSON can name halves of characters, which no database takes.
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise found.bad(f"Unicode as `{name}`", ascii(value))
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise found.bad(f"text as `{name}`", repr(value))


def _role(found: Found) -> str:
    role = _text(found, "role") or TRAIN
    if role not in (TRAIN, CHECK):
        raise found.bad(f"`role` as {TRAIN} or {CHECK}", repr(role))
    return role


def _whole(found: Found, name: str) -> int | None:
    value = found.row.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise found.bad(f"a whole number as `{name}`", repr(value))
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise found.bad(f"a whole number as `{name}`", repr(value)) from None
    if not -1 <= number <= LARGEST:
        raise found.bad(f"`{name}` from -1 to {LARGEST}", str(number))
    return number


def _weight(found: Found) -> float | None:
    value = found.row.get("weight")
    if value is None or value == "":
        return None
    try:
        weight = float(value)
    except (TypeError, ValueError, OverflowError):
        raise found.bad("a number as `weight`", repr(value)) from None
    if not math.isfinite(weight) or weight < 0:
        raise found.bad("a `weight` of 0 or more", repr(value))
    return weight


def _time(found: Found) -> str | None:
    """As the store writes it: in UTC, which is also meant where no zone is given."""
    value = found.row.get("time")
    if value is None or value == "":
        return None
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return as_text(moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment)
    except (TypeError, ValueError, OverflowError):
        raise found.bad("`time` as 2026-01-31T12:00:00Z", repr(value)) from None
