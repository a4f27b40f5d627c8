"""Leases: an item is one person's for a while, so that nobody's work is done twice."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from sabal.core.checks import check_whole
from sabal.labeling.settings import Settings
from sabal.labeling.store import schema
from sabal.labeling.store.connection import Database, as_text
from sabal.labeling.store.records import Leased
from sabal.labeling.store.standing import stands_now

MOST = 1_000
"""How many items one person may hold at once."""


def next_items(database: Database, settings: Settings, annotator: str, count: int) -> list[Leased]:
    """Lease up to `count` open items to a person: first what they hold, then by rank."""
    count = min(check_whole(count, "count"), MOST)
    with database.write() as connection:
        now = database.clock()
        until = now + timedelta(seconds=settings.lease_seconds)
        _sweep(connection, now)
        held, wanted = _held(annotator), settings.overlap
        mine = _unanswered(annotator).where(held, _answers() < wanted)
        leased = list(connection.execute(mine.limit(count)))
        if len(leased) < count:
            room = _answers() + _other_holders(annotator) < wanted
            free = _unanswered(annotator).where(sa.not_(held), room)
            leased += connection.execute(free.limit(count - len(leased)))
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


def _sweep(connection: sa.Connection, now: datetime) -> None:
    """Drop leases that ran out."""
    gone = schema.leases.c.expires_at <= as_text(now)
    connection.execute(schema.leases.delete().where(gone))


def _unanswered(annotator: str) -> sa.Select[Any]:
    """Items of batches that a person has not answered, in the order chosen.

    What is asked of an item is asked of its own rows alone, so that a limit ends the search: the
    batch is walked in its order, and never read as a whole.
    """
    b, i, a = schema.batch_items, schema.items, schema.answers.alias()
    mine = sa.exists().where(a.c.item_id == b.c.item_id, a.c.annotator == annotator, stands_now(a))
    return (
        sa.select(
            b.c.item_id, b.c.rank, b.c.round, b.c.weight, i.c.key, i.c.kind, i.c.content
        )
        .join(i, i.c.id == b.c.item_id)
        .where(sa.not_(mine))
        .order_by(b.c.round, b.c.rank)
    )  # fmt: skip


def _answers() -> sa.ScalarSelect[int]:
    """How many answers to an item of a batch stand."""
    a = schema.answers.alias()
    count = sa.select(sa.func.count()).select_from(a)
    return count.where(a.c.item_id == schema.batch_items.c.item_id, stands_now(a)).scalar_subquery()


def _held(annotator: str) -> sa.ColumnElement[bool]:
    """Whether a person holds an item of a batch."""
    lease = schema.leases
    return schema.batch_items.c.item_id.in_(
        sa.select(lease.c.item_id).where(lease.c.annotator == annotator)
    )


def _other_holders(annotator: str) -> sa.ScalarSelect[int]:
    """How many others hold an item of a batch."""
    lease = schema.leases
    count = sa.select(sa.func.count()).select_from(lease)
    return count.where(
        lease.c.item_id == schema.batch_items.c.item_id, lease.c.annotator != annotator
    ).scalar_subquery()
