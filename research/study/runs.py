"""Running a study: which runs there are and in what order, and each of them, side by side."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from research.study.data import draws_of, first_per_class, prepared
from research.study.definitions import (
    HARNESS,
    Configuration,
    Task,
    digest_of,
    experiment_of,
)
from research.study.lines import append_line
from research.study.records import FILE, Record, Results, curve_figures
from sabal.core.checks import check_number, check_whole
from sabal.errors import SabalError, SabalWarning
from sabal.loop.journal import Journal
from sabal.selection import Selection
from sabal.simulate.curves import Point
from sabal.simulate.parallel import run_parallel
from sabal.simulate.runner import run_folder, run_points

STARTS = 3
"""How often workers are started, when one of them is killed."""


@dataclass(frozen=True)
class Run:
    """A task, a configuration and a seed."""

    task: Task
    configuration: Configuration
    seed: int

    @property
    def digest(self) -> str:
        """See `digest_of`."""
        return digest_of(self.task, self.configuration)

    @property
    def title(self) -> str:
        """What to call it."""
        return f"{self.task.name}/{self.configuration.name}/seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class StudyPoint(Point):
    """A point of a learning curve that also knows its run's data, and what went wrong.

    strategy: task and configuration, since points are told apart by strategy, seed and round.
    """

    train_seconds: float = 0.0
    data: str = ""
    error: str | None = None


def planned(
    tasks: Sequence[Task], configurations: Sequence[Configuration], seeds: int
) -> list[Run]:
    """Every run, in an order that can be stopped anywhere with little out of balance.

    Seed after seed; of each, all but the candidates first; of these, task after task. What two
    configurations agree on is one run.
    """
    check_whole(seeds, "seeds")
    runs: dict[tuple[str, str, int], Run] = {}
    for seed in range(seeds):
        for candidates in (False, True):
            for task in tasks:
                for each in configurations:
                    if (each.role == "candidate") == candidates and each.suits(task):
                        run = Run(task, each, seed)
                        runs.setdefault((task.name, run.digest, seed), run)
    return list(runs.values())


def open_runs(runs: Sequence[Run], results: Results) -> list[Run]:
    """Those that the results do not hold yet."""
    return [run for run in runs if run.seed not in results.of(run.task, run.configuration)]


@dataclass
class Outcome:
    """What a start of the study came to: runs finished, runs that failed and why, runs left."""

    finished: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    left: int = 0


def run_study(
    runs: Sequence[Run],
    folder: Path,
    *,
    data: Path | None = None,
    jobs: int = 1,
    minutes: float | None = None,
    on_round: Callable[[Point], None] = lambda point: None,
) -> Outcome:
    """Do these runs and add each to FILE in `folder` when it is finished.

    data: where NAME.npz files of the data sets are.
    minutes: after so many no run is begun; those under way are finished.
    A run that fails is told of, and the others go on. So they do when a worker is killed.
    """
    check_whole(jobs, "jobs")
    deadline = None
    if minutes is not None:
        deadline = time.time() + 60 * check_number(minutes, "minutes", above=0.0)
    outcome = Outcome()
    by_title = {run.title: run for run in runs}
    points: dict[str, list[StudyPoint]] = {title: [] for title in by_title}

    def hear(point: Point) -> None:
        # Points of other kinds do not come from `_points`.
        if isinstance(point, StudyPoint):
            title = f"{point.strategy}/seed {point.seed}"
            run = by_title[title]
            if point.error is not None:
                outcome.failed[title] = point.error
                return
            points[title].append(point)
            if len(points[title]) == len(run.task.labels):
                append_line(_record(run, points.pop(title)), folder / FILE)
                outcome.finished += 1
        on_round(point)

    def run_parallel_anew() -> bool:
        """Whether all that is not done yet was done."""
        todo = [by_title[title] for title in points if title not in outcome.failed]
        for run in todo:
            points[run.title].clear()
        try:
            # Also a single job has a process and a thread of its own: one thread rounds as another
            # number does not, and results must not depend on --jobs.
            run_parallel([partial(_points, run, data, deadline) for run in todo], jobs, hear)
        except BrokenProcessPool:
            return False
        return True

    if runs and not any(run_parallel_anew() for _ in range(STARTS)):
        raise SabalError(
            "workers that come to the end of their runs",
            f"{STARTS} times one that was killed, perhaps for want of memory",
            "go on with fewer --jobs, or see what kills them; every finished run is kept",
        )
    outcome.left = len(runs) - outcome.finished - len(outcome.failed)
    return outcome


def _points(run: Run, data: Path | None, deadline: float | None) -> Iterator[StudyPoint]:
    """The rounds of one run; none once the time is up."""
    if deadline is not None and time.time() >= deadline:
        return
    name = f"{run.task.name}/{run.configuration.name}"
    try:
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore", SabalWarning)
            for point in _rounds(run, data, Path(folder)):
                yield replace(point, strategy=name)
    except Exception as error:
        # One strategy that cannot cope with one task must not end a night of runs. It is told of.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        yield StudyPoint(name, run.seed, -1, 0, 0.0, 0.0, error=reason)


def _rounds(run: Run, data: Path | None, folder: Path) -> Iterator[StudyPoint]:
    task, label = run.task, run.configuration.name
    dataset = prepared(task, run.seed, data)
    experiment = experiment_of(task, run.configuration, run.seed)
    journal = Journal(run_folder(folder, label, run.seed))
    if task.first == "per-class":
        pool, _ = experiment.split(len(dataset.x_train))
        rng = draws_of(run.seed, "first")
        # The loop goes on with a first batch that it finds in its journal.
        journal.write_asked(0, _batch(first_per_class(dataset.y_train[pool], task.initial, rng)))
    fingerprint = dataset.fingerprint()
    for point in run_points(experiment, dataset, folder, label, run.seed):
        done = journal.done(point.round) or {}
        yield StudyPoint(
            **vars(point), train_seconds=float(done.get("train_seconds", 0.0)), data=fingerprint
        )


def _batch(items: np.ndarray) -> Selection:
    return Selection(
        indices=items,
        ids=items,
        weights=np.ones(items.size),
        scores=np.zeros(items.size),
        strategy="per-class",
        evidence={},
    )


def _record(run: Run, points: list[StudyPoint]) -> Record:
    points = sorted(points, key=lambda point: point.round)
    figures = curve_figures(
        [point.labels for point in points], [point.accuracy for point in points]
    )
    return Record(
        task=run.task.name,
        configuration=run.configuration.name,
        digest=run.digest,
        seed=run.seed,
        select_seconds=round(sum(point.select_seconds for point in points), 3),
        train_seconds=round(sum(point.train_seconds for point in points), 3),
        harness=HARNESS,
        data=points[0].data,
        **figures,
    )
