"""The runs of the tables: a row of a table with a seed, in processes with one thread each.

WORK/DATASET/DIGEST holds the journal of a run in progress, which resumes after its last complete
round, and WORK/DATASET/first the models that all strategies of a seed start from.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from research.bench.machine import machine_facts
from research.reproduce.first_query import time_first_query
from research.reproduce.preset import Preset
from research.reproduce.preset_data import data_of
from research.reproduce.result_files import (
    TableRunRecord,
    digest_of,
    experiment_of,
    first_model_digest,
    options_of,
)
from sabal.core.files import make_folder
from sabal.errors import SabalError, SabalWarning
from sabal.loop import Journal, Plan, SimulatedOracle, run_rounds
from sabal.simulate.curves import Point
from sabal.simulate.datasets.catalog import Dataset, load
from sabal.simulate.parallel import run_parallel
from sabal.simulate.runner import make_learner, run_folder, run_points

STARTS = 3
"""How often the workers are started if one of them is killed."""


@dataclass(frozen=True, kw_only=True)
class TableRun:
    """A row of a table with a seed.

    Parameters
    ----------
    table, scale : str
        The table, and the scale of the preset.
    preset : Preset
        The data set and all settings.
    row : str
        The strategy.
    seed : int
        The seed.
    timed : bool
        Whether the first query is timed, rather than a learning curve measured.
    """

    table: str
    scale: str
    preset: Preset
    row: str
    seed: int
    timed: bool = False

    @property
    def digest(self) -> str:
        """The digest of its settings."""
        return digest_of(self.preset, self.row, timed=self.timed)

    @property
    def name(self) -> str:
        """The row in messages."""
        return f"{self.table}/{self.preset.dataset}/{self.row}"

    @property
    def title(self) -> str:
        """The run in messages."""
        return f"{self.name}/seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class RunPoint(Point):
    """A round of a run; the last carries its record, and a failed run its error."""

    record: TableRunRecord | None = None
    error: str | None = None


@dataclass
class RunOutcome:
    """The outcome of a start: runs finished, runs that failed with the reason, and runs left."""

    finished: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    left: int = 0


def do_runs(
    runs: Sequence[TableRun],
    work: Path,
    on_record: Callable[[TableRun, TableRunRecord], None],
    *,
    data_dir: str | None = None,
    jobs: int = 1,
    minutes: float | None = None,
    on_round: Callable[[Point], None] = lambda point: None,
) -> RunOutcome:
    """Do these runs; a run that fails is reported, and the others continue.

    Parameters
    ----------
    runs : sequence of TableRun
        What to run, in this order.
    work : Path
        The folder for runs in progress.
    on_record : callable
        Called with every finished run and its record.
    data_dir : str or None
        The folder with the NAME.npz files of the data sets.
    jobs : int
        Number of runs in parallel.
    minutes : float or None
        No run is started after this many minutes.
    on_round : callable
        Called with every round.

    Returns
    -------
    RunOutcome
        The runs finished, failed and left.
    """
    deadline = None if minutes is None else time.time() + 60 * minutes
    outcome = RunOutcome()
    todo = {run.title: run for run in runs}

    def receive(point: Point) -> None:
        if isinstance(point, RunPoint):
            title = f"{point.strategy}/seed {point.seed}"
            if point.error is not None:
                outcome.failed[title] = point.error
                del todo[title]
                return
            if point.record is not None:
                run = todo.pop(title)
                on_record(run, point.record)
                shutil.rmtree(_run_journal(run, work), ignore_errors=True)
                outcome.finished += 1
        on_round(point)

    for _ in range(STARTS):
        steps = [partial(run_steps, run, work, data_dir, deadline) for run in todo.values()]
        try:
            # A single job also gets a process with one thread: rounding depends on the number of
            # threads, and results must not depend on --jobs.
            run_parallel(steps, jobs, receive)
        except BrokenProcessPool:
            continue
        outcome.left = len(todo)
        return outcome
    raise SabalError(
        "workers that come to the end of their runs",
        f"{STARTS} times one that was killed, perhaps for want of memory",
        "go on with fewer --jobs, or see what kills them; every finished run is kept",
    )


def run_steps(
    run: TableRun, work: Path, data_dir: str | None, deadline: float | None
) -> Iterator[RunPoint]:
    """Yield the rounds of one run; none after the deadline."""
    if deadline is not None and time.time() >= deadline:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SabalWarning)
            rounds = _timed(run, work, data_dir) if run.timed else _curve(run, work, data_dir)
            for point in rounds:
                yield replace(point, strategy=run.name)
    except Exception as error:
        # One failing row must not end a night of runs. It is reported.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        yield RunPoint(run.name, run.seed, -1, 0, 0.0, 0.0, error=reason)


def _run_journal(run: TableRun, work: Path) -> Path:
    return work / run.preset.dataset / run.digest / "runs" / run.row / f"seed-{run.seed:03d}"


def _curve(run: TableRun, work: Path, data_dir: str | None) -> Iterator[RunPoint]:
    """Measure a learning curve."""
    preset, seed = run.preset, run.seed
    dataset = data_of(preset, data_dir)
    experiment = replace(experiment_of(preset), seeds=seed + 1)
    folder = work / preset.dataset / run.digest
    journal = Journal(run_folder(folder, run.row, seed))
    if journal.done(0) is None:
        _copy_first_round(first_round(preset, dataset, work, seed), journal)
    points = []
    for point in run_points(experiment, dataset, folder, run.row, seed):
        points.append(point)
        done = RunPoint(**vars(point))
        if point.round == preset.rounds:
            trained = [journal.done(number) or {} for number in range(1, preset.rounds + 1)]
            figures = {
                "labels": " ".join(str(each.labels) for each in points),
                "curve": " ".join(f"{100 * each.accuracy:.2f}" for each in points),
                "seconds": round(sum(each.select_seconds for each in points[1:]), 3),
                "selection_seconds": 0.0,
                "train_seconds": round(sum(float(each["train_seconds"]) for each in trained), 3),
                "items": len(experiment.split(len(dataset.x_train))[0]) - preset.initial,
            }
            done = replace(done, record=_record(run, dataset, data_dir, figures))
        yield done


def _timed(run: TableRun, work: Path, data_dir: str | None) -> Iterator[RunPoint]:
    """Time the first query."""
    preset, seed = run.preset, run.seed
    dataset = data_of(preset, data_dir)
    journal = first_round(preset, dataset, work, seed)
    figures = time_first_query(experiment_of(preset), dataset, journal, run.row, seed)
    record = _record(run, dataset, data_dir, {"labels": "", "curve": "", **figures})
    yield RunPoint(run.row, seed, 0, preset.initial, 0.0, record.seconds, record=record)


def _record(
    run: TableRun, dataset: Dataset, data_dir: str | None, figures: dict[str, Any]
) -> TableRunRecord:
    whole = load(run.preset.dataset, data_dir=data_dir) if run.preset.test else dataset
    return TableRunRecord(
        strategy=run.row,
        scale=run.scale,
        digest=run.digest,
        seed=run.seed,
        train_items=len(whole.x_train),
        test_items=len(whole.x_test),
        data=dataset.fingerprint(),
        machine=str(machine_facts()["processor"] or "unnamed"),
        options=json.dumps(options_of(run.preset, run.row)),
        **figures,
    )


def first_round(preset: Preset, dataset: Dataset, work: Path, seed: int) -> Journal:
    """Return the journal with the first labels and model of a seed, trained unless it is there.

    They do not depend on the strategy, so that all strategies of a seed share them.
    """
    digest = first_model_digest(preset)
    journal = Journal(work / preset.dataset / "first" / digest / f"seed-{seed:03d}")
    if journal.done(0) is None:
        experiment = experiment_of(preset)
        pool, held_out = experiment.split(len(dataset.x_train))
        learner = make_learner(experiment, dataset, pool, held_out)
        plan = Plan(initial=preset.initial, batch=preset.batch, rounds=0, seed=seed)
        oracle = SimulatedOracle(dataset.y_train[pool])
        test = dataset.x_test, dataset.y_test
        list(run_rounds(learner, oracle, plan, journal, test=test))
    return journal


def _copy_first_round(first: Journal, journal: Journal) -> None:
    """Copy the first round into the journal of a run, whole or not at all."""
    rounds = journal.folder / "rounds"
    shutil.rmtree(rounds, ignore_errors=True)
    make_folder(rounds)
    with tempfile.TemporaryDirectory(dir=journal.folder) as temporary:
        copied = shutil.copytree(first.folder / "rounds" / "0000", Path(temporary) / "0000")
        copied.rename(rounds / "0000")
