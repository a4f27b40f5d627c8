"""Leases: an item is reserved for one person for a while, so that no work is done twice."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from sabal.core.checks import check_whole
from sabal.labeling.store import schema
from sabal.labeling.store.current_answers import is_current_now
from sabal.labeling.store.database import as_text
from sabal.labeling.store.records import IMPORTED, LeasedItem, check_name
from sabal.labeling.store.store_base import StoreBase

MAX_CLOCK_ERROR = timedelta(seconds=60)  # between the clocks of machines that share a database
MAX_LEASES = 1_000  # the maximal number of items that one person holds at once


class LeaseStore(StoreBase):
    """The part of the store that hands out items."""

    def next_items(self, annotator: str, count: int) -> list[LeasedItem]:
        """Lease up to `count` open items: those the person holds, then others by round and rank.

        Items of the imported round, which others have labelled elsewhere, come last.
        """
        check_name(annotator, "annotator")
        count = min(check_whole(count, "count"), MAX_LEASES)
        lease, overlap, now = schema.leases.c, self.settings.overlap, self.database.clock()
        held_items = sa.select(lease.item_id).where(
            lease.annotator == annotator, is_valid_lease(now)
        )
        b = schema.batch_items.c
        held = b.item_id.in_(held_items)
        own = _unanswered(annotator).where(held, _answers() < overlap)
        available = _answers() + _other_holders(annotator, now) < overlap
        free = _unanswered(annotator).where(sa.not_(held), available).order_by(b.round, b.rank)
        # Found before others have to wait: there may be a million answered items before it.
        with self.database.read() as connection:
            starts = _starts(connection, own, free, count)
        until = now + timedelta(seconds=self.settings.lease_seconds)
        with self.database.write() as connection:
            connection.execute(schema.leases.delete().where(sa.not_(is_valid_lease(now))))
            leased = sorted(connection.execute(own), key=lambda row: (row.round, row.rank))[:count]
            for start in starts:
                if len(leased) < count:
                    leased += connection.execute(free.where(start).limit(count - len(leased)))
            for row in leased:
                add_lease(connection, row.item_id, annotator, row.round, now, until)
            return [
                LeasedItem(
                    row.key, row.kind, row.content, row.rank, row.round, row.weight, as_text(until)
                )
                for row in leased
            ]


def is_valid_lease(now: datetime) -> sa.ColumnElement[bool]:
    """Return the condition that a lease has begun and not expired."""
    lease = schema.leases.c
    # One of the future was made by a clock that was ahead, and was set right since.
    begun = lease.leased_at <= as_text(now + MAX_CLOCK_ERROR)
    return sa.and_(lease.expires_at > as_text(now), begun)


def _starts(
    connection: sa.Connection, own: sa.Select[Any], free: sa.Select[Any], count: int
) -> list[sa.ColumnElement[bool]]:
    """Return the parts of the batches in which `count` items are open, from the first open one."""
    b = schema.batch_items.c
    position, found, starts = sa.tuple_(b.round, b.rank), len(connection.execute(own).all()), []
    # A range, not an inequality: the index then leads past a million imported items.
    for part in (b.round > IMPORTED, b.round == IMPORTED):
        if found < count:
            rows = connection.execute(free.where(part).limit(count)).all()
            found += len(rows)
            starts += [
                sa.and_(part, position >= sa.tuple_(sa.literal(row.round), sa.literal(row.rank)))
                for row in rows[:1]
            ]
    return starts


def add_lease(
    connection: sa.Connection,
    item_id: int,
    annotator: str,
    number: int,
    now: datetime,
    until: datetime,
) -> None:
    """Lease an item of round `number` to a person, in place of their lease if they have one."""
    end_lease(connection, item_id, annotator)
    connection.execute(
        schema.leases.insert().values(
            item_id=item_id,
            annotator=annotator,
            round=number,
            leased_at=as_text(now),
            expires_at=as_text(until),
        )
    )


def end_lease(connection: sa.Connection, item_id: int, annotator: str) -> None:
    """End the lease of a person on an item, if there is one."""
    connection.execute(
        schema.leases.delete().where(
            schema.leases.c.item_id == item_id, schema.leases.c.annotator == annotator
        )
    )


def _unanswered(annotator: str) -> sa.Select[Any]:
    """Select the items of batches that a person has not answered.

    All conditions on an item are correlated with its own rows, so that LIMIT ends the search: the
    batch is walked in its order and never read as a whole.
    """
    b, i, a = schema.batch_items, schema.items, schema.answers.alias()
    # A number, not EXISTS, and a sum of texts: PostgreSQL would walk through all answers of the
    # person for every item, or join them with each other.
    own = (
        sa.select(sa.func.count())
        .select_from(a)
        .where(a.c.item_id == b.c.item_id, a.c.annotator + "" == annotator, is_current_now(a))
    )
    return (
        sa.select(
            b.c.item_id, b.c.rank, b.c.round, b.c.weight, i.c.key, i.c.kind, i.c.content
        )
        .join(i, i.c.id == b.c.item_id)
        .where(own.scalar_subquery() == 0)
    )  # fmt: skip


def _answers() -> sa.ScalarSelect[int]:
    """Count the current answers to an item of a batch."""
    a = schema.answers.alias()
    count = sa.select(sa.func.count()).select_from(a)
    return count.where(
        a.c.item_id == schema.batch_items.c.item_id, is_current_now(a)
    ).scalar_subquery()


def _other_holders(annotator: str, now: datetime) -> sa.ScalarSelect[int]:
    """Count the other people who hold an item of a batch."""
    lease = schema.leases
    count = sa.select(sa.func.count()).select_from(lease)
    return count.where(
        lease.c.item_id == schema.batch_items.c.item_id,
        lease.c.annotator != annotator,
        is_valid_lease(now),
    ).scalar_subquery()
