"""What every benchmark shows and needs: a progress bar, and a folder for its results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sabal.errors import FileError

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def progress() -> Iterator[Progress]:
    """A progress bar on standard error; silent where that is not a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        yield bar


def results_folder(out: Path) -> Path:
    """The folder `out`, made unless it is there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"a folder for the results at {out}",
            error.strerror or str(error),
            "choose another --out",
        ) from None
    return out
