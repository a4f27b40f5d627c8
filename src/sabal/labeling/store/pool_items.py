"""The items of the pool, which are never changed or removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import sqlalchemy as sa

from sabal.errors import InputError, UnknownNameError
from sabal.labeling.store import schema
from sabal.labeling.store.records import AddedSource, AddReport, PoolItem
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
                    _insert(connection, chunk)
                except sa.exc.IntegrityError:
                    raise InputError(
                        "a row and a key of its own for every item",
                        f"one that is there already, near {chunk[0].key!r}",
                        "give every item another id",
                    ) from None
                count += len(chunk)
        return count

    def add_source(self, path: str, items: Sequence[PoolItem]) -> AddReport:
        """Add the items of a source that are new.

        The ids of `items` are their rows in the source. An item with the key and the content of one
        that is there already adds nothing. All items are checked first. They are added by small
        transactions, between which people label; each is recorded as a source of its own. If this
        is interrupted, the first items are in the pool, and the others are added when it is
        repeated.
        """
        with self.database.read() as connection:
            new = _new_items(connection, items)
        added = 0
        for rows in self.database.parts(new):
            with self.database.write() as connection:
                # Again: another process may have added some of them since.
                part = _new_items(connection, rows)
                self._add_part(connection, path, part)
            added += len(part)
        return AddReport(added, len(items) - added)

    def _add_part(self, connection: sa.Connection, path: str, part: Sequence[PoolItem]) -> None:
        if not part:
            return
        first = int(connection.scalar(sa.select(sa.func.max(schema.items.c.id))) or 0) + 1
        _insert(connection, [replace(item, id=first + k) for k, item in enumerate(part)])
        values = {"path": path, "first_item": first, "rows": [item.id for item in part]}
        now = self.database.now_text()
        connection.execute(schema.sources.insert().values(**values, added_at=now))

    def added_sources(self) -> list[AddedSource]:
        """Return what was added after the data that the project began with, in order.

        There is one for every transaction, so that a part of the pool never changes.
        """
        s = schema.sources
        query = sa.select(s.c.path, s.c.first_item, s.c.rows).order_by(s.c.id)
        with self.database.read() as connection:
            return [AddedSource(*row) for row in connection.execute(query)]

    def added_paths(self) -> list[str]:
        """Return the paths of what was added."""
        # Without the rows: an image is shown often, and a source may have a million of them.
        with self.database.read() as connection:
            return list(connection.scalars(sa.select(schema.sources.c.path).distinct()))

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


def _new_items(connection: sa.Connection, items: Sequence[PoolItem]) -> list[PoolItem]:
    """Return the items that are not there yet; refuse one that is there with other content."""
    known = _contents_of(connection, (item.key for item in items))
    for item in items:
        if known.get(item.key, item.content) != item.content:
            raise InputError(
                "an id of its own for every new item",
                f"{item.key!r} again, with other content",
                "give it another id, or name a column of ids",
            )
    return [item for item in items if item.key not in known]


def _insert(connection: sa.Connection, items: Sequence[PoolItem]) -> None:
    columns = ("id", "key", "kind", "content")
    rows = [{name: getattr(item, name) for name in columns} for item in items]
    connection.execute(schema.items.insert(), rows)
    details = [{"item_id": item.id, "content": item.details} for item in items if item.details]
    if details:
        connection.execute(schema.item_details.insert(), details)


def count_items(connection: sa.Connection) -> int:
    """Return the size of the pool."""
    return int(connection.scalar(sa.select(sa.func.count()).select_from(schema.items)) or 0)


def rows_of(connection: sa.Connection, keys: Iterable[str]) -> dict[str, int]:
    """Return the rows of those keys that exist."""
    return _column_of(connection, schema.items.c.id, keys)


def _contents_of(connection: sa.Connection, keys: Iterable[str]) -> dict[str, str]:
    return _column_of(connection, schema.items.c.content, keys)


def _column_of(connection: sa.Connection, column: sa.Column[Any], keys: Iterable[str]) -> Any:
    """Return a column of the items by key, for those keys that exist."""
    found: dict[str, Any] = {}
    entries = iter(dict.fromkeys(keys))
    while chunk := list(islice(entries, KEYS_PER_QUERY)):
        query = sa.select(schema.items.c.key, column).where(schema.items.c.key.in_(chunk))
        found.update({key: value for key, value in connection.execute(query)})  # noqa: C416
    return found
