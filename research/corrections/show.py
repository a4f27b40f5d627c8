"""The corrections in a terminal: progress with time left, then the ladders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.table import Table

from research.corrections.measure import LADDERS, Line
from research.corrections.page import HEADER, cells, rung_rows
from sabal.core.terminal import print_table
from sabal.simulate.curves import Point
from sabal.simulate.terminal_report import progress_bar


@contextmanager
def progress(states: int) -> Iterator[Callable[[Point], None]]:
    """A bar over all rungs of so many states, and a random batch for each."""
    rungs = 1 + sum(len(ladder) for ladder, _ in LADDERS)
    with progress_bar(f"{states} states", states * rungs, unit="batches") as advance:
        yield lambda point: advance(point.strategy)


def print_rungs(lines: Sequence[Line]) -> None:
    """A table for each algorithm."""
    for number, rows in rung_rows(lines).items():
        table = Table(title=f"Algorithm {number}", box=SIMPLE_HEAD, padding=(0, 1))
        for name in HEADER:
            table.add_column(name, justify="left" if name == HEADER[0] else "right")
        for row in rows:
            table.add_row(*(cell.strip("*") for cell in cells(row)))
        print_table(table)
