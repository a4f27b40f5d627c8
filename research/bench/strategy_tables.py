"""Tables of the strategies, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from research.bench.catalogue import PEERS, Peer
from research.bench.strategy_rows import (
    MEGABYTE,
    RivalComparison,
    StrategyMeasurement,
    comparisons,
)

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


TIMES = 5.0
SECONDS = 0.005
"""The goal: so many times as fast as a rival, or done within these seconds."""

_RANKING = "one maximum and one ranking in every library; ours also checks its input"
REASONS = {
    "random": _RANKING,
    "entropy": _RANKING,
    "margin": _RANKING,
    "least-confidence": _RANKING,
    "bald": "the logarithms of all samples take most of the time in every library",
    "power-bald": "the logarithms of all samples take most of the time in every library",
    "bait": "the rival's is for regression with one output, a tenth of the columns",
    "bayesian-coreset": "reading the pool takes most of the time in both",
    "kcenter": "the first pass over the pool takes most of the time, with exact distances",
    "typiclust": "k-means takes most of the time in both",
    "batchbald": "the joint probabilities take most of the time; a rival may draw fewer",
}
"""Why the goal is missed, by job."""


def meets_goal(pair: RivalComparison) -> bool | None:
    """Return whether a comparison meets the goal; None if one of the two did not finish."""
    if pair.time_ratio is None:
        return None
    return pair.time_ratio >= TIMES or (pair.ours.seconds or 0.0) <= SECONDS


def peers_page(
    rows: Sequence[StrategyMeasurement],
    machine: Mapping[str, Any],
    settings: Mapping[str, Any],
    picture: str,
) -> str:
    """Return the page: the goal, the comparisons that miss it, and all measurements."""
    finished = [pair for pair in comparisons(rows) if meets_goal(pair) is not None]
    missed = [pair for pair in finished if not meets_goal(pair)]
    sizes = " and ".join(f"{n:,}" for n in settings["sizes"])
    budgets = " and ".join(f"{b:,}" for b in settings["budgets"])
    parts = [
        "# Time and memory of a selection, beside other libraries",
        f"    {machine['command']}",
        f"{machine['date']}, {machine['cores']} cores ({machine['processor']}). n = {sizes}; b = "
        f"{budgets}; D = {settings['dimensions']}, C = {settings['classes']}, "
        f"{settings['posterior_samples']} posterior samples, float32; {settings['limit']:g} s for "
        "a selection, and a method that takes longer is not tried at larger sizes. Each selection "
        'has a process of its own; checks of the input are part of ours. "x": the figure of the '
        "rival in multiples of ours.",
        f"![Time and memory against the size of the pool]({picture})",
        f"The goal: at every size where a rival finishes, ours is at least {TIMES:g} times as "
        f"fast, or done within {1000 * SECONDS:g} ms. {len(finished) - len(missed)} of "
        f"{len(finished)} comparisons meet it. By strategy, with the smallest and the largest "
        "factor:",
        _summary(finished),
    ]
    if missed:
        parts.append(_missed(missed))
    return "\n\n".join([*parts, results_markdown(rows)])


def _summary(finished: Sequence[RivalComparison]) -> str:
    lines = [
        "| strategy | rival | sizes | goal met | time x | memory x |",
        "|---|---|---:|---:|---:|---:|",
    ]
    groups: dict[tuple[str, str], list[RivalComparison]] = {}
    for pair in finished:
        assert pair.peer is not None  # noqa: S101  # it finished
        groups.setdefault((pair.ours.job, f"{pair.peer.tool} {pair.peer.method}"), []).append(pair)
    for (job, rival), pairs in groups.items():
        met = sum(bool(meets_goal(pair)) for pair in pairs)
        times = _range([pair.time_ratio for pair in pairs])
        memory = _range([pair.memory_ratio for pair in pairs])
        lines.append(f"| {job} | {rival} | {len(pairs)} | {met} | {times} | {memory} |")
    return "\n".join(lines)


def _missed(missed: Sequence[RivalComparison]) -> str:
    lines = [
        "Where the goal is missed, and why:",
        "",
        "| strategy | sizes | why |",
        "|---|---:|---|",
    ]
    for job in dict.fromkeys(pair.ours.job for pair in missed):
        count = sum(pair.ours.job == job for pair in missed)
        lines.append(f"| {job} | {count} | {REASONS.get(job, '')} |")
    return "\n".join(lines)


def _range(values: Sequence[float | None]) -> str:
    there = [value for value in values if value is not None]
    if not there:
        return ""
    low, high = min(there), max(there)
    return f"{low:.2g}" if len(there) == 1 else f"{low:.2g} to {high:.3g}"


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
