"""What is being done, and for how long already, for whoever waits at a terminal."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

PATIENCE_SECONDS = 1.0
"""What takes no longer than this needs no words."""


@contextmanager
def waiting(what: str, console: Console | None = None) -> Iterator[None]:
    """A line on standard error while the block takes long, if that is a terminal."""
    console = Console(stderr=True) if console is None else console
    if not console.is_terminal:
        yield
        return
    line = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    line.add_task(what, total=None)
    later = threading.Timer(PATIENCE_SECONDS, line.start)
    later.start()
    try:
        yield
    finally:
        later.cancel()
        later.join()
        line.stop()
