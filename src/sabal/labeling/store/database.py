"""The database behind a store: SQLite in a file, or PostgreSQL through a URL.

Both have one writer at a time: SQLite by BEGIN IMMEDIATE, PostgreSQL by an advisory lock that the
transaction holds. What a write transaction reads therefore cannot change before it commits.

A SQLite file without write permission can still be read: see `_read_only_url`.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sa

from sabal.errors import FileError
from sabal.labeling.store.database_errors import database_errors, locked_error

Clock = Callable[[], datetime]
Row = TypeVar("Row")
BUSY_SECONDS = 10  # for a lock, which is never kept for as long unless a program hangs
BUSY_MILLISECONDS = 1000 * BUSY_SECONDS
POLL_SECONDS = 0.005  # between two attempts to get SQLite's lock
PART_SECONDS = 0.05  # what one of many write transactions is meant to take, as others wait for it
MAX_PAUSE_SECONDS = 1.0  # between two of many transactions
FIRST_PART, MIN_PART, MAX_PART = 100, 100, 500  # rows; smaller parts cost as much
CONNECT_SECONDS = 10  # for a connection to a server
IDLE_SECONDS = 60  # after which a server ends a transaction whose client is gone or hangs
WORKER_LOCK = 5_941_238  # the key of the worker's advisory lock
WRITER_LOCK = 5_941_237  # the key of the writers' advisory lock in a PostgreSQL database
CREATION_LOCK = 5_941_239  # the key of the lock of `sabal init`


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def as_text(moment: datetime) -> str:
    """Return a time as ISO-8601 in UTC with microseconds; such texts sort by time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


class Database:
    """Short transactions on one database, safe for threads; SQLite files may be `read_only`."""

    def __init__(
        self, url_or_path: str | Path, clock: Clock = utc_now, *, read_only: bool = False
    ) -> None:
        self.clock = clock
        self.read_only = read_only
        self.location = _location(url_or_path)
        self._engine = _create_engine(url_or_path, read_only)
        # Threads of one process queue here. SQLite's own waiting polls while it holds a
        # connection, and with fifty threads one of them may wait for seconds.
        self._writer = threading.RLock()
        self._worker_connection: sa.Connection | None = None
        self._wrote_for = 0.0

    def now_text(self) -> str:
        """Return the time of the clock as text."""
        return as_text(self.clock())

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Open a transaction for reading."""
        with database_errors(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Open a transaction that no other write overlaps; it is durable when the block ends."""
        writing = self._engine.execution_options(sabal_writes=True)
        if not self._writer.acquire(timeout=BUSY_SECONDS):
            raise locked_error()
        try:
            with database_errors(), writing.begin() as connection:
                began = time.monotonic()
                yield connection
        finally:
            self._writer.release()
        self._wrote_for = time.monotonic() - began

    def parts(self, rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
        """Yield the rows in parts, for a write transaction each, and let others write in between.

        The size of a part follows from how long the transaction before it took: on a busy machine
        others would wait for a large one for seconds.
        """
        start, size = 0, FIRST_PART
        while start < len(rows):
            yield rows[start : start + size]
            start += size
            fitting = int(size * PART_SECONDS / max(self._wrote_for, PART_SECONDS / 2))
            size = min(max(fitting, MIN_PART), MAX_PART)
            self.let_others_write()

    def let_others_write(self) -> None:
        """Wait between two of many write transactions, as long as the last one took.

        PostgreSQL queues those who wait for a lock. SQLite lets them try again from time to time,
        and never, unless they find it free.
        """
        if self._engine.dialect.name == "sqlite":
            time.sleep(min(self._wrote_for, MAX_PAUSE_SECONDS))

    @contextmanager
    def creation_lock(self) -> Iterator[None]:
        """Hold a lock of a server; raise if another process holds it. Closing releases it."""
        if self._engine.dialect.name != "postgresql":
            yield
            return
        alone = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        with database_errors():
            connection = alone.connect()
        with connection:
            with database_errors():
                query = sa.select(sa.func.pg_try_advisory_lock(CREATION_LOCK))
                if not connection.scalar(query):
                    raise locked_error()
            yield

    def try_worker_lock(self) -> bool:
        """Return whether this process has the worker's lock of a server; True for a file."""
        if self._engine.dialect.name != "postgresql" or self._worker_connection is not None:
            return True
        with database_errors():
            # The lock lasts as long as the connection, which is kept for it.
            connection = self._engine.connect()
            query = sa.text(f"SELECT pg_try_advisory_lock({WORKER_LOCK})")
            if connection.execute(query).scalar():
                connection.commit()
                self._worker_connection = connection
                return True
            connection.close()
        return False

    def release_worker_lock(self) -> None:
        """Give the worker's lock up."""
        if self._worker_connection is not None:
            # Not back into the pool, where it would keep the lock.
            self._worker_connection.invalidate()
            self._worker_connection.close()
            self._worker_connection = None

    def close(self) -> None:
        """Close all connections."""
        self.release_worker_lock()
        self._engine.dispose()


def can_be_written(url_or_path: str | Path) -> bool:
    """Return whether a database file and its folder can be written; True for a server."""
    if is_url(url_or_path):
        return True
    path = Path(url_or_path)
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def is_url(url_or_path: str | Path) -> bool:
    """Return whether a database is given by a URL and not by the path of a file."""
    return "://" in str(url_or_path)


def _create_engine(url_or_path: str | Path, read_only: bool) -> sa.Engine:
    try:
        engine = sa.create_engine(_read_only_url(url_or_path) if read_only else _url(url_or_path))
    except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ImportError) as error:
        raise FileError(
            "a database_url whose driver is installed", str(error), "install it, or use SQLite"
        ) from None
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _prepare_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
    elif engine.dialect.name == "postgresql":
        sa.event.listen(engine, "do_connect", _limit_connecting)
        sa.event.listen(engine, "begin", _begin_postgresql)
        # What psycopg logs beside an error is not for users.
        logging.getLogger("psycopg").addHandler(logging.NullHandler())
    else:
        raise FileError("SQLite or PostgreSQL", engine.dialect.name, "use one of these")
    return engine


