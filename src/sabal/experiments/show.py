"""Simulations in a terminal: progress with time left, then the table and the verdict."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from sabal.experiments.curves import Point, summarise, verdict
from sabal.experiments.report import SUMMARY_HEADER, summary_cells
from sabal.experiments.runner import Experiment
from sabal.show import print_table


@contextmanager
def progress(experiment: Experiment) -> Iterator[Callable[[Point], None]]:
    """A bar over all rounds of all runs, on standard error; silent when that is no terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} rounds"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        total = len(experiment.strategies) * experiment.seeds * (experiment.rounds + 1)
        task = bar.add_task(experiment.dataset, total=total)
        yield lambda point: bar.advance(task)


def print_results(points: Sequence[Point], folder: Path, *, as_json: bool) -> None:
    """The table of areas, the verdict, and where the rest is."""
    summaries = summarise(points)
    if as_json:
        found = {"summaries": [asdict(s) for s in summaries], "verdict": verdict(summaries)}
        print(json.dumps({**found, "report": str((folder / "report.html").resolve())}))
        return
    table = Table(title="Areas under the learning curves")
    for name in SUMMARY_HEADER:
        table.add_column(name, justify="left" if name == "strategy" else "right")
    for summary in summaries:
        table.add_row(*summary_cells(summary))
    print_table(table)
    console = Console()
    console.print(verdict(summaries), style="bold", markup=False, highlight=False)
    console.print(
        f"The report is at {(folder / 'report.html').resolve()}", markup=False, soft_wrap=True
    )
