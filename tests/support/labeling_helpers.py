"""Projects and stores for the tests of the labelling room."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

from sabal.labeling.settings import Settings
from sabal.labeling.store import Store
from sabal.labeling.store import database as databases
from sabal.labeling.store.records import NewBatchItem, PoolItem, Submission

STRANGE = (
    "plain",
    "Grüße, 世界",
    "👩‍🔬 & 🦔",
    '<script>alert("x")</script>',
    "two\nlines\r\nand\ttabs",
    "=cmd|' /C calc'!A0",
    "\"quoted\", 'twice'",
)


class Clock:
    """Time that passes when it is told to."""

    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now

    def pass_(self, seconds):
        self.now += timedelta(seconds=seconds)


def settings(**more):
    values = {"name": "p", "classes": ("cat", "dog"), "kind": "text", "data": "/data/texts.csv"}
    return Settings(**{**values, **more})


def open_store(path, *, items=6, batch=None, clock=None, **more):
    """A store of texts i0, i1, ... with a round 0 of `batch` of them (all if None)."""
    given = {} if clock is None else {"clock": clock}
    store = Store.open(path, settings(**more), **given)
    store.add_items(PoolItem(row, f"i{row}", "text", f"text {row}") for row in range(items))
    if batch != 0:
        store.add_round(
            0,
            [NewBatchItem(row) for row in range(items if batch is None else batch)],
            strategy="random",
        )
    return store


def answer(store, item, label="cat", who="ann", **more):
    """Submit with a new id."""
    given = {"skip": True} if label is None else {}
    return store.submit(Submission(str(uuid.uuid4()), who, item, label, **given, **more))


def undo(store, who="ann"):
    return store.undo(who, str(uuid.uuid4()))


def current_labels(store):
    """What stands, briefly."""
    return [(row.id, row.label, row.annotator) for row in store.labels()]


def small_parts(monkeypatch, rows):
    """Let commands that add many rows add so many at a time."""
    for name in ("FIRST_PART", "MIN_PART", "MAX_PART"):
        monkeypatch.setattr(databases, name, rows)
