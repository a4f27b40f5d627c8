"""Leases: an item is reserved for one person for a while, so that no work is done twice."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from sabal.core.checks import check_whole
from sabal.labeling.store import schema
from sabal.labeling.store.current_answers import is_current_now
from sabal.labeling.store.database import as_text
from sabal.labeling.store.records import LeasedItem, check_name
from sabal.labeling.store.store_base import StoreBase

MAX_CLOCK_ERROR = timedelta(seconds=60)  # between the clocks of machines that share a database
MAX_LEASES = 1_000  # the maximal number of items that one person holds at once


class LeaseStore(StoreBase):
    """The part of the store that hands out items."""

    def next_items(self, annotator: str, count: int) -> list[LeasedItem]:
        """Lease up to `count` open items: those the person holds, then others by round and rank."""
        check_name(annotator, "annotator")
        count = min(check_whole(count, "count"), MAX_LEASES)
        lease, overlap, now = schema.leases.c, self.settings.overlap, self.database.clock()
        held_items = sa.select(lease.item_id).where(lease.annotator == annotator, _is_valid(now))
        held = schema.batch_items.c.item_id.in_(held_items)
        own = _unanswered(annotator).where(held, _answers() < overlap)
        available = _answers() + _other_holders(annotator, now) < overlap
        free = _unanswered(annotator).where(sa.not_(held), available)
        # Found before others have to wait: there may be a million answered items before it.
        with self.database.read() as connection:
            first = connection.execute(free.limit(1)).one_or_none()
        until = now + timedelta(seconds=self.settings.lease_seconds)
        with self.database.write() as connection:
            connection.execute(schema.leases.delete().where(sa.not_(_is_valid(now))))
            leased = list(connection.execute(own.limit(count)))
            if first is not None and len(leased) < count:
                rest = free.where(_is_from(first.round, first.rank)).limit(count - len(leased))
                leased += connection.execute(rest)
            for row in leased:
                add_lease(connection, row.item_id, annotator, row.round, now, until)
            return [
                LeasedItem(
                    row.key, row.kind, row.content, row.rank, row.round, row.weight, as_text(until)
                )
                for row in leased
            ]


def _is_valid(now: datetime) -> sa.ColumnElement[bool]:
    """Return the condition that a lease has begun and not expired."""
    lease = schema.leases.c
    # One of the future was made by a clock that was ahead, and was set right since.
    begun = lease.leased_at <= as_text(now + MAX_CLOCK_ERROR)
    return sa.and_(lease.expires_at > as_text(now), begun)


def _is_from(number: int, rank: int) -> sa.ColumnElement[bool]:
    """Return the condition that an item of a batch is that of a rank, or a later one."""
    b = schema.batch_items.c
    return sa.tuple_(b.round, b.rank) >= sa.tuple_(sa.literal(number), sa.literal(rank))


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
    """Select the items of batches that a person has not answered, in the order chosen.

    All conditions on an item are correlated with its own rows, so that LIMIT ends the search: the
    batch is walked in its order and never read as a whole.
    """
    b, i, a = schema.batch_items, schema.items, schema.answers.alias()
    own = sa.exists().where(
        a.c.item_id == b.c.item_id, a.c.annotator == annotator, is_current_now(a)
    )
    return (
        sa.select(
            b.c.item_id, b.c.rank, b.c.round, b.c.weight, i.c.key, i.c.kind, i.c.content
        )
        .join(i, i.c.id == b.c.item_id)
        .where(sa.not_(own))
        .order_by(b.c.round, b.c.rank)
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
        _is_valid(now),
    ).scalar_subquery()
