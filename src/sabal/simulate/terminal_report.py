"""Simulations in a terminal: progress with the remaining time, then the table and the advice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from sabal.core.terminal import print_table
from sabal.simulate.curves import Point, Summary, summarise
from sabal.simulate.early_stop import early_stop
from sabal.simulate.experiment import Experiment
from sabal.simulate.html_report import SUMMARY_HEADER, summary_cells
from sabal.simulate.recommendation import recommend
from sabal.simulate.verdict import verdict

SHORT_HEADER = {
    "final accuracy": "final",
    "seconds a selection": "seconds to select",
    "MB a selection": "MB to select",
}
"""Shorter columns for the width of a terminal."""


class TimeLeft(ProgressColumn):
    """The remaining time, estimated from the mean of the rounds done since the start.

    Rounds that were in the folder already took no time and are left out. (The column of rich looks
    at the last half minute, in which a network may not finish any round.)
    """

    def __init__(self, already_done: int) -> None:
        super().__init__()
        self.already_done = already_done

    def render(self, task: Task) -> Text:
        """Return the time as h:mm:ss, or dashes before the first round is done."""
        seconds = self.seconds(task.completed, task.total or 0.0, task.finished_time, task.elapsed)
        if seconds is None:
            return Text("-:--:--", style="progress.remaining")
        return Text(str(timedelta(seconds=round(seconds))), style="progress.remaining")

    def seconds(
        self, completed: float, total: float, finished: float | None, elapsed: float | None
    ) -> float | None:
        """Return the remaining seconds; None before the first round is done."""
        if finished is not None:
            return 0.0
        done_now = completed - self.already_done
        if done_now <= 0 or not elapsed:
            return None
        return elapsed / done_now * (total - completed)


@contextmanager
def progress(experiment: Experiment, already_done: int = 0) -> Iterator[Callable[[Point], None]]:
    """Show a bar over all rounds of all runs; yield a function to call with every point."""
    total = len(experiment.strategies) * experiment.seeds * (experiment.rounds + 1)
    with progress_bar(experiment.dataset, total, already_done=already_done) as advance:
        yield lambda point: advance(None)


@contextmanager
def progress_bar(
    title: str, total: int, *, unit: str = "rounds", already_done: int = 0
) -> Iterator[Callable[[str | None], None]]:
    """Show a bar on a terminal; yield a function to call after every step with a title or None."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed}}/{{task.total}} {unit}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeLeft(already_done),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield lambda title: bar.update(task, advance=1, description=title)


def _in_percent(summary: Summary) -> dict[str, Any]:
    """Return a summary with its accuracy in the unit of its areas."""
    return asdict(summary) | {"final_accuracy": 100.0 * summary.final_accuracy}


def print_results(points: Sequence[Point], folder: Path, *, as_json: bool) -> None:
    """Print the table of areas, the path of the report, the verdict and the strategy to use."""
    summaries = summarise(points)
    advice, report = recommend(points), (folder / "report.html").resolve()
    stop = early_stop(points, advice.strategy)
    if as_json:
        found = {
            "unit": "percent",
            "summaries": [_in_percent(summary) for summary in summaries],
            "verdict": verdict(summaries),
            "recommendation": asdict(advice),
            "early_stop": None if stop is None else asdict(stop),
            "report": str(report),
        }
        print(json.dumps(found))
        return
    # Narrow enough for 80 columns; the name of a strategy is never cut.
    table = Table(title="Areas under the learning curves", box=SIMPLE_HEAD, padding=(0, 1))
    for name in SUMMARY_HEADER:
        if name == "strategy":
            table.add_column(name, no_wrap=True)
        else:
            table.add_column(SHORT_HEADER.get(name, name), justify="right", overflow="fold")
    for summary in summaries:
        table.add_row(*summary_cells(summary))
    print_table(table)
    console = Console()
    console.print(f"The report is at {report}", markup=False, soft_wrap=True)
    stopping = [] if stop is None else [stop.text]
    for line in (verdict(summaries), *stopping, advice.text):
        console.print(line, style="bold", markup=False, highlight=False)
