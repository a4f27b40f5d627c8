"""The database behind a store: SQLite in a file, or PostgreSQL through a URL.

There is one writer at a time, on either: SQLite by BEGIN IMMEDIATE, PostgreSQL by a lock that the
transaction holds. So what a write reads first cannot change before it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
    """Short transactions on one database; safe to use from many threads."""

    def __init__(self, url_or_path: str | Path, clock: Clock = utc_now) -> None:
        self.clock = clock
        self.place = _place(url_or_path)
        self._engine = _engine(url_or_path)

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
        with _told(self.place), writing.begin() as connection:
            yield connection

    def close(self) -> None:
        """Let go of every connection."""
        self._engine.dispose()


def _engine(url_or_path: str | Path) -> sa.Engine:
    try:
        engine = sa.create_engine(_url(url_or_path))
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
    if "://" in str(url_or_path):
        return sa.make_url(str(url_or_path))
    return sa.URL.create("sqlite", database=str(url_or_path))


def _place(url_or_path: str | Path) -> str:
    """Where the database is, without its password."""
    if "://" not in str(url_or_path):
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
    except (sa.exc.OperationalError, sa.exc.DatabaseError) as error:
        if isinstance(error, sa.exc.IntegrityError | sa.exc.ProgrammingError):
            raise
        raise FileError(
            f"a usable database at {place}",
            str(error.orig or error),
            "check that it is a database of sabal, that it can be written and the disk has room",
        ) from None
