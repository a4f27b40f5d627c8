"""The database behind a store: SQLite in a file, or PostgreSQL through a URL.

There is one writer at a time, on either: SQLite by BEGIN IMMEDIATE, PostgreSQL by a lock that the
transaction holds. So what a write reads first cannot change before it is done.

A file that must not be written can be read still: see `_read_only`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from sabal.errors import FileError

Clock = Callable[[], datetime]
BUSY_MILLISECONDS = 30_000
WRITER_LOCK = 5_941_237
"""Names the lock of writers among all locks of a PostgreSQL database."""


def utc_now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


def as_text(moment: datetime) -> str:
    """ISO-8601 in UTC with microseconds: texts of this form sort by time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


class Database:
    """Short transactions on one database; safe to use from many threads.

    read_only: for a file of SQLite that cannot be written, or is in a folder that cannot.
    """

    def __init__(
        self, url_or_path: str | Path, clock: Clock = utc_now, *, read_only: bool = False
    ) -> None:
        self.clock = clock
        self.read_only = read_only
        self.place = _place(url_or_path)
        self._engine = _engine(url_or_path, read_only)
        # Threads of one process wait here, in turn: left to SQLite they ask again and again, each
        # with a connection in its hand, and somebody among fifty waits for seconds.
        self._writer = threading.RLock()

    def now_text(self) -> str:
        """The time of the store's clock."""
        return as_text(self.clock())

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A transaction for reading."""
        with _told(self.place), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction that no other write overlaps; durable once it is left without an error."""
        writing = self._engine.execution_options(sabal_writes=True)
        with self._writer, _told(self.place), writing.begin() as connection:
            yield connection

    def close(self) -> None:
        """Let go of every connection."""
        self._engine.dispose()


def can_be_written(url_or_path: str | Path) -> bool:
    """Whether a database file, and the journal beside it, can be written; servers decide later."""
    if is_url(url_or_path):
        return True
    path = Path(url_or_path)
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def is_url(url_or_path: str | Path) -> bool:
    """Whether it names a database server's database, or a file."""
    return "://" in str(url_or_path)


def _engine(url_or_path: str | Path, read_only: bool) -> sa.Engine:
    try:
        engine = sa.create_engine(_read_only(url_or_path) if read_only else _url(url_or_path))
    except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ImportError) as error:
        raise FileError(
            "a database_url whose driver is installed", str(error), "install it, or use SQLite"
        ) from None
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _prepare_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
    elif engine.dialect.name == "postgresql":
        sa.event.listen(engine, "begin", _begin_postgresql)
    else:
        raise FileError("SQLite or PostgreSQL", engine.dialect.name, "use one of these")
    return engine


def _url(url_or_path: str | Path) -> sa.URL:
    if is_url(url_or_path):
        return sa.make_url(str(url_or_path))
    return sa.URL.create("sqlite", database=str(url_or_path))


def _read_only(path: str | Path) -> sa.URL:
    """A file that nothing is written to, nor beside it.

    A log beside it (an app runs, or was killed) is read together with the shared memory that is
    there then. Without a log SQLite would make both, unless it is told that the file is settled.
    """
    settled = {} if Path(f"{path}-wal").exists() else {"immutable": "1"}
    query = {"mode": "ro", "uri": "true", **settled}
    return sa.URL.create("sqlite", database=f"file:{quote(str(path))}", query=query)


def _place(url_or_path: str | Path) -> str:
    """Where the database is, without its password."""
    if not is_url(url_or_path):
        return str(url_or_path)
    try:
        return sa.make_url(str(url_or_path)).render_as_string(hide_password=True)
    except sa.exc.ArgumentError:
        return "the database_url"


def _prepare_sqlite(connection: Any, record: Any) -> None:
    # The driver would begin transactions by itself, and too late.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("sabal_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _begin_postgresql(connection: sa.Connection) -> None:
    if connection.get_execution_options().get("sabal_writes"):
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITER_LOCK})")


@contextmanager
def _told(place: str) -> Iterator[None]:
    try:
        yield
    except (sa.exc.DatabaseError, sa.exc.TimeoutError) as error:
        if isinstance(error, sa.exc.IntegrityError | sa.exc.ProgrammingError):
            raise
        raise FileError(
            f"a usable database at {place}",
            str(getattr(error, "orig", None) or error),
            "check that it is a database of sabal, that it can be written and the disk has room",
        ) from None
