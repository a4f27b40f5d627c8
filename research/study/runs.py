"""The runs of a study, in parallel processes."""

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

from research.study.csv_lines import append_line
from research.study.definitions import (
    HARNESS,
    experiment_of,
)
from research.study.planning import StudyRun
from research.study.query_data import query_data
from research.study.query_loop import query_rounds
from research.study.run_records import RUNS_FILE, RunRecord, curve_figures
from research.study.seeded_draws import draws_of, first_per_class
from research.study.task_data import prepared
from sabal.core.checks import check_number, check_whole
from sabal.errors import SabalError, SabalWarning
from sabal.loop.journal import Journal
from sabal.selection import Selection
from sabal.simulate.curves import Point
from sabal.simulate.parallel import run_parallel
from sabal.simulate.runner import run_folder, run_points

STARTS = 3
"""How often the workers are started if one of them is killed."""


@dataclass(frozen=True, kw_only=True)
class StudyPoint(Point):
    """A point of a learning curve, with the data of its run or the error that stopped it.

    Its `strategy` holds task and configuration, since points are identified by strategy, seed and
    round.
    """

    train_seconds: float = 0.0
    data: str = ""
    error: str | None = None


@dataclass
class StudyOutcome:
    """The outcome of a start: runs finished, runs that failed with the reason, and runs left."""

    finished: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    left: int = 0


def run_study(
    runs: Sequence[StudyRun],
    folder: Path,
    *,
    data: Path | None = None,
    jobs: int = 1,
    minutes: float | None = None,
    on_round: Callable[[Point], None] = lambda point: None,
) -> StudyOutcome:
    """Do these runs, appending each to RUNS_FILE in `folder` when it is finished.

    A run that fails is reported, and the others continue, also when a worker is killed.

    Parameters
    ----------
    runs : sequence of StudyRun
        What to run.
    folder : Path
        The folder of RUNS_FILE.
    data : Path or None
        The folder with the NAME.npz files of the data sets.
    jobs : int
        Number of runs in parallel.
    minutes : float or None
        No run is started after this many minutes; those in progress are finished.
    on_round : callable, optional
        Called with every point of a learning curve.

    Returns
    -------
    StudyOutcome
        The runs finished, failed and left.
    """
    check_whole(jobs, "jobs")
    deadline = None
    if minutes is not None:
        deadline = time.time() + 60 * check_number(minutes, "minutes", above=0.0)
    collector = _Collector(runs, folder / RUNS_FILE, on_round)
    if runs and not any(_finish(collector, data, deadline, jobs) for _ in range(STARTS)):
        raise SabalError(
            "workers that come to the end of their runs",
            f"{STARTS} times one that was killed, perhaps for want of memory",
            "go on with fewer --jobs, or see what kills them; every finished run is kept",
        )
    outcome = collector.outcome
    outcome.left = len(runs) - outcome.finished - len(outcome.failed)
    return outcome


class _Collector:
    """Receives the points of all runs, and appends every run that is complete to a file."""

    def __init__(
        self, runs: Sequence[StudyRun], file: Path, on_round: Callable[[Point], None]
    ) -> None:
        self.file = file
        self.on_round = on_round
        self.outcome = StudyOutcome()
        self.by_title = {run.title: run for run in runs}
        self.points: dict[str, list[StudyPoint]] = {title: [] for title in self.by_title}

    def restart(self) -> list[StudyRun]:
        """Forget the points of incomplete runs, and return these runs."""
        todo = [self.by_title[title] for title in self.points if title not in self.outcome.failed]
        for run in todo:
            self.points[run.title].clear()
        return todo

    def receive(self, point: Point) -> None:
        """Take a point of any run."""
        # Points of other kinds do not come from `_points`.
        if isinstance(point, StudyPoint):
            title = f"{point.strategy}/seed {point.seed}"
            run = self.by_title[title]
            if point.error is not None:
                self.outcome.failed[title] = point.error
                return
            self.points[title].append(point)
            if len(self.points[title]) == len(run.task.labels):
                append_line(_record(run, self.points.pop(title)), self.file)
                self.outcome.finished += 1
        self.on_round(point)


def _finish(collector: _Collector, data: Path | None, deadline: float | None, jobs: int) -> bool:
    """Do all runs that are not complete; return whether the workers survived."""
    runs = [partial(_points, run, data, deadline) for run in collector.restart()]
    try:
        # A single job also gets a process with one thread: rounding depends on the number of
        # threads, and results must not depend on --jobs.
        run_parallel(runs, jobs, collector.receive)
    except BrokenProcessPool:
        return False
    return True


def _points(run: StudyRun, data: Path | None, deadline: float | None) -> Iterator[StudyPoint]:
    """Yield the rounds of one run; none after the deadline."""
    if deadline is not None and time.time() >= deadline:
        return
    name = f"{run.task.name}/{run.configuration.name}"
    try:
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore", SabalWarning)
            for point in _rounds(run, data, Path(folder)):
                yield replace(point, strategy=name)
    except Exception as error:
        # One failing combination must not end a night of runs. It is reported.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        yield StudyPoint(name, run.seed, -1, 0, 0.0, 0.0, error=reason)


def _query_rounds(run: StudyRun, data: Path | None) -> Iterator[StudyPoint]:
    found = query_data(run.task, run.seed, data)
    for each in query_rounds(run.task, run.configuration, found, run.seed):
        yield StudyPoint(
            run.configuration.name,
            run.seed,
            each.number,
            each.labels,
            each.accuracy,
            each.select_seconds,
            train_seconds=each.train_seconds,
            data=found.fingerprint,
        )


def _rounds(run: StudyRun, data: Path | None, folder: Path) -> Iterator[StudyPoint]:
    if run.task.by_query:
        yield from _query_rounds(run, data)
        return
    task, label = run.task, run.configuration.name
    dataset = prepared(task, run.seed, data)
    experiment = experiment_of(task, run.configuration, run.seed)
    journal = Journal(run_folder(folder, label, run.seed))
    if task.first == "per-class":
        pool, _ = experiment.split(len(dataset.x_train))
        rng = draws_of(run.seed, "first")
        # The loop continues with a first batch that it finds in its journal.
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


def _record(run: StudyRun, points: list[StudyPoint]) -> RunRecord:
    points = sorted(points, key=lambda point: point.round)
    figures = curve_figures(
        [point.labels for point in points], [point.accuracy for point in points]
    )
    return RunRecord(
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
