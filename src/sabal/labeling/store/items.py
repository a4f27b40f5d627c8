"""The pool: rows of items, added once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import sqlalchemy as sa

from sabal.errors import InputError, UnknownNameError
from sabal.labeling.store import schema
from sabal.labeling.store.records import Item

CHUNK = 5_000


def add_items(connection: sa.Connection, rows: Iterable[Item]) -> int:
    """Add the items of the pool; returns how many."""
    count, entries = 0, iter(rows)
    while chunk := list(islice(entries, CHUNK)):
        values = [
            {"id": row.id, "key": row.key, "kind": row.kind, "content": row.content}
            for row in chunk
        ]
        try:
            connection.execute(schema.items.insert(), values)
        except sa.exc.IntegrityError:
            raise InputError(
                "a row and a key of its own for every item",
                f"one that is there already, near {chunk[0].key!r}",
                "give every item another id",
            ) from None
        count += len(chunk)
    return count


def all_items(connection: sa.Connection) -> list[Item]:
    """The whole pool, by row."""
    return list(_items(connection.execute(sa.select(schema.items).order_by(schema.items.c.id))))


def count_items(connection: sa.Connection) -> int:
    """The size of the pool."""
    return int(connection.scalar(sa.select(sa.func.count()).select_from(schema.items)) or 0)


def item_of(connection: sa.Connection, key: str) -> Item:
    """The item of a key."""
    found = connection.execute(sa.select(schema.items).where(schema.items.c.key == key))
    for item in _items(found):
        return item
    raise UnknownNameError("the id of an item of this project", repr(key), "check the id")


def rows_of(connection: sa.Connection, keys: Iterable[str]) -> dict[str, int]:
    """The rows of those of `keys` that exist."""
    found: dict[str, int] = {}
    entries = iter(dict.fromkeys(keys))
    while chunk := list(islice(entries, 500)):
        query = sa.select(schema.items.c.key, schema.items.c.id).where(
            schema.items.c.key.in_(chunk)
        )
        found.update({row.key: row.id for row in connection.execute(query)})
    return found


def _items(result: Iterable[Any]) -> Iterator[Item]:
    return (Item(row[0], row[1], row[2], row[3]) for row in result)
