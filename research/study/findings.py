"""The findings of a study, collected for its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from research.study.ablation import Effect, effects
from research.study.analysis import (
    Areas,
    ConfigurationRanking,
    TaskTable,
    areas_of,
    ranking,
    task_table,
    win_matrix,
)
from research.study.configurations import DEFAULT
from research.study.definitions import Configuration, StudyTask, digest_of
from research.study.goals import Goal, goals_of, seed_goal
from research.study.planning import seeds_by_time
from research.study.run_records import StudyResults
from research.study.scopes import ScopeFigures, scope_figures, task_scopes


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The findings on the tasks and configurations of a report.

    Attributes
    ----------
    ranked, held_out, diagnostic : list of TaskTable
        The tables of the tasks. Held-out and diagnostic tasks do not count in the attributes below.
    known : ConfigurationRanking
        The ranking of the baselines and `sabal`.
    scopes : dict of str to ScopeFigures
        Figures of these for all tasks, each family, large batches, and held-out tasks.
    goals : list of Goal
        The goals of the default, with their figures.
    by_batch : dict of int to ConfigurationRanking
        The same for the tasks of each batch size.
    paper, candidates : ConfigurationRanking
        The same with the paper's method, and with the candidates.
    effects : list of Effect
        The effect of each change to the paper's method.
    unranked : list of str
        Configurations run on too few tasks to be ranked; they would reduce the ranking of all
        others to these tasks.
    names, wins : list of str, ndarray
        Number of tasks on which the row is better than the column; candidates come last.
    runs, stale, bad : int, dict, int
        Lines of the file that were used, that are stale, and that cannot be read.
    """

    ranked: list[TaskTable]
    held_out: list[TaskTable]
    diagnostic: list[TaskTable]
    known: ConfigurationRanking
    scopes: dict[str, ScopeFigures]
    goals: list[Goal]
    by_batch: dict[int, ConfigurationRanking]
    paper: ConfigurationRanking
    effects: list[Effect]
    candidates: ConfigurationRanking
    unranked: list[str]
    names: list[str]
    wins: np.ndarray
    runs: int
    stale: dict[str, int]
    bad: int

    @property
    def tables(self) -> list[TaskTable]:
        """The tables of all tasks."""
        return [*self.ranked, *self.held_out, *self.diagnostic]

    def document(self) -> dict[str, Any]:
        """Return the findings in a form that JSON can represent: null for what is infinite."""
        whole: dict[str, Any] = _finite({**asdict(self), "wins": self.wins.tolist()})
        return whole

    def worse_than_best(self, tables: Sequence[TaskTable]) -> list[TaskTable]:
        """Return the tasks on which `sabal` is worse than the best baseline."""
        found = []
        for table in tables:
            row = table.row(DEFAULT)
            if row is not None and row.to_best is not None and row.to_best.worse:
                found.append(table)
        return found

    def helped(self, tables: Sequence[TaskTable]) -> list[TaskTable]:
        """Return the tasks on which any configuration is better than random."""
        return [table for table in tables if table.winners]


def find(
    results: StudyResults,
    tasks: Sequence[StudyTask],
    configurations: Sequence[Configuration],
    held_out: Sequence[str],
) -> Findings:
    """Compare the runs; tasks in `held_out` and diagnostic ones are reported but not ranked."""
    tables = {task.name: task_table(task, configurations, results) for task in tasks}
    diagnostic = [task.name for task in tasks if task.family == "diagnostic"]
    ranked = [task for task in tasks if task.name not in (*held_out, *diagnostic)]
    # What knows the labels is no rival.
    oracle = next((each for each in configurations if each.role == "oracle"), None)
    configurations = [each for each in configurations if each.role != "oracle"]
    names = [task.name for task in ranked]
    areas = areas_of(results, ranked, configurations)
    twins = _twins(ranked, configurations)
    run = {name for found in areas.values() for name in found if name not in twins}
    everywhere = [each for each in configurations if each.applies_everywhere and each.name in run]
    known = [each.name for each in everywhere if each.role in ("baseline", "sabal")]
    paper = [each.name for each in everywhere if each.role == "paper"]
    candidates = [each.name for each in everywhere if each.role == "candidate"]
    narrow = [e.name for e in configurations if not e.applies_everywhere and e.name in run]
    firm, tried = _often_run(known, areas), _often_run(candidates, areas)
    printed = _often_run(paper, areas)
    compared = [*known, *paper, *narrow, *candidates]
    stale: dict[str, int] = {}
    for record in results.stale:
        key = f"{record.task}/{record.configuration}"
        stale[key] = stale.get(key, 0) + 1
    scopes = scope_figures(
        results, tasks, held_out, [each for each in everywhere if each.name in firm], oracle
    )
    return Findings(
        ranked=[table for name in names if (table := tables[name]) is not None],
        held_out=[t for name, t in tables.items() if t is not None and name in held_out],
        diagnostic=[t for name, t in tables.items() if t is not None and name in diagnostic],
        known=ranking(areas, names, firm),
        scopes=scopes,
        goals=_goals(results, tasks, configurations, held_out, scopes),
        by_batch={
            size: ranking(areas, [task.name for task in ranked if task.batch == size], firm)
            for size in sorted({task.batch for task in ranked})
        },
        paper=ranking(areas, names, [*firm, *printed] if printed else []),
        effects=effects(areas, names),
        candidates=ranking(areas, names, [*firm, *tried] if tried else []),
        unranked=[
            name for name in (*known, *paper, *candidates) if name not in (*firm, *printed, *tried)
        ],
        names=compared,
        wins=win_matrix(areas, names, compared),
        runs=sum(len(found) for found in results.runs.values()),
        stale=stale,
        bad=results.bad,
    )


def _goals(
    results: StudyResults,
    tasks: Sequence[StudyTask],
    configurations: Sequence[Configuration],
    held_out: Sequence[str],
    scopes: dict[str, ScopeFigures],
) -> list[Goal]:
    """Return the goals, last of all the number of seeds."""
    default = next((each for each in configurations if each.name == DEFAULT), None)
    if default is None:
        return []
    rule = seeds_by_time(tasks, configurations, results)
    chosen = task_scopes(tasks, held_out)
    seeds = [
        seed_goal(scopes[title], chosen[title], lambda task: rule(task, default))
        for title in ("all", "held out")
        if title in scopes
    ]
    return [*goals_of(scopes), *seeds]


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _often_run(names: Sequence[str], areas: Areas) -> list[str]:
    """Return the names run on at least a third as many tasks as the most frequent one."""
    counts = {name: sum(name in found for found in areas.values()) for name in names}
    return [name for name in names if 3 * counts[name] >= max(counts.values())]


def _twins(tasks: Sequence[StudyTask], configurations: Sequence[Configuration]) -> set[str]:
    """Return the candidates that equal `sabal` under another name and so have the same runs."""
    default = next((each for each in configurations if each.name == DEFAULT), None)
    if default is None or not tasks:
        return set()
    own = digest_of(tasks[0], default)
    return {
        each.name
        for each in configurations
        if each is not default and digest_of(tasks[0], each) == own
    }
