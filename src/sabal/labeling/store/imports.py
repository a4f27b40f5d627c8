"""Labels from elsewhere, appended to the history."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from sabal.errors import InputError
from sabal.labeling.store import schema
from sabal.labeling.store.answers import mark_decisions, present_class, undo_decisions
from sabal.labeling.store.batch_items import add_batch_items
from sabal.labeling.store.class_history import class_history
from sabal.labeling.store.current_answers import is_current_now, is_decision
from sabal.labeling.store.database import Database, as_text
from sabal.labeling.store.item_pages import free_keys
from sabal.labeling.store.pool_items import rows_of
from sabal.labeling.store.records import (
    CHECK,
    IMPORTED,
    LABEL,
    SKIP,
    TRAIN,
    ImportedLabel,
    ImportReport,
    NewBatchItem,
    check_name,
)
from sabal.labeling.store.store_base import StoreBase

NAMESPACE = uuid.UUID("6f5a2c1e-6a58-4c5b-9f3e-0d8c1b7a4e21")  # of imported submissions
CurrentAnswer = tuple[str, str | None, str, bool]
"""Action, label and time of a current answer, and whether it decides."""
CurrentAnswers = dict[tuple[int, str], CurrentAnswer]
"""Current answers by item and annotator."""


class ImportStore(StoreBase):
    """The part of the store that imports labels."""

    def import_labels(self, rows: Iterable[ImportedLabel]) -> ImportReport:
        """Append labels and skips; rows imported before add nothing.

        All rows are checked first. They are added by small transactions, between which people
        label: an import that is interrupted has added the first rows, and adds the others when it
        is repeated.
        """
        given = [_checked(row) for row in rows]
        with self.database.read() as connection:
            for label in {row.label for row in given}:
                present_class(connection, label)
        totals = ImportReport(0, 0, 0, 0, [])
        for part in self.database.parts(given):
            with self.database.write() as connection:
                report = self._import(connection, part)
            totals = _sum(totals, report)
        return replace(totals, unknown=list(dict.fromkeys(totals.unknown)))

    def label_free(self, annotator: str, keys: Sequence[str], label: str) -> set[str]:
        """Give one label to those of a few items that a person may label; return their keys.

        It is one transaction: an item that somebody else answers meanwhile is left out.
        """
        now = self.database.now_text()
        rows = [_checked(ImportedLabel(key, label, annotator, time=now)) for key in keys]
        with self.database.write() as connection:
            free = free_keys(connection, self.database, annotator, keys, label)
            self._import(connection, [row for row in rows if row.id in free])
        return free

    def _import(self, connection: sa.Connection, given: Sequence[ImportedLabel]) -> ImportReport:
        names = {label: present_class(connection, label) for label in {x.label for x in given}}
        items = rows_of(connection, (row.id for row in given))
        unknown = [row.id for row in given if row.id not in items]
        known = [replace(row, label=names[row.label]) for row in given if row.id in items]
        rounds = _put_into_rounds(connection, self.database, known, items)
        new = _new_answers(connection, self.database, known, items, rounds)
        if new:
            connection.execute(schema.answers.insert(), new)
        self._decide(connection, known, new)
        skips = sum(values["action"] == SKIP for values in new)
        return ImportReport(len(new) - skips, skips, len(known) - len(new), 0, unknown)

    def _decide(
        self, connection: sa.Connection, rows: list[ImportedLabel], new: list[dict[str, Any]]
    ) -> None:
        """Make decisions of the added answers that are ones."""
        added = {values["submission"]: values for values in new}
        for row in rows:
            submission = _submission(row)
            if row.decides and submission in added:
                item = added[submission]["item_id"]
                undo_decisions(connection, self.database, item, row.annotator)
                mark_decisions(connection, [submission])


def _sum(one: ImportReport, two: ImportReport) -> ImportReport:
    return ImportReport(
        labels=one.labels + two.labels,
        skips=one.skips + two.skips,
        already=one.already + two.already,
        waiting=one.waiting + two.waiting,
        unknown=one.unknown + two.unknown,
    )


def _new_answers(
    connection: sa.Connection,
    database: Database,
    rows: list[ImportedLabel],
    items: Mapping[str, int],
    rounds: Mapping[int, int],
) -> list[dict[str, Any]]:
    """Return the answers to add: those of rows that the history does not have yet."""
    current = _current_answers(connection, {items[row.id] for row in rows})
    key = schema.answers.c.submission
    stored = sa.select(key).where(key.in_([_submission(row) for row in rows]))
    submitted = set(connection.scalars(stored))
    new: list[dict[str, Any]] = []
    for row in rows:
        item_id = items[row.id]
        submission = _submission(row)
        place = (item_id, row.annotator)
        if submission in submitted or _is_same(current.get(place), row):
            continue
        values = {
            "submission": submission,
            "annotator": row.annotator,
            "item_id": item_id,
            "round": rounds[item_id] if row.round is None else row.round,
            "action": SKIP if row.skip else LABEL,
            "label": row.label,
            "answered_at": row.time or database.now_text(),
        }
        new.append(values)
        submitted.add(submission)
        time = str(values["answered_at"])
        current[place] = (str(values["action"]), row.label, time, row.decides)
    return new


def _checked(row: ImportedLabel) -> ImportedLabel:
    check_name(row.annotator, "annotator")
    if row.skip != (row.label is None):
        got = f"{'both' if row.skip else 'neither'} for {row.id!r}"
        raise InputError("either a label or a skip", got, "repair the row")
    if row.role not in (TRAIN, CHECK):
        raise InputError(f"{TRAIN} or {CHECK} as a role", repr(row.role), "repair the row")
    if row.time is None:
        return row
    try:
        moment = datetime.fromisoformat(row.time)
    except ValueError:
        raise InputError(
            "times as ISO-8601, for instance 2026-01-31T09:30:00Z", repr(row.time), "repair the row"
        ) from None
    zoned = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return replace(row, time=as_text(zoned))


def _submission(row: ImportedLabel) -> str:
    """Return the id under which an imported row is stored, the same for the same row."""
    content = [row.id, row.label, row.annotator, row.round, row.time, row.skip]
    if row.decides:
        content.append("decides")
    return str(uuid.uuid5(NAMESPACE, json.dumps(content, ensure_ascii=True)))


def _is_same(current: CurrentAnswer | None, row: ImportedLabel) -> bool:
    """Return whether the row repeats a person's current answer, as a re-imported export does."""
    if current is None:
        return False
    action, label, time, decides = current
    same = (action, label, decides) == (SKIP if row.skip else LABEL, row.label, row.decides)
    return same and row.time in (None, time)


