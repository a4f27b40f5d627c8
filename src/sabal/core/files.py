"""Files that are complete or absent, and archives that are read without unpickling."""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import socket
import stat
import sys
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from sabal.errors import FileError

STDOUT = 1
STANDARD_OUTPUT = Path("/dev/stdout")  # even on systems without this path

NOT_SUPPORTED = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM}
"""Errors of file systems that do not support syncing folders or hard links."""

SHOWN_NAME = 16  # characters of a file's name in the name of its temporary file
MAX_LINKS = 40  # the maximum number of links followed, as in Linux

BAD_ARCHIVE = (
    OSError, ValueError, EOFError, KeyError, RuntimeError, MemoryError,
    zipfile.BadZipFile, zlib.error, tokenize.TokenError,
)  # fmt: skip
"""Exceptions that reading a damaged archive, or a damaged array in it, may raise.

RuntimeError is an encrypted archive, or (as NotImplementedError) an unknown compression; NumPy's
header parser may raise TokenError.
"""


def write_whole(path: str | Path, write: Callable[[Path], object]) -> Path:
    """Write a file so that it is either complete or absent.

    `write` fills a temporary file, which is then moved to `path` in one step. A crash, a full disk
    or an error in `write` leaves an existing file unchanged. Symbolic links are followed, and a
    file that is replaced keeps its mode. Devices, pipes, sockets and open descriptors cannot be
    replaced: the finished content is written to them.
    """
    target = Path(path)
    with os_errors_about(target):
        if is_stream(target):
            with tempfile.TemporaryDirectory() as folder:
                filled = Path(folder) / "content"
                write(filled)
                with filled.open("rb") as content:
                    _write_through(target, content)
        else:
            _replace(Path(os.path.realpath(target)), _mode_of(target), write)
    return target


def write_bytes_whole(path: str | Path, content: bytes) -> Path:
    """Write bytes as `write_whole` does."""
    target = Path(path)
    if not is_stream(target):
        return write_whole(target, lambda temporary: temporary.write_bytes(content))
    with os_errors_about(target):
        _write_through(target, io.BytesIO(content))
    return target


def write_text_whole(path: str | Path, text: str) -> Path:
    """Write text in UTF-8 as `write_whole` does."""
    return write_bytes_whole(path, text.encode())


def make_folder(path: Path) -> None:
    """Make a folder and its parents unless they exist."""
    try:
        new = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for folder in new:
            sync_folder(folder.parent)
    except OSError as error:
        raise FileError(
            f"to make the folder {path}", error.strerror or str(error), "choose another folder"
        ) from None


def move_into_place(made: Path, target: Path, mode: int | None = None) -> None:
    """Rename a finished file or folder to `target`, so that it survives a power failure."""
    with os_errors_about(target):
        _sync(made)
        if mode is not None:
            made.chmod(mode)
        made.replace(target)
        sync_folder(target.parent)


def move_to_new(made: Path, target: Path) -> None:
    """Move a file into place, and raise if `target` exists."""
    with os_errors_about(target):
        _sync(made)
        try:
            target.hardlink_to(made)
        except OSError as error:
            # FAT, for instance, has no hard links.
            if error.errno not in NOT_SUPPORTED or os.path.lexists(target):
                raise
            made.replace(target)
        sync_folder(target.parent)
        made.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, if the file system supports it."""
    if os.name == "nt":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return  # a folder that may be written but not read cannot be synced
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
            raise
    finally:
        os.close(descriptor)


def is_stream(path: str | Path) -> bool:
    """Return whether `path` is a device, pipe, socket or descriptor, which cannot be replaced."""
    if _descriptor(Path(path)) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def is_standard_output(path: str | Path) -> bool:
    """Return whether `path` is standard output."""
    return _descriptor(Path(path)) == STDOUT


@contextmanager
def os_errors_about(target: Path) -> Iterator[None]:
    """Turn an OSError into a FileError about `target`."""
    try:
        yield
    except OSError as error:
        raise cannot_write(target, error) from None


def cannot_write(target: Path, error: OSError) -> FileError:
    """Return the error for a file or stream that cannot be written."""
    if is_stream(target):
        what = "standard output" if is_standard_output(target) else str(target)
        fix = "check that it is open for writing and has room"
    else:
        what, fix = str(target), "check that the folder exists, is writable and has room"
    return FileError(f"to write {what}", error.strerror or str(error), fix)


def read_npz(path: Path, names: Collection[str]) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return every name in an .npz file, and its arrays with one of `names` by name."""
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
    """Return the error for an .npz file that cannot be read."""
    return FileError(
        f"readable arrays of numbers or strings in {path}",
        str(error) or type(error).__name__,
        "write the file again",
    )


def _replace(target: Path, mode: int, write: Callable[[Path], object]) -> None:
    # Only the start of the name, as the temporary name might be too long otherwise.
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:SHOWN_NAME]}.")
    os.close(descriptor)
    temporary = Path(name)
    try:
        write(temporary)
        move_into_place(temporary, target, mode)
    finally:
        temporary.unlink(missing_ok=True)


def _mode_of(target: Path) -> int:
    """Return the mode of an existing file, or else the default mode of new files."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask


def _write_through(target: Path, content: IO[bytes]) -> None:
    with _open_stream(target) as stream:
        shutil.copyfileobj(content, stream)


def _open_stream(target: Path) -> IO[bytes]:
    number = _descriptor(target)
    if number is None:
        if stat.S_ISSOCK(target.stat().st_mode):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(target))
                return connection.makefile("wb")
        # Not created or truncated, in case it has become a file meanwhile.
        return os.fdopen(os.open(target, os.O_WRONLY), "wb")
    if number == STDOUT:
        if sys.__stdout__ is None:
            # It was closed from the start, so its number may belong to another file by now.
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        sys.stdout.flush()
    # Opening the path would start at the beginning of a file that is being appended to.
    return os.fdopen(os.dup(number), "wb")


def _descriptor(path: Path) -> int | None:
    """Return the open descriptor that a path such as /dev/stdout or /dev/fd/3 names."""
    own = re.compile(rf"/dev/fd|/proc/{os.getpid()}/(task/[0-9]+/)?fd")
    for _ in range(MAX_LINKS):
        if path == STANDARD_OUTPUT:
            return STDOUT
        try:
            folder = os.path.realpath(path.parent)
            if own.fullmatch(folder) and re.fullmatch("[0-9]+", path.name):
                return int(path.name)
            path = Path(folder, os.readlink(path))
        except (OSError, ValueError):
            return None
    return None


def _sync(made: Path) -> None:
    """Flush a file, or all files in a folder, to disk."""
    if made.is_dir():
        for path in made.iterdir():
            _sync(path)
        sync_folder(made)
        return
    # Windows syncs only files that are open for writing.
    with made.open("rb+" if os.name == "nt" else "rb") as file:
        os.fsync(file.fileno())
