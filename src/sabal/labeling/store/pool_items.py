"""The items of the pool, which are added once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import sqlalchemy as sa

from sabal.errors import InputError, UnknownNameError
from sabal.labeling.store import schema
from sabal.labeling.store.records import PoolItem
from sabal.labeling.store.store_base import StoreBase

ITEMS_PER_INSERT = 5_000
KEYS_PER_QUERY = 500


class PoolItemStore(StoreBase):
    """The part of the store that holds the pool."""

    def add_items(self, rows: Iterable[PoolItem]) -> int:
        """Add items to the pool and return how many were added."""
        count, entries = 0, iter(rows)
        with self.database.write() as connection:
            while chunk := list(islice(entries, ITEMS_PER_INSERT)):
                try:
                    connection.execute(schema.items.insert(), [vars(row) for row in chunk])
                except sa.exc.IntegrityError:
                    raise InputError(
                        "a row and a key of its own for every item",
                        f"one that is there already, near {chunk[0].key!r}",
                        "give every item another id",
                    ) from None
                count += len(chunk)
        return count

    def items(self) -> list[PoolItem]:
        """Return the whole pool by row."""
        query = sa.select(schema.items).order_by(schema.items.c.id)
        with self.database.read() as connection:
            return [PoolItem(*row) for row in connection.execute(query)]

    def item(self, key: str) -> PoolItem:
        """Return the item with a key."""
        query = sa.select(schema.items).where(schema.items.c.key == key)
        with self.database.read() as connection:
            found = connection.execute(query).one_or_none()
        if found is None:
            raise UnknownNameError("the id of an item of this project", repr(key), "check the id")
        return PoolItem(*found)


def count_items(connection: sa.Connection) -> int:
    """Return the size of the pool."""
    return int(connection.scalar(sa.select(sa.func.count()).select_from(schema.items)) or 0)


def rows_of(connection: sa.Connection, keys: Iterable[str]) -> dict[str, int]:
    """Return the rows of those keys that exist."""
    found: dict[str, int] = {}
    entries = iter(dict.fromkeys(keys))
    while chunk := list(islice(entries, KEYS_PER_QUERY)):
        query = sa.select(schema.items.c.key, schema.items.c.id).where(
            schema.items.c.key.in_(chunk)
        )
        found.update({row.key: row.id for row in connection.execute(query)})
    return found