def _current_answers(connection: sa.Connection, items: set[int]) -> CurrentAnswers:
    a = schema.answers
    query = sa.select(
        a.c.id, a.c.item_id, a.c.annotator, a.c.action, a.c.label, a.c.answered_at, is_decision()
    )
    names = class_history(connection)
    return {
        (item, annotator): (action, names.present_name(label, key), time, decides)
        for key, item, annotator, action, label, time, decides in connection.execute(
            query.where(a.c.item_id.in_(items), is_current_now(a))
        )
    }


def _put_into_rounds(
    connection: sa.Connection,
    database: Database,
    rows: list[ImportedLabel],
    items: Mapping[str, int],
) -> dict[int, int]:
    """Add items of no round to the imported one, and return the round of every item."""
    b = schema.batch_items
    wanted = b.c.item_id.in_({items[row.id] for row in rows})
    found = connection.execute(sa.select(b.c.item_id, b.c.round).where(wanted))
    rounds: dict[int, int] = {row.item_id: row.round for row in found}
    fresh: dict[int, ImportedLabel] = {}
    for row in rows:
        if items[row.id] not in rounds:
            fresh.setdefault(items[row.id], row)
    if not fresh:
        return rounds
    if not connection.scalar(sa.select(sa.func.count()).where(schema.rounds.c.number == IMPORTED)):
        values = {
            "number": IMPORTED,
            "strategy": "import",
            "chosen_at": database.now_text(),
            "seconds": 0.0,
            "evidence": {},
        }
        connection.execute(schema.rounds.insert().values(values))
    last = connection.scalar(sa.select(sa.func.max(b.c.rank)).where(b.c.round == IMPORTED)) or 0
    chosen = [
        NewBatchItem(item, weight=1.0 if row.weight is None else row.weight, role=row.role)
        for item, row in fresh.items()
    ]
    add_batch_items(connection, IMPORTED, chosen, last + 1)
    return {**rounds, **dict.fromkeys(fresh, IMPORTED)}
