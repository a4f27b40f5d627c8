"""Runs of an experiment: every strategy with every seed, in parallel, resumable."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sabal.core.checks import check_choice, check_whole
from sabal.errors import FileError
from sabal.learners.estimator_learner import ESTIMATORS, EstimatorLearner
from sabal.learners.learner import Learner
from sabal.loop import Journal, SimulatedOracle, run_rounds
from sabal.selection import Selection
from sabal.simulate.curves import Point
from sabal.simulate.datasets.catalog import Dataset, load
from sabal.simulate.experiment import Experiment
from sabal.simulate.parallel import call_once, run_parallel

ENGINES = ("local", "ray")


def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    jobs: int | None = None,
    on_round: Callable[[Point], None] = lambda point: None,
    engine: str = "local",
    address: str | None = None,
) -> list[Point]:
    """Do every run of the experiment; what `folder` holds already is read, not repeated.

    `jobs` runs are done in parallel: one if left out, or with engine "ray" one for every CPU of the
    cluster at `address` (a Ray on this machine if left out), whose machines must all be able to
    write to `folder`. `on_round` is called with the point of every round when it is done.
    """
    check_choice(engine, "engine", ENGINES)
    if jobs is not None:
        check_whole(jobs, "jobs")
    dataset = load(experiment.dataset, data_dir=experiment.data_dir)
    # Before anything is written: an experiment that is refused must not claim the folder.
    split = experiment.split(len(dataset.x_train))
    experiment.check_feasible(make_learner(experiment, dataset, *split))
    _bind(experiment, folder, dataset)
    if engine == "ray" or (jobs or 1) > 1:
        # Another machine may have another working directory.
        runs = [partial(_run, experiment, folder.absolute(), *run) for run in _runs(experiment)]
        if engine == "ray":
            from sabal.pools.ray.tasks import run_on_ray

            found = run_on_ray(runs, call_once(on_round), jobs=jobs, address=address)
            return [point for points in found for point in points]
        return run_parallel(runs, jobs or 1, on_round)
    points: list[Point] = []
    for label, seed in _runs(experiment):
        for point in run_points(experiment, dataset, folder, label, seed):
            points.append(point)
            on_round(point)
    return points


def _run(experiment: Experiment, folder: Path, label: str, seed: int) -> Iterator[Point]:
    """Do one run in a process of its own, which has to load the data first."""
    dataset = load(experiment.dataset, data_dir=experiment.data_dir)
    yield from run_points(experiment, dataset, folder, label, seed)


def _runs(experiment: Experiment) -> list[tuple[str, int]]:
    return [(label, seed) for seed in range(experiment.seeds) for label in experiment.strategies]


def rounds_done(experiment: Experiment, folder: Path) -> int:
    """Return how many rounds of the experiment `folder` holds already."""
    journals = [Journal(run_folder(folder, *run)) for run in _runs(experiment)]
    numbers = range(experiment.rounds + 1)
    return sum(journal.done(number) is not None for journal in journals for number in numbers)


def _bind(experiment: Experiment, folder: Path, dataset: Dataset) -> None:
    """Record the experiment and its data in the folder, or check them against the record."""
    journal = Journal(folder)
    may_change: tuple[str, ...] = ("strategies", "seeds", "data_dir")
    config = {**experiment.config(), "data": dataset.fingerprint()}
    if (folder / "config.json").exists():
        # A folder from before a field existed was started with the present default of the field.
        recorded = journal.config()
        defaults = {
            "recipe": not experiment.recipe,
            "validation": not experiment.validation,
            "pool": not experiment.pool,
            "data": True,
        }
        for name, is_default in defaults.items():
            if is_default and name not in recorded:
                del config[name]
        # New strategies may bring options of their own; those of existing runs are fixed.
        kept = {label: config["options"].get(label) for label in recorded.get("options", {})}
        if kept == recorded.get("options"):
            may_change += ("options",)
    elif (folder / "runs").exists():
        raise FileError(
            f"config.json beside the runs in {folder}",
            "none, so that it is not known what these are runs of",
            "restore it, or choose a new folder",
        )
    journal.bind(config, may_change=may_change)


def run_points(
    experiment: Experiment, dataset: Dataset, folder: Path, strategy: str, seed: int
) -> Iterator[Point]:
    """Do one run, or read what `folder` holds of it, and yield its rounds as points."""
    pool, held_out = experiment.split(len(dataset.x_train))
    learner = make_learner(experiment, dataset, pool, held_out)
    journal = Journal(run_folder(folder, strategy, seed))
    oracle = SimulatedOracle(dataset.y_train[pool])
    plan, test = experiment.plan(strategy, seed), (dataset.x_test, dataset.y_test)
    for each in run_rounds(learner, oracle, plan, journal, test=test):
        yield Point(
            strategy=strategy,
            seed=seed,
            round=each.number,
            labels=each.labels,
            accuracy=each.metrics["accuracy"],
            select_seconds=each.select_seconds,
            select_mb=each.select_mb,
        )


def run_folder(folder: Path, strategy: str, seed: int) -> Path:
    """Return the folder of the journal of one run."""
    return folder / "runs" / strategy / f"seed-{seed:03d}"


def make_learner(
    experiment: Experiment, dataset: Dataset, pool: np.ndarray, held_out: np.ndarray
) -> Learner:
    """Return the model of the experiment over the rows `pool`, with `held_out` for validation."""
    x_pool = dataset.x_train[pool]
    recipe = experiment.network_recipe()
    if recipe is None:
        return EstimatorLearner(ESTIMATORS[experiment.model], x_pool, dataset.classes)
    # Only networks need PyTorch.
    from sabal.learners.network_learner import NetworkLearner

    validation = (dataset.x_train[held_out], dataset.y_train[held_out]) if held_out.size else None
    return NetworkLearner(recipe, x_pool, dataset.classes, validation=validation)


def selections_of(experiment: Experiment, folder: Path) -> list[dict[str, Any]]:
    """Return the rows of selections.parquet: one for every item of every batch.

    Items are rows of the training set. Seconds and memory are left out, because they are never the
    same twice.
    """
    rows = []
    row_of_item = _training_rows(experiment)
    for label in experiment.strategies:
        for seed in range(experiment.seeds):
            journal = Journal(run_folder(folder, label, seed))
            for number in range(experiment.rounds + 1):
                batch = journal.asked(number)
                if batch is None:
                    break
                rows += _selection_rows(label, seed, number, batch, row_of_item)
    return rows


def _selection_rows(
    label: str, seed: int, number: int, batch: Selection, row_of_item: Callable[[int], int]
) -> list[dict[str, Any]]:
    evidence = {k: v for k, v in batch.evidence.items() if k not in ("seconds", "megabytes")}
    return [
        {
            "strategy": label,
            "seed": seed,
            "round": number,
            "rank": k + 1,
            "item": row_of_item(item),
            "weight": float(batch.weights[k]),
            "score": float(batch.scores[k]),
            "evidence": json.dumps(evidence) if k == 0 else None,
        }
        for k, item in enumerate(batch.indices.tolist())
    ]


def _training_rows(experiment: Experiment) -> Callable[[int], int]:
    """Return a function from items of the pool to rows of the training set."""
    if experiment.pool is None and not experiment.validation:
        return lambda item: item
    dataset = load(experiment.dataset, data_dir=experiment.data_dir)
    pool, _ = experiment.split(len(dataset.x_train))
    return lambda item: int(pool[item])
