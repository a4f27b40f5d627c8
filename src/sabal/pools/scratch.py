"""A temporary folder for data that must be decoded before its rows can be read."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sabal.core.files import make_folder
from sabal.errors import FileError


class Scratch:
    """A temporary folder, created with its first file.

    It is removed when the last reference to this object is gone (rows on disk hold one), or at the
    end of the process that created it.

    Parameters
    ----------
    parent : path, optional
        The folder to create it in; the system's temporary folder by default.
    """

    def __init__(self, parent: str | Path | None = None) -> None:
        self._parent = Path(tempfile.gettempdir() if parent is None else parent)
        self._folder: Path | None = None
        self._open: list[BinaryIO] = []
        self._advance: Callable[[int], None] | None = None

    @contextmanager
    def filling(self, needed: int) -> Iterator[None]:
        """Check that `needed` bytes are free, and show progress while they are written."""
        if not needed:
            yield
            return
        self.check_room(needed)
        with _progress(needed) as self._advance:
            yield
        self._advance = None

    def check_room(self, needed: int) -> None:
        """Raise if the disk has less than `needed` bytes free."""
        if self._folder is None:
            make_folder(self._parent)
        try:
            free = shutil.disk_usage(self._parent).free
        except OSError as error:
            raise self._cannot_write(error) from None
        if needed > free:
            raise FileError(
                f"room for {needed} bytes in {self._parent}, where the pool is unpacked",
                f"{free} bytes free",
                "pass scratch= a folder on a larger disk",
            )

    def create(self, name: str) -> BinaryIO:
        """Open a new file for writing."""
        try:
            if self._folder is None:
                make_folder(self._parent)
                self._folder = Path(tempfile.mkdtemp(prefix="sabal-pool-", dir=self._parent))
                self._finalizer = weakref.finalize(self, _remove, self._folder, os.getpid())
            file = (self._folder / name).open("wb")
        except OSError as error:
            raise self._cannot_write(error) from None
        self._open.append(file)
        return file

    def write(self, file: BinaryIO, data: memoryview | bytes) -> None:
        """Write `data` to a file of this folder."""
        try:
            file.write(data)
        except OSError as error:
            raise self._cannot_write(error) from None
        if self._advance is not None:
            self._advance(len(data))

    def close(self, file: BinaryIO) -> Path:
        """Close a complete file and return its path."""
        try:
            file.close()
        except OSError as error:
            raise self._cannot_write(error) from None
        self._open.remove(file)
        return Path(file.name)

    def discard(self, path: Path) -> None:
        """Remove a file that is no longer needed."""
        path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove everything now, complete or not."""
        for file in self._open:
            try:
                file.close()
            except OSError:
                continue
        self._open.clear()
        if self._folder is not None:
            self._finalizer()

    def _cannot_write(self, error: OSError) -> FileError:
        return FileError(
            f"to write to a scratch folder in {self._parent}",
            error.strerror or str(error),
            "pass scratch= a folder that is writable and has room",
        )


@contextmanager
def removed_on_error(scratch: Scratch) -> Iterator[Scratch]:
    """Remove the folder if the block fails or is interrupted."""
    try:
        yield scratch
    except BaseException:
        scratch.remove()
        raise


def _remove(folder: Path, process: int) -> None:
    # A forked process has a copy of this object but does not own the folder.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar of bytes on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("unpacking the pool"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)
