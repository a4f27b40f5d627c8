"""The tables of a new project on a database server: complete or absent.

While `sabal init` runs the database has a table more, by which the next one recognizes tables of
one that was killed. They never hold an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress

import sqlalchemy as sa

from sabal.errors import FileError
from sabal.labeling.settings import Settings
from sabal.labeling.store import Store, schema
from sabal.labeling.store.database import Database
from sabal.labeling.store.records import PoolItem

UNFINISHED = sa.Table("sabal_init", sa.MetaData(), sa.Column("started_at", sa.Text))
# The tables with rows in a new project.
WRITTEN_BY_INIT = {"migrations", "settings", "items", "item_details"}


@contextmanager
def new_server_store(url: str, settings: Settings, items: Iterable[PoolItem]) -> Iterator[Store]:
    """Create the store of a new project; close it and remove its tables if the block fails."""
    with closing(Database(url)) as database, database.creation_lock():
        _begin(database)
        try:
            store = Store.open(url, settings)
            try:
                store.add_items(items)
                yield store
                with database.write() as connection:
                    UNFINISHED.drop(connection)
            except BaseException:
                store.close()
                raise
        except BaseException:
            # What cannot be removed now, the next `sabal init` removes.
            with suppress(FileError), database.write() as connection:
                _remove_tables(connection)
            raise


def holds_answers(connection: sa.Connection, found: set[str]) -> bool:
    """Return whether some of the tables `found` have rows that `sabal init` does not write."""
    return any(
        connection.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).first()
        for name, table in schema.metadata.tables.items()
        if name in found - WRITTEN_BY_INIT
    )


def _begin(database: Database) -> None:
    """Remove what a killed `sabal init` left, and refuse tables of anything else."""
    with database.write() as connection:
        present = set(sa.inspect(connection).get_table_names())
        found = present & set(schema.metadata.tables)
        unfinished = UNFINISHED.name in present
        if found and (not unfinished or holds_answers(connection, found)):
            raise FileError(
                "a database without a project",
                f"one with the tables {', '.join(sorted(found))}",
                "use another database: each holds one project",
            )
        _remove_tables(connection)
        UNFINISHED.create(connection)
        connection.execute(UNFINISHED.insert().values(started_at=database.now_text()))


def _remove_tables(connection: sa.Connection) -> None:
    schema.metadata.drop_all(connection)
    UNFINISHED.drop(connection, checkfirst=True)
