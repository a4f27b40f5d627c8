"""Claims: which items were pushed to a labelling server, or may be on their way to it.

What the server has decides whether an item has to be pushed. A claim covers the time in which that
is not known yet: another process is pushing, or one was killed while it did.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

import sqlalchemy as sa

from sabal.labeling.store import schema
from sabal.labeling.store.database import as_text
from sabal.labeling.store.pool_items import rows_of
from sabal.labeling.store.store_base import StoreBase

CLAIM_SECONDS = 120  # twice as long as a request may take


class TaskClaimStore(StoreBase):
    """The part of the store that holds claims."""

    def claim_tasks(self, place: str, keys: Collection[str]) -> set[str]:
        """Claim items for one project of a server; return those that nobody claimed just now."""
        c, now = schema.task_claims.c, self.database.clock()
        recent = as_text(now - timedelta(seconds=CLAIM_SECONDS))
        with self.database.write() as connection:
            items = rows_of(connection, keys)
            taken = set(
                connection.scalars(
                    sa.select(c.item_id).where(
                        c.place == place,
                        c.item_id.in_(items.values()),
                        # One of the future was made by a clock that was ahead.
                        c.claimed_at.between(recent, as_text(now)),
                    )
                )
            )
            free = {key: row for key, row in items.items() if row not in taken}
            _forget(connection, place, free.values())
            if free:
                rows = [
                    {"place": place, "item_id": row, "claimed_at": as_text(now)}
                    for row in free.values()
                ]
                connection.execute(schema.task_claims.insert(), rows)
        return set(free)

    def release_tasks(self, place: str, keys: Collection[str]) -> None:
        """Give up claims of items that certainly were not pushed."""
        with self.database.write() as connection:
            _forget(connection, place, rows_of(connection, keys).values())


def _forget(connection: sa.Connection, place: str, rows: Collection[int]) -> None:
    c = schema.task_claims.c
    connection.execute(
        schema.task_claims.delete().where(c.place == place, c.item_id.in_(list(rows)))
    )
