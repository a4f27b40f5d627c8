"""Terminal output of a study: progress, the list of runs, and the findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from research.study.analysis import ConfigurationRanking
from research.study.configurations import DEFAULT
from research.study.definitions import Configuration, StudyTask
from research.study.findings import Findings
from research.study.goals import rank_text, share_text
from research.study.planning import SeedRule, StudyRun, open_runs, planned
from research.study.report_lines import difference_text
from research.study.run_records import StudyResults
from research.study.scope_lines import next_share
from sabal.core.terminal import print_table
from sabal.simulate.curves import Point
from sabal.simulate.terminal_report import progress_bar

MAX_PLACES = 15
"""Number of configurations of a ranking shown in a terminal; the report has all."""


@contextmanager
def study_progress(runs: Sequence[StudyRun]) -> Iterator[Callable[[Point], None]]:
    """Show a progress bar over all rounds of these runs."""
    total = sum(len(run.task.labels) for run in runs)
    with progress_bar(f"{len(runs)} runs", total) as advance:
        yield lambda point: advance(point.strategy)


def listed(
    tasks: Sequence[StudyTask],
    configurations: Sequence[Configuration],
    seeds: int | SeedRule,
    results: StudyResults,
    held_out: Sequence[str],
) -> dict[str, list[dict[str, Any]]]:
    """Return tasks and configurations with the number of their runs, planned and done.

    A run that two configurations share counts for both, and once for its task.
    """
    plan = planned(tasks, configurations, seeds)
    waiting = {run.title for run in open_runs(plan, results)}

    def of_task(task: StudyTask) -> dict[str, int]:
        mine = [run.title for run in plan if run.task is task]
        return {"done": sum(title not in waiting for title in mine), "runs": len(mine)}

    def of_configuration(each: Configuration) -> dict[str, int]:
        mine = planned(tasks, [each], seeds)
        return {"done": len(mine) - len(open_runs(mine, results)), "runs": len(mine)}

    return {
        "tasks": [
            {
                "task": task.name,
                "family": task.family,
                "data": task.dataset,
                "learner": task.model,
                "first": task.initial,
                "batch": task.batch,
                "rounds": task.rounds,
                "variant": task.variant,
                "held out": task.name in held_out,
                **of_task(task),
            }
            for task in tasks
        ],
        "configurations": [
            {
                "configuration": each.name,
                "role": each.role,
                "strategy": each.strategy,
                "options": each.options,
                "weighted": each.weighted,
                **of_configuration(each),
            }
            for each in configurations
        ],
    }


def print_listed(lists: dict[str, list[dict[str, Any]]]) -> None:
    """Print tasks and configurations as two tables."""
    for title, rows in lists.items():
        table = Table(title=title.capitalize(), box=SIMPLE_HEAD, padding=(0, 1))
        for name in rows[0] if rows else ():
            right = isinstance(rows[0][name], int) and not isinstance(rows[0][name], bool)
            table.add_column(name, justify="right" if right else "left")
        for row in rows:
            table.add_row(*(Text(_cell(value)) for value in row.values()))
        print_table(table)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, dict):
        return " ".join(f"{name}={given}" for name, given in value.items())
    return str(value)


def print_findings(findings: Findings) -> None:
    """Print labels saved, both rankings, and the number of tasks on which active learning helps."""
    _print_saved(findings)
    _print_ranking("Mean ranks", findings.known)
    _print_ranking("Mean ranks with the candidates", findings.candidates)
    for title, tables in (("Ranked", findings.ranked), ("Held-out", findings.held_out)):
        if tables:
            helped = findings.helped(tables)
            own = sum(DEFAULT in table.winners for table in helped)
            print(
                f"{title} tasks: something is significantly better than random on {len(helped)} "
                f"of {len(tables)}, {DEFAULT} on {own} of these."
            )


def _print_saved(findings: Findings) -> None:
    if not findings.scopes:
        return
    table = Table(title="Labels needed for random's final accuracy", box=SIMPLE_HEAD)
    for name in ("", "tasks", DEFAULT, "next", "rank by area", "rank by final accuracy"):
        table.add_column(name, justify="right" if name else "left")
    for title, each in findings.scopes.items():
        share, other = share_text(each.median_share(DEFAULT)), next_share(each)
        ranks = rank_text(each.by_area), rank_text(each.by_final)
        table.add_row(title, str(each.tasks), share, *(Text(t) for t in (other, *ranks)))
    print_table(table)
    met = sum(goal.met for goal in findings.goals)
    print(f"{met} of {len(findings.goals)} goals are met; they are in study.md.")


def _print_ranking(title: str, ranking: ConfigurationRanking) -> None:
    if not ranking.places:
        return
    table = Table(title=f"{title}: {len(ranking.tasks)} tasks", box=SIMPLE_HEAD, padding=(0, 1))
    for name in ("configuration", "mean rank", "95 % interval", f"area to {DEFAULT}"):
        table.add_column(name, justify="left" if name == "configuration" else "right")
    for place in ranking.places[:MAX_PLACES]:
        table.add_row(
            place.configuration,
            f"{place.rank:.2f}",
            "" if place.low is None else f"{place.low:.2f} to {place.high:.2f}",
            difference_text(place.to_default).strip("*"),
        )
    print_table(table)
    if len(ranking.places) > MAX_PLACES:
        print(f"... and {len(ranking.places) - MAX_PLACES} more in study.md")
