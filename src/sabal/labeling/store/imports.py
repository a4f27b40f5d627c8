"""Labels from elsewhere, appended to the history; the same file twice adds nothing."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from sabal.errors import InputError
from sabal.labeling.settings import Settings
from sabal.labeling.store import schema
from sabal.labeling.store.answers import check_class, check_name
from sabal.labeling.store.connection import Database, as_text
from sabal.labeling.store.items import rows_of
from sabal.labeling.store.records import (
    CHECK,
    IMPORTED,
    LABEL,
    SKIP,
    TRAIN,
    Chosen,
    ImportedLabel,
    ImportReport,
)
from sabal.labeling.store.rounds import add_to_round
from sabal.labeling.store.standing import stands

NAMESPACE = uuid.UUID("6f5a2c1e-6a58-4c5b-9f3e-0d8c1b7a4e21")
"""Ids of imported answers are names in it."""

Standing = dict[tuple[int, str], tuple[str, str | None, str]]
"""By item and annotator: action, label and time of the answer that stands."""


def import_labels(
    database: Database, settings: Settings, rows: Iterable[ImportedLabel]
) -> ImportReport:
    """Append labels and skips, all or none of them; items of no batch go into a round of theirs."""
    given = [_checked(row, settings) for row in rows]
    with database.write() as connection:
        items = rows_of(connection, (row.id for row in given))
        known = [row for row in given if row.id in items]
        unknown = list(dict.fromkeys(row.id for row in given if row.id not in items))
        rounds = _put_into_rounds(connection, database, known, items)
        standing = _standing(connection)
        submitted = set(connection.scalars(sa.select(schema.answers.c.submission)))
        new: list[dict[str, Any]] = []
        for row in known:
            submission = str(uuid.uuid5(NAMESPACE, _name(row)))
            place = (items[row.id], row.annotator)
            if submission in submitted or _says_the_same(standing.get(place), row):
                continue
            action = SKIP if row.skip else LABEL
            values = {
                "submission": submission,
                "annotator": row.annotator,
                "item_id": items[row.id],
                "round": rounds[items[row.id]] if row.round is None else row.round,
                "action": action,
                "label": row.label,
                "answered_at": row.time or database.now_text(),
            }
            new.append(values)
            submitted.add(submission)
            standing[place] = (action, row.label, str(values["answered_at"]))
        if new:
            connection.execute(schema.answers.insert(), new)
    skipped = sum(values["action"] == SKIP for values in new)
    return ImportReport(len(new), len(known) - len(new), skipped, unknown)


def _checked(row: ImportedLabel, settings: Settings) -> ImportedLabel:
    check_name(row.annotator, "annotator")
    if row.skip != (row.label is None):
        got = f"{'both' if row.skip else 'neither'} for {row.id!r}"
        raise InputError("either a label or a skip", got, "repair the row")
    if row.label is not None:
        check_class(row.label, settings)
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
    return ImportedLabel(**{**vars(row), "time": as_text(zoned)})


def _name(row: ImportedLabel) -> str:
    """What makes an imported row the same as another."""
    content = [row.id, row.label, row.annotator, row.round, row.time, row.skip]
    return json.dumps(content, ensure_ascii=True)


def _says_the_same(standing: tuple[str, str | None, str] | None, row: ImportedLabel) -> bool:
    """Whether a person's standing answer is what the row says: an export come home."""
    if standing is None:
        return False
    action, label, time = standing
    same = (action, label) == (SKIP if row.skip else LABEL, row.label)
    return same and row.time in (None, time)


def _standing(connection: sa.Connection) -> Standing:
    a = schema.answers
    query = sa.select(a.c.item_id, a.c.annotator, a.c.action, a.c.label, a.c.answered_at)
    return {
        (item, annotator): (action, label, time)
        for item, annotator, action, label, time in connection.execute(query.where(stands()))
    }


def _put_into_rounds(
    connection: sa.Connection,
    database: Database,
    rows: list[ImportedLabel],
    items: Mapping[str, int],
) -> dict[int, int]:
    """The round of every item that is in one, once those that are in none are in the imported."""
    b = schema.batch_items
    found = connection.execute(sa.select(b.c.item_id, b.c.round))
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
        Chosen(item, weight=1.0 if row.weight is None else row.weight, role=row.role)
        for item, row in fresh.items()
    ]
    add_to_round(connection, IMPORTED, chosen, last + 1)
    return {**rounds, **dict.fromkeys(fresh, IMPORTED)}