def _url(url_or_path: str | Path) -> sa.URL:
    if is_url(url_or_path):
        return sa.make_url(str(url_or_path))
    return sa.URL.create("sqlite", database=str(url_or_path))


def _read_only_url(path: str | Path) -> sa.URL:
    """Return the URL of a file such that neither it nor its folder is written.

    A write-ahead log, which exists while an app runs or after it was killed, is read together with
    its shared-memory file. Without one SQLite would create both, unless the file is declared
    immutable.
    """
    immutable = {} if Path(f"{path}-wal").exists() else {"immutable": "1"}
    query = {"mode": "ro", "uri": "true", **immutable}
    return sa.URL.create("sqlite", database=f"file:{quote(str(path))}", query=query)


def _location(url_or_path: str | Path) -> str:
    """Return where the database is, without its password."""
    if not is_url(url_or_path):
        return str(url_or_path)
    try:
        return sa.make_url(str(url_or_path)).render_as_string(hide_password=True)
    except sa.exc.ArgumentError:
        return "the database_url"


def _prepare_sqlite(connection: Any, record: Any) -> None:
    # The driver would begin transactions by itself, and only at the first write.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    if not connection.get_execution_options().get("sabal_writes"):
        connection.exec_driver_sql("BEGIN")
        return
    # SQLite itself tries ever more rarely, and may miss the moments in which the lock is free.
    deadline = time.monotonic() + BUSY_SECONDS
    connection.exec_driver_sql("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                return
            except sa.exc.OperationalError as error:
                name = getattr(error.orig, "sqlite_errorname", "")
                if not name.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                    raise
            time.sleep(POLL_SECONDS)
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")


def _limit_connecting(dialect: Any, record: Any, arguments: Any, options: Any) -> None:
    if dialect.driver in ("psycopg", "psycopg2"):
        options.setdefault("connect_timeout", CONNECT_SECONDS)


def _begin_postgresql(connection: sa.Connection) -> None:
    if connection.get_execution_options().get("sabal_writes"):
        connection.exec_driver_sql(
            f"SELECT set_config('lock_timeout', '{BUSY_SECONDS}s', true), "
            f"set_config('idle_in_transaction_session_timeout', '{IDLE_SECONDS}s', true), "
            f"pg_advisory_xact_lock({WRITER_LOCK})"
        )
