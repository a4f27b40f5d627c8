"""A folder for what has to be unpacked before it can be read by rows; it goes with the pool."""

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
    """A temporary folder, made when the first file is written into it.

    It is removed when nothing refers to this object any more (rows on disk do), or at the end of
    the process that made it.
    parent: the folder to make it in; None for the system's folder for temporary files.
    """

    def __init__(self, parent: str | Path | None = None) -> None:
        self._parent = Path(tempfile.gettempdir() if parent is None else parent)
        self._folder: Path | None = None
        self._open: list[BinaryIO] = []
        self._advance: Callable[[int], None] | None = None

    @contextmanager
    def filling(self, needed: int) -> Iterator[None]:
        """Make sure of room for `needed` bytes, and show how far they have been written."""
        if not needed:
            yield
            return
        self.check_room(needed)
        with _progress(needed) as self._advance:
            yield
        self._advance = None

    def check_room(self, needed: int) -> None:
        """Refuse to start on what the disk has no room for."""
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
        """A new file to write to."""
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
        """Write all of `data` to a file of this folder."""
        try:
            file.write(data)
        except OSError as error:
            raise self._cannot_write(error) from None
        if self._advance is not None:
            self._advance(len(data))

    def close(self, file: BinaryIO) -> Path:
        """Close a file that is complete, and say where it is."""
        try:
            file.close()
        except OSError as error:
            raise self._cannot_write(error) from None
        self._open.remove(file)
        return Path(file.name)

    def discard(self, path: Path) -> None:
        """Remove a file that has served its turn."""
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
    """Leave nothing behind if what follows fails or is interrupted."""
    try:
        yield scratch
    except BaseException:
        scratch.remove()
        raise


def _remove(folder: Path, process: int) -> None:
    # A process that was forked has this object too, but the folder is not its own.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, told of bytes; silent where that is not a terminal."""
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
