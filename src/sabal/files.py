"""Files that are whole or absent."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from sabal.errors import FileError


def write_whole(path: str | Path, write: Callable[[Path], None]) -> Path:
    """Let `write` fill a temporary file beside `path`, then move it there in one step.

    A crash, a full disk or an error in `write` leaves what was at `path` as it was.
    """
    target = Path(path)
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise _cannot_write(target, error) from None
    os.close(descriptor)
    temporary = Path(name)
    try:
        write(temporary)
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        # mkstemp makes private files; a result is as readable as any other file of the user's.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    except OSError as error:
        raise _cannot_write(target, error) from None
    finally:
        temporary.unlink(missing_ok=True)
    return target


def _cannot_write(target: Path, error: OSError) -> FileError:
    return FileError(
        f"to write {target}",
        error.strerror or str(error),
        "check that the folder exists, is writable and has room",
    )
