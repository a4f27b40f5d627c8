"""The rows of exchanged files in any format: their columns, and the answers in them.

Each format turns rows into bytes and back; what a row means is defined here only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sabal.errors import FileError
from sabal.labeling.store.database import as_text
from sabal.labeling.store.records import CHECK, LABEL, SKIP, TRAIN, ImportedLabel
from sabal.labeling.store.schema import MAX_INTEGER

COLUMNS = (
    "id",
    "label",
    "annotator",
    "round",
    "weight",
    "time",
    "action",
    "role",
    "decides",
    "split",
    "content",
)
"""The columns of current answers.

`action` is label or skip, `role` is train or check, and `decides` is yes where the answer settles
the label of its item, whatever others answered. `split` and `content` are for training elsewhere:
test for items that were drawn at random and train for the others, and the text or path of the item.
"""

BATCH_COLUMNS = (*COLUMNS[:-1], "rank", "content")
"""The columns of open items, where label, annotator, time and action are empty."""

DECIDES = "yes"
DEFAULT_ANNOTATOR = "import"  # the annotator where a file names none
MAX_FILE_BYTES = 512 * 2**20  # of an imported file, also uncompressed: it is read as a whole
MAX_FILE_ROWS = 5_000_000  # a row takes about a kilobyte of memory
RowValues = dict[str, Any]  # the values of a row by column; a missing column is empty


@dataclass(frozen=True)
class FileRow:
    """A row of a file, and its position for messages."""

    row: RowValues
    where: str

    def error(self, expected: str, got: str, fix: str = "correct the file") -> FileError:
        """Return the error for an invalid row."""
        return FileError(f"{expected} in {self.where}", got, fix)


def check_size(size: int, source: str, max_bytes: int | None = None) -> None:
    """Refuse a file that would exhaust the memory."""
    largest = MAX_FILE_BYTES if max_bytes is None else max_bytes
    if size > largest:
        raise FileError(
            f"at most {largest // 2**20} MB in {source}",
            "more",
            "split it into several files",
        )


def check_rows(count: int, source: str) -> None:
    """Refuse a file of more rows than fit into memory, however short they are."""
    if count > MAX_FILE_ROWS:
        raise FileError(
            f"at most {MAX_FILE_ROWS} rows in {source}", "more", "split it into several files"
        )


def answer_in(found: FileRow) -> ImportedLabel | None:
    """Return the answer in a row of a file, or None if the row has none yet."""
    item, label, action = (_text(found, name) for name in ("id", "label", "action"))
    if item is None:
        raise found.error("an `id`", "none", "give every row the id of its item")
    if action not in (None, LABEL, SKIP):
        raise found.error("`action` as label, skip or nothing", repr(action))
    if action == SKIP and label is not None:
        raise found.error("no `label` where `action` is skip", repr(label))
    if action == LABEL and label is None:
        raise found.error("a `label` where `action` is label", "none")
    if label is None and action is None:
        return None
    return ImportedLabel(
        id=item,
        label=label,
        annotator=_text(found, "annotator") or DEFAULT_ANNOTATOR,
        round=_whole(found, "round"),
        time=_time(found),
        skip=action == SKIP,
        weight=_weight(found),
        role=_role(found),
        decides=_decides(found),
    )


def _text(found: FileRow, name: str) -> str | None:
    """Return a text that is not empty, or the digits of an integer."""
    value = found.row.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, str):
        # JSON can contain unpaired surrogates, which no database stores.
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise found.error(f"Unicode as `{name}`", ascii(value))
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise found.error(f"text as `{name}`", repr(value))


def _role(found: FileRow) -> str:
    role = _text(found, "role") or TRAIN
    if role not in (TRAIN, CHECK):
        raise found.error(f"`role` as {TRAIN} or {CHECK}", repr(role))
    return role


def _decides(found: FileRow) -> bool:
    value = _text(found, "decides")
    if value not in (None, DECIDES):
        raise found.error(f"`decides` as {DECIDES} or nothing", repr(value))
    return value is not None


def _whole(found: FileRow, name: str) -> int | None:
    value = found.row.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise found.error(f"a whole number as `{name}`", repr(value))
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise found.error(f"a whole number as `{name}`", repr(value)) from None
    if not -1 <= number <= MAX_INTEGER:
        raise found.error(f"`{name}` from -1 to {MAX_INTEGER}", str(number))
    return number


def _weight(found: FileRow) -> float | None:
    value = found.row.get("weight")
    if value is None or value == "":
        return None
    try:
        weight = float(value)
    except (TypeError, ValueError, OverflowError):
        raise found.error("a number as `weight`", repr(value)) from None
    if not math.isfinite(weight) or weight < 0:
        raise found.error("a `weight` of 0 or more", repr(value))
    return weight


def _time(found: FileRow) -> str | None:
    """Return a time as the store writes it, in UTC, which is also the default zone."""
    value = found.row.get("time")
    if value is None or value == "":
        return None
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return as_text(moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment)
    except (TypeError, ValueError, OverflowError):
        raise found.error("`time` as 2026-01-31T12:00:00Z", repr(value)) from None
