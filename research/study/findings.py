"""Everything that a study found, gathered for its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from research.study.ablation import Effect, effects
from research.study.analysis import (
    Areas,
    Ranking,
    TaskTable,
    areas_of,
    ranking,
    task_table,
    win_matrix,
)
from research.study.configurations import DEFAULT
from research.study.definitions import Configuration, Task, digest_of
from research.study.records import Results


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What came of the tasks and configurations that were asked for.

    ranked, held_out: what was run on which task; only the former count in what follows.
    known: the ranking of the baselines and `sabal`; by_batch: the same on tasks with batches of one
        size; paper: with the paper's method, where that was run; candidates: with the candidates
        instead.
    effects: what each change to the paper's method brings.
    unranked: what was run on too few tasks to be ranked: it would take all others down with it.
    names, wins: who beats whom, on how many tasks; the candidates last.
    runs, stale, bad: lines of the file that were used, that are stale, that cannot be read.
    """

    ranked: list[TaskTable]
    held_out: list[TaskTable]
    known: Ranking
    by_batch: dict[int, Ranking]
    paper: Ranking
    effects: list[Effect]
    candidates: Ranking
    unranked: list[str]
    names: list[str]
    wins: np.ndarray
    runs: int
    stale: dict[str, int]
    bad: int

    def document(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        return {**asdict(self), "wins": self.wins.tolist()}

    def worse_than_best(self, tables: Sequence[TaskTable]) -> list[TaskTable]:
        """The tasks on which `sabal` is worse than the best baseline."""
        found = []
        for table in tables:
            row = table.row(DEFAULT)
            if row is not None and row.to_best is not None and row.to_best.worse:
                found.append(table)
        return found

    def helped(self, tables: Sequence[TaskTable]) -> list[TaskTable]:
        """The tasks on which anything is better than random."""
        return [table for table in tables if table.winners]


def find(
    results: Results,
    tasks: Sequence[Task],
    configurations: Sequence[Configuration],
    held_out: Sequence[str],
) -> Findings:
    """Compare what was run; tasks in `held_out` are looked at, and never ranked."""
    tables = {task.name: task_table(task, configurations, results) for task in tasks}
    ranked = [task for task in tasks if task.name not in held_out]
    names = [task.name for task in ranked]
    areas = areas_of(results, ranked, configurations)
    twins = _twins(ranked, configurations)
    run = {name for found in areas.values() for name in found if name not in twins}
    everywhere = [each for each in configurations if each.everywhere and each.name in run]
    known = [each.name for each in everywhere if each.role in ("baseline", "sabal")]
    paper = [each.name for each in everywhere if each.role == "paper"]
    candidates = [each.name for each in everywhere if each.role == "candidate"]
    narrow = [e.name for e in configurations if not e.everywhere and e.name in run]
    firm, tried = _often_run(known, areas), _often_run(candidates, areas)
    printed = _often_run(paper, areas)
    compared = [*known, *paper, *narrow, *candidates]
    stale: dict[str, int] = {}
    for record in results.stale:
        key = f"{record.task}/{record.configuration}"
        stale[key] = stale.get(key, 0) + 1
    return Findings(
        ranked=[table for name in names if (table := tables[name]) is not None],
        held_out=[t for name, t in tables.items() if t is not None and name in held_out],
        known=ranking(areas, names, firm),
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


def _often_run(names: Sequence[str], areas: Areas) -> list[str]:
    """Those that were run on at least a third as many tasks as any of them."""
    counts = {name: sum(name in found for found in areas.values()) for name in names}
    return [name for name in names if 3 * counts[name] >= max(counts.values())]


def _twins(tasks: Sequence[Task], configurations: Sequence[Configuration]) -> set[str]:
    """The candidates that are `sabal` as it is, under another name: they have the same runs."""
    default = next((each for each in configurations if each.name == DEFAULT), None)
    if default is None or not tasks:
        return set()
    own = digest_of(tasks[0], default)
    return {
        each.name
        for each in configurations
        if each is not default and digest_of(tasks[0], each) == own
    }
