"""Tables in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table


def print_table(table: Table) -> None:
    """A table as wide as its content where the output is no terminal."""
    console = Console()
    console.print(table) if console.is_terminal else Console(width=220).print(table)
