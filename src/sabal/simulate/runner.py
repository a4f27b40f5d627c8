"""Running an experiment: every strategy with every seed, side by side, resumable."""

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
from sabal.loop.journal import Journal
from sabal.loop.oracle import SimulatedOracle
from sabal.loop.rounds import Learner, run_rounds
from sabal.selection import Selection
from sabal.simulate.curves import Point
from sabal.simulate.datasets.catalog import Dataset, load
from sabal.simulate.experiment import Experiment
from sabal.simulate.parallel import side_by_side

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
    """Every run of the experiment; what `folder` holds already is read, not repeated.

    jobs: runs side by side; None for one, or on a cluster for as many as it has CPUs.
    on_round: called with every round when it is done, whoever did it.
    engine: "local", or "ray" for a cluster; `address` says which, see `select_on_ray`.
    """
    check_choice(engine, "engine", ENGINES)
    if jobs is not None:
        check_whole(jobs, "jobs")
    dataset = load(experiment.dataset, data_dir=experiment.data_dir)
    # Before anything is written: a folder that was never begun is tied to nothing.
    split = experiment.split(len(dataset.x_train))
    experiment.check_feasible(learner_of(experiment, dataset, *split))
    _bind(experiment, folder, dataset)
    if engine == "ray" or (jobs or 1) > 1:
        # Another machine may be in another folder.
        runs = [partial(_run, experiment, folder.absolute(), *run) for run in _runs(experiment)]
        if engine == "ray":
            # Only those who have a cluster need Ray.
            from sabal.simulate.on_ray import spread_on_ray

            return spread_on_ray(runs, jobs, on_round, address)
        return side_by_side(runs, jobs or 1, on_round)
    points: list[Point] = []
    for label, seed in _runs(experiment):
        for point in run_points(experiment, dataset, folder, label, seed):
            points.append(point)
            on_round(point)
    return points


def _run(experiment: Experiment, folder: Path, label: str, seed: int) -> Iterator[Point]:
    """One run in a process of its own, which has to load the data first."""
    dataset = load(experiment.dataset, data_dir=experiment.data_dir)
    yield from run_points(experiment, dataset, folder, label, seed)


def _runs(experiment: Experiment) -> list[tuple[str, int]]:
    return [(label, seed) for seed in range(experiment.seeds) for label in experiment.strategies]


def rounds_done(experiment: Experiment, folder: Path) -> int:
    """How many rounds of the experiment `folder` holds already."""
    journals = [Journal(run_folder(folder, *run)) for run in _runs(experiment)]
    numbers = range(experiment.rounds + 1)
    return sum(journal.done(number) is not None for journal in journals for number in numbers)


def _bind(experiment: Experiment, folder: Path, dataset: Dataset) -> None:
    """Tie the folder to the experiment and its data, or see that it is tied to these."""
    journal = Journal(folder)
    may_change: tuple[str, ...] = ("strategies", "seeds", "data_dir")
    config = {**experiment.config(), "data": dataset.fingerprint()}
    if (folder / "config.json").exists():
        # A folder from before a field existed was begun with what is now the field's default.
        begun = journal.config()
        later = [each for each in ("recipe", "validation", "pool", "data") if each not in begun]
        plain = [each for each in later if not getattr(experiment, each, None)]
        config = {name: value for name, value in config.items() if name not in plain}
        # New strategies may bring options of their own; those of runs that are there are fixed.
        kept = {label: config["options"].get(label) for label in begun.get("options", {})}
        if kept == begun.get("options"):
            may_change += ("options",)
    elif (folder / "runs").exists():
        raise FileError(
            f"config.json beside the runs in {folder}",
            "none, so that nobody knows what these are runs of",
            "restore it, or choose a new folder",
        )
    journal.bind(config, may_change=may_change)


def run_points(
    experiment: Experiment, dataset: Dataset, folder: Path, strategy: str, seed: int
) -> Iterator[Point]:
    """The rounds of one run as points of its curve."""
    pool, held_out = experiment.split(len(dataset.x_train))
    learner = learner_of(experiment, dataset, pool, held_out)
    journal = Journal(run_folder(folder, strategy, seed))
    oracle = SimulatedOracle(dataset.y_train[pool])
    for each in run_rounds(learner, oracle, experiment.plan(strategy, seed), journal):
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
    """Where the journal of one run is."""
    return folder / "runs" / strategy / f"seed-{seed:03d}"


def learner_of(
    experiment: Experiment, dataset: Dataset, pool: np.ndarray, held_out: np.ndarray
) -> Learner:
    """The model of the experiment over the rows `pool`, with `held_out` for validation."""
    test = dataset.x_test, dataset.y_test, dataset.classes
    recipe = experiment.network_recipe()
    if recipe is None:
        return EstimatorLearner(ESTIMATORS[experiment.model], dataset.x_train[pool], *test)
    # Only those who train networks need torch.
    from sabal.learners.network_learner import NetworkLearner

    validation = (dataset.x_train[held_out], dataset.y_train[held_out]) if held_out.size else None
    return NetworkLearner(recipe, dataset.x_train[pool], *test, validation=validation)


def selections_of(experiment: Experiment, folder: Path) -> list[dict[str, Any]]:
    """What was chosen in every round of every run: a row of selections.parquet for each item.

    Items are rows of the training set. What was measured (seconds, memory) is left out: it is never
    the same twice.
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
    """From items of the pool to rows of the training set."""
    if experiment.pool is None and not experiment.validation:
        return lambda item: item
    dataset = load(experiment.dataset, data_dir=experiment.data_dir)
    pool, _ = experiment.split(len(dataset.x_train))
    return lambda item: int(pool[item])
