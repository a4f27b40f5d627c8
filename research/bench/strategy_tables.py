"""Tables of the strategies, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from research.bench.catalogue import PEERS, Peer
from research.bench.strategy_rows import MEGABYTE, StrategyMeasurement, comparisons

if TYPE_CHECKING:
    from rich.table import Table


def results_table(rows: Sequence[StrategyMeasurement]) -> Table:
    """Return a table with the time and memory of Sabal and of each other library, by job."""
    from rich.table import Table

    table = Table(title="Time and memory of a selection (x: the rival's, in multiples of ours)")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in WORDS else "right")
    for cells in _cells(rows):
        table.add_row(*cells)
    return table


def results_markdown(rows: Sequence[StrategyMeasurement]) -> str:
    """Return the same table in Markdown."""
    head = "| " + " | ".join(COLUMNS) + " |\n"
    rule = "|" + "|".join("---" if name in WORDS else "---:" for name in COLUMNS) + "|\n"
    return head + rule + "".join("| " + " | ".join(cells) + " |\n" for cells in _cells(rows))


COLUMNS = (
    "job", "n", "b", "ours s", "ours MB", "rival", "s", "MB", "time x", "memory x", "note",
)  # fmt: skip
WORDS = ("job", "rival", "note")


def _cells(rows: Sequence[StrategyMeasurement]) -> Iterator[list[str]]:
    before = None
    for pair in comparisons(rows):
        ours, peer = pair.ours, pair.peer
        size = (ours.job, ours.n, ours.b)
        # Cells shared with the row above are left empty.
        shared = ["", "", "", "", ""] if size == before else _of_ours(ours)
        notes = [ours.note] if size != before else []
        before = size
        if peer is None:
            yield [*shared, "-", "", "", "", "", "; ".join(filter(None, notes))]
            continue
        notes.append(peer.note)
        yield [
            *shared,
            f"{peer.tool} {peer.method}",
            _seconds(peer),
            _megabytes(peer),
            _times(pair.time_ratio),
            _times(pair.memory_ratio),
            "; ".join(filter(None, notes)),
        ]


def coverage_table(jobs: Sequence[str], peers: Sequence[Peer] = PEERS) -> Table:
    """Return a table with the methods of each library for each job, or why it has none."""
    from rich.table import Table

    table = Table(title="Methods by library")
    table.add_column("job")
    for peer in peers:
        table.add_column(peer.name)
    for job in jobs:
        table.add_row(job, *(peer.coverage(job) for peer in peers))
    return table


def _of_ours(row: StrategyMeasurement) -> list[str]:
    return [row.job, f"{row.n:,}", f"{row.b:,}", _seconds(row), _megabytes(row)]


def _seconds(row: StrategyMeasurement) -> str:
    return row.status if row.seconds is None else f"{row.seconds:.3g}"


def _megabytes(row: StrategyMeasurement) -> str:
    return "" if row.peak_bytes is None else f"{row.peak_bytes / MEGABYTE:,.1f}"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3g}"
