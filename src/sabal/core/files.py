"""Files that are whole or absent, and archives that are read without unpickling."""

from __future__ import annotations

import os
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np

from sabal.errors import FileError

BAD_ARCHIVE = (
    OSError, ValueError, EOFError, KeyError, RuntimeError, MemoryError,
    zipfile.BadZipFile, zlib.error, tokenize.TokenError,
)  # fmt: skip
"""What reading a damaged archive, or a damaged array in it, may raise.

RuntimeError is an encrypted archive, or (as NotImplementedError) an unknown compression; NumPy's
parser of headers lets TokenError through.
"""


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


def make_folder(path: Path) -> None:
    """Make a folder, and those that it is in, unless it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"to make the folder {path}", error.strerror or str(error), "choose another folder"
        ) from None


def write_text_whole(path: str | Path, text: str) -> Path:
    """Write `text` in UTF-8 to a file that is whole or absent."""
    return write_whole(path, lambda target: _write_text(target, text))


def read_npz(path: Path, names: Collection[str]) -> tuple[list[str], dict[str, np.ndarray]]:
    """Every name in an .npz file, and those of its arrays that are called one of `names`."""
    if not path.is_file():
        raise FileError("an .npz file", f"no file at {path}", "check the path")
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise ValueError("a file that is no .npz archive, or only part of one")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                found = list(archive.files)
                return found, {name: archive[name] for name in found if name in names}
    except BAD_ARCHIVE as error:
        raise unreadable_archive(path, error) from None


def unreadable_archive(path: Path, error: Exception) -> FileError:
    """The error for an .npz file that makes no sense."""
    return FileError(
        f"readable arrays of numbers or strings in {path}",
        str(error) or type(error).__name__,
        "write the file again",
    )


def _write_text(target: Path, text: str) -> None:
    target.write_text(text, encoding="utf-8")


def _cannot_write(target: Path, error: OSError) -> FileError:
    return FileError(
        f"to write {target}",
        error.strerror or str(error),
        "check that the folder exists, is writable and has room",
    )
