"""Leases: an item is one person's for a while, so that nobody's work is done twice."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

import sqlalchemy as sa

from sabal.checks import check_whole
from sabal.labeling.settings import Settings
from sabal.labeling.store import schema
from sabal.labeling.store.connection import Database, as_text
from sabal.labeling.store.records import Leased
from sabal.labeling.store.standing import answered_items, stands

MOST = 1_000
"""How many items one person may hold at once."""


def next_items(database: Database, settings: Settings, annotator: str, count: int) -> list[Leased]:
    """Lease up to `count` open items to a person: first what they hold, then by rank."""
    count = min(check_whole(count, "count"), MOST)
    with database.write() as connection:
        now = database.clock()
        until = now + timedelta(seconds=settings.lease_seconds)
        holders = _holders(connection, now)
        open_items = _open_items(connection, settings.overlap)
        partly = any(row.answered for row in open_items)
        mine = _answered_by(connection, annotator) if partly else set()
        held, free = [], []
        for row in open_items:
            if row.item_id in mine:
                continue
            others = holders[row.item_id] - {annotator}
            if annotator in holders[row.item_id]:
                held.append(row)
            elif row.answered + len(others) < settings.overlap:
                free.append(row)
        leased = (held + free)[:count]
        for row in leased:
            take(connection, row.item_id, annotator, row.round, now, until)
        return [
            Leased(row.key, row.kind, row.content, row.rank, row.round, row.weight, as_text(until))
            for row in leased
        ]


def take(
    connection: sa.Connection,
    row: int,
    annotator: str,
    number: int,
    now: datetime,
    until: datetime,
) -> None:
    """Lease an item (by its row) to a person, anew if they hold it already."""
    give_back(connection, row, annotator)
    connection.execute(
        schema.leases.insert().values(
            item_id=row,
            annotator=annotator,
            round=number,
            leased_at=as_text(now),
            expires_at=as_text(until),
        )
    )


def give_back(connection: sa.Connection, row: int, annotator: str) -> None:
    """End the lease of a person on an item, if there is one."""
    connection.execute(
        schema.leases.delete().where(
            schema.leases.c.item_id == row, schema.leases.c.annotator == annotator
        )
    )


def _holders(connection: sa.Connection, now: datetime) -> defaultdict[int, set[str]]:
    """Who holds which item now; leases that ran out are swept away."""
    moment = as_text(now)
    connection.execute(schema.leases.delete().where(schema.leases.c.expires_at <= moment))
    holders: defaultdict[int, set[str]] = defaultdict(set)
    for row, annotator in connection.execute(
        sa.select(schema.leases.c.item_id, schema.leases.c.annotator)
    ):
        holders[row].add(annotator)
    return holders


def _answered_by(connection: sa.Connection, annotator: str) -> set[int]:
    a = schema.answers.c
    return set(connection.scalars(sa.select(a.item_id).where(a.annotator == annotator, stands())))


def _open_items(connection: sa.Connection, overlap: int) -> list[sa.Row]:
    """Items of batches that fewer people than `overlap` have answered, in the order chosen."""
    b, i, found = schema.batch_items, schema.items, answered_items()
    answered = sa.func.coalesce(found.c.answers, 0)
    query = (
        sa.select(
            b.c.item_id, b.c.rank, b.c.round, b.c.weight, i.c.key, i.c.kind, i.c.content,
            answered.label("answered"),
        )
        .join(i, i.c.id == b.c.item_id)
        .outerjoin(found, found.c.item_id == b.c.item_id)
        .where(answered < overlap)
        .order_by(b.c.round, b.c.rank)
    )  # fmt: skip
    return list(connection.execute(query))
