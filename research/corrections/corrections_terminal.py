"""Terminal output of the corrections: a progress bar, then a table for each algorithm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.table import Table

from research.corrections.corrections_page import HEADER, cells, variant_rows
from research.corrections.variant_measurements import ALGORITHMS, VariantRecord
from sabal.core.terminal import print_table
from sabal.simulate.curves import Point
from sabal.simulate.terminal_report import progress_bar


@contextmanager
def variants_progress(states: int) -> Iterator[Callable[[Point], None]]:
    """Show a progress bar over all variants, and one random batch, of `states` states."""
    batches = 1 + sum(len(variants) for variants, _ in ALGORITHMS)
    with progress_bar(f"{states} states", states * batches, unit="batches") as advance:
        yield lambda point: advance(point.strategy)


def print_variants(records: Sequence[VariantRecord]) -> None:
    """Print a table for each algorithm."""
    for number, rows in variant_rows(records).items():
        table = Table(title=f"Algorithm {number}", box=SIMPLE_HEAD, padding=(0, 1))
        for name in HEADER:
            table.add_column(name, justify="left" if name == HEADER[0] else "right")
        for row in rows:
            table.add_row(*(cell.strip("*") for cell in cells(row)))
        print_table(table)
