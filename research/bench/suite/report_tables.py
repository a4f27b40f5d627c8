"""Tables for a terminal and for a page of documentation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class ReportTable:
    """A table; the columns named in `words` hold text, the others numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[str] = ()
    note: str = ""

    def table(self) -> Table:
        """Return the table for a terminal."""
        from rich.table import Table

        table = Table(title=self.title, caption=self.note or None)
        for name in self.columns:
            table.add_column(name, justify="left" if name in self.words else "right")
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        """Return the table in Markdown."""
        rule = ("---" if name in self.words else "---:" for name in self.columns)
        lines = [self.columns, list(rule), *self.rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return "\n\n".join(filter(None, (f"## {self.title}", self.note, body))) + "\n"


def number(value: float | None, how: str = ".3g") -> str:
    """Format a number in few digits; None is empty."""
    return "" if value is None else format(value, how)


def megabytes(value: float | None) -> str:
    """Format bytes as megabytes."""
    return "" if value is None else f"{value / 1e6:,.1f}"


def percent(value: float | None, digits: int = 1) -> str:
    """Format a fraction in percent."""
    return "" if value is None else f"{100 * value:.{digits}f}"
