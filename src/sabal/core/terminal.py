"""Tables and progress lines in a terminal."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

PATIENCE_SECONDS = 1.0  # work that takes no longer than this shows no progress line


def print_table(table: Table) -> None:
    """Print a table; as wide as its content if the output is not a terminal."""
    console = Console()
    console.print(table) if console.is_terminal else Console(width=220).print(table)


@contextmanager
def waiting(what: str, console: Console | None = None) -> Iterator[None]:
    """Show a line on standard error, if it is a terminal, while the block takes long."""
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
