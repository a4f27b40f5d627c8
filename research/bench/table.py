"""The results of a benchmark as tables in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from research.bench.catalogue import PEERS, Peer
from research.bench.rows import MEGABYTE, Row, comparisons

if TYPE_CHECKING:
    from rich.table import Table


def results_table(rows: Sequence[Row]) -> Table:
    """Ours beside each rival, job by job: seconds, megabytes, and how many times ours they are."""
    from rich.table import Table

    table = Table(title="Time and memory of a selection (x: the rival's, in multiples of ours)")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in WORDS else "right")
    for cells in _cells(rows):
        table.add_row(*cells)
    return table


def results_markdown(rows: Sequence[Row]) -> str:
    """The same table for a page of documentation."""
    head = "| " + " | ".join(COLUMNS) + " |\n"
    rule = "|" + "|".join("---" if name in WORDS else "---:" for name in COLUMNS) + "|\n"
    return head + rule + "".join("| " + " | ".join(cells) + " |\n" for cells in _cells(rows))


COLUMNS = (
    "job", "n", "b", "ours s", "ours MB", "rival", "s", "MB", "time x", "memory x", "note",
)  # fmt: skip
WORDS = ("job", "rival", "note")


def _cells(rows: Sequence[Row]) -> Iterator[list[str]]:
    before = None
    for pair in comparisons(rows):
        ours, peer = pair.ours, pair.peer
        size = (ours.job, ours.n, ours.b)
        # What a row shares with the one above is said once.
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
    """Which rival does which job, with which of its methods, and if not, why not."""
    from rich.table import Table

    table = Table(title="Who does what")
    table.add_column("job")
    for peer in peers:
        table.add_column(peer.name)
    for job in jobs:
        table.add_row(job, *(peer.coverage(job) for peer in peers))
    return table


def _of_ours(row: Row) -> list[str]:
    return [row.job, f"{row.n:,}", f"{row.b:,}", _seconds(row), _megabytes(row)]


def _seconds(row: Row) -> str:
    return row.status if row.seconds is None else f"{row.seconds:.3g}"


def _megabytes(row: Row) -> str:
    return "" if row.peak_bytes is None else f"{row.peak_bytes / MEGABYTE:,.1f}"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3g}"
