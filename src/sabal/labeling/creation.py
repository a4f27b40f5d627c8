"""The database of a new project: complete or absent.

It is made in a temporary folder inside that of the project and moved into place when it is
complete; sabal.toml follows. Files that are deleted after a failure, or left by an earlier
`sabal init` that was killed, never hold an answer.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os.path import lexists
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa

from sabal.core.files import move_to_new
from sabal.errors import FileError
from sabal.labeling.server_creation import holds_answers, new_server_store
from sabal.labeling.settings import Settings
from sabal.labeling.store import Store, schema
from sabal.labeling.store.records import PoolItem

SETTINGS, DATABASE = "sabal.toml", "sabal.db"
COMPANIONS = ("-wal", "-shm", "-journal")  # endings of what SQLite keeps beside a database
UNFINISHED = ".sabal-init-"  # the prefix of the temporary folder


def check_free(place: Path) -> None:
    """Raise if `place` has files of another project."""
    if lexists(place / SETTINGS):
        raise _taken(place, SETTINGS)
    database = place / DATABASE
    if lexists(database):
        if not _is_unfinished(database):
            raise _taken(place, f"{DATABASE} without {SETTINGS}")
        return
    for ending in COMPANIONS:
        # It may hold the latest answers of a database that was moved without it.
        if lexists(place / f"{DATABASE}{ending}"):
            raise _taken(place, f"{DATABASE}{ending}")


@contextmanager
def new_store(place: Path, settings: Settings, items: Iterable[PoolItem]) -> Iterator[Store]:
    """Create the store of a new project; close and remove it if the block fails."""
    if settings.database_url is not None:
        with new_server_store(settings.database_url, settings, items) as store:
            yield store
        return
    database = place / DATABASE
    folder = Path(tempfile.mkdtemp(dir=place, prefix=UNFINISHED))
    try:
        with _closed_on_error(Store.open(folder / DATABASE, settings)) as store:
            store.add_items(items)
        store.close()
        _check_complete(folder / DATABASE)
        # Checked again, as reading the items may have taken long.
        check_free(place)
        _remove_database(database)
        move_to_new(folder / DATABASE, database)
    finally:
        _remove_folder(folder)
    try:
        with _closed_on_error(Store.open(database, settings)) as store:
            yield store
    except BaseException:
        _remove_database(database)
        raise
    for left in place.glob(f"{UNFINISHED}*"):
        _remove_folder(left)


@contextmanager
def _closed_on_error(store: Store) -> Iterator[Store]:
    try:
        yield store
    except BaseException:
        store.close()
        raise


def _check_complete(database: Path) -> None:
    """Raise if closing has not moved all of SQLite's log into the database."""
    if lexists(f"{database}-wal"):
        raise FileError(
            f"to complete the database {database}",
            "a write-ahead log that could not be emptied",
            "check that the disk has room, and try again",
        )


def _is_unfinished(database: Path) -> bool:
    """Return whether a database was left by a killed `sabal init`, and is not open."""
    if database.is_symlink() or not database.is_file():
        return False
    engine = sa.create_engine("sqlite://", creator=lambda: _locked(database), poolclass=sa.NullPool)
    try:
        with engine.connect() as connection:
            found = set(sa.inspect(connection).get_table_names())
            ours = found <= set(schema.metadata.tables)
            return ours and not holds_answers(connection, found)
    except (sa.exc.DatabaseError, sqlite3.Error):
        return False


def _locked(database: Path) -> sqlite3.Connection:
    """Open an exclusive connection; raise if there is another one."""
    url = f"file:{quote(str(database))}?mode=rw"
    connection = sqlite3.connect(url, uri=True, timeout=0, isolation_level=None)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _remove_folder(folder: Path) -> None:
    """Remove a temporary folder, unless it contains other files."""
    try:
        _remove_database(folder / DATABASE)
        folder.rmdir()
    except OSError:
        return  # harmless: its name is hidden, and no other init uses it


def _remove_database(database: Path) -> None:
    for ending in (*COMPANIONS, ""):
        Path(f"{database}{ending}").unlink(missing_ok=True)


def _taken(place: Path, found: str) -> FileError:
    return FileError(
        f"a folder without a project at {place}",
        f"{found} in it",
        f"choose another folder, or move everything called {DATABASE}* and {SETTINGS} elsewhere",
    )
