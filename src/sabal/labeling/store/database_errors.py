"""Errors of a database in words.

The messages of the drivers have users, hosts and paths in them, and clients of the app see them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from sabal.errors import FileError, InputError

LOCKED = "one that another program keeps locked"
UNREACHABLE = "a server that cannot be reached"
NO_ACCESS = "a server that refuses the user or the password"
NO_DATABASE = "a server without that database"
OVERLOADED = "a server without room for another connection or statement"
STOPPING = "a server that is starting or stopping"
DISK_FULL = "one whose disk is full"
READ_ONLY = "one that can only be read"
TOO_SLOW = "a statement or transaction that took too long"

SQLSTATES = {
    "08": UNREACHABLE,
    "25006": READ_ONLY,
    "25P03": TOO_SLOW,
    "28": NO_ACCESS,
    "3D": NO_DATABASE,
    "3F": "a server without that schema",
    "42501": "a user who may not do this",
    "42P01": "one without the tables of a project",
    "53100": DISK_FULL,
    "53": OVERLOADED,
    "55P03": LOCKED,
    "57014": TOO_SLOW,
    "57P": STOPPING,
    "58": "an I/O error of the server",
    "XX": "a damaged database",
}
"""What the beginnings of PostgreSQL's codes mean; the longest one that fits applies."""

MESSAGES = {
    "authentication failed": NO_ACCESS,
    "no password supplied": NO_ACCESS,
    "pg_hba.conf": NO_ACCESS,
    "role ": NO_ACCESS,
    "database ": NO_DATABASE,
    "too many": OVERLOADED,
    "connection slots": OVERLOADED,
    "starting up": STOPPING,
    "shutting down": STOPPING,
}
"""What parts of the messages mean with which a connection fails, which have no codes."""

SQLITE = {
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_FULL": DISK_FULL,
    "SQLITE_IOERR": "a disk I/O error",
    "SQLITE_READONLY": READ_ONLY,
    "SQLITE_PERM": READ_ONLY,
    "SQLITE_CANTOPEN": "a file that cannot be opened",
    "SQLITE_NOTADB": "a file that is not a database",
    "SQLITE_CORRUPT": "a damaged database",
}
"""What the beginnings of SQLite's names of errors mean."""


@contextmanager
def database_errors() -> Iterator[None]:
    """Raise what a user can mend as a `SabalError`; errors of our own SQL stay as they are."""
    try:
        yield
    except sa.exc.IntegrityError:
        raise
    except sa.exc.DataError:
        raise InputError(
            "texts and numbers that the database can store",
            "a NUL character, or a number out of range",
            "correct it",
        ) from None
    except sa.exc.ProgrammingError as error:
        if _code(error) not in SQLSTATES:
            raise
        raise _unusable(error) from None
    except (sa.exc.DBAPIError, sa.exc.TimeoutError, ConnectionError) as error:
        raise _unusable(error) from None


def locked_error() -> FileError:
    """Return the error for a database whose lock could not be had in time."""
    return FileError("a usable database", LOCKED, "wait until that is done, and try again")


def _unusable(error: Exception) -> FileError:
    got = _words(error)
    if got == LOCKED:
        return locked_error()
    return FileError(
        "a usable database",
        got,
        "check its address or file, that it can be written, and that the disk has room",
    )


def _words(error: Exception) -> str:
    if isinstance(error, sa.exc.TimeoutError):
        return OVERLOADED
    cause = getattr(error, "orig", None) or error
    name = getattr(cause, "sqlite_errorname", None)
    if name is not None:
        known = (words for start, words in SQLITE.items() if name.startswith(start))
        return next(known, f"an error of SQLite ({name})")
    code = _code(error)
    if code is not None:
        return SQLSTATES[code]
    message = str(cause)
    return next((words for part, words in MESSAGES.items() if part in message), UNREACHABLE)


def _code(error: Exception) -> str | None:
    """Return the beginning of the error's code that has a meaning here."""
    state = getattr(getattr(error, "orig", None), "sqlstate", None) or ""
    known = sorted(SQLSTATES, key=len, reverse=True)
    return next((each for each in known if state.startswith(each)), None)
