"""Running an experiment: every strategy with every seed, side by side, resumable."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sabal.checks import check_whole
from sabal.experiments.curves import Point
from sabal.experiments.datasets import Dataset, load
from sabal.experiments.estimators import EstimatorLearner, estimator_factory
from sabal.journal import Journal
from sabal.loop import Learner, Plan, run_rounds
from sabal.oracle import SimulatedOracle
from sabal.strategies import make_strategy


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What is compared: everything that decides the result, and nothing else.

    options: options of the strategies, by strategy.
    """

    dataset: str
    strategies: tuple[str, ...]
    seeds: int
    initial: int
    batch: int
    rounds: int
    model: str = "logistic"
    first: str = "random"
    weighted: bool = False
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    data_dir: str | None = None

    def __post_init__(self) -> None:
        check_whole(self.seeds, "seeds")
        for name in self.strategies:
            make_strategy(name, self.options.get(name, {}))
        estimator_factory(self.model)
        self.plan(self.strategies[0], 0)

    def plan(self, strategy: str, seed: int) -> Plan:
        """The plan of one run."""
        return Plan(
            initial=self.initial,
            batch=self.batch,
            rounds=self.rounds,
            strategy=strategy,
            options=self.options.get(strategy, {}),
            first=self.first,
            weighted=self.weighted,
            seed=seed,
        )


def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    jobs: int = 1,
    on_round: Callable[[Point], None] = lambda point: None,
) -> list[Point]:
    """Every run of the experiment; what `folder` holds already is read, not repeated."""
    check_whole(jobs, "jobs")
    Journal(folder).bind(asdict(experiment), may_change=("strategies", "seeds", "data_dir"))
    runs = [(name, seed) for seed in range(experiment.seeds) for name in experiment.strategies]
    points: list[Point] = []
    if jobs == 1:
        dataset = load(experiment.dataset, data_dir=experiment.data_dir)
        for name, seed in runs:
            for point in run_points(experiment, dataset, folder, name, seed):
                points.append(point)
                on_round(point)
        return points
    # A fresh interpreter for every worker: forked threads of BLAS libraries may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_one_thread) as pool:
        pending = [pool.submit(_run_in_worker, experiment, folder, *run) for run in runs]
        try:
            for finished in as_completed(pending):
                for point in finished.result():
                    points.append(point)
                    on_round(point)
        except BaseException:
            # Runs under way stop at once; what they wrote is whole, and the next start goes on.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return points


def run_points(
    experiment: Experiment, dataset: Dataset, folder: Path, strategy: str, seed: int
) -> Iterator[Point]:
    """The rounds of one run as points of its curve."""
    learner = _learner(experiment, dataset)
    journal = Journal(run_folder(folder, strategy, seed))
    oracle = SimulatedOracle(dataset.y_train)
    for each in run_rounds(learner, oracle, experiment.plan(strategy, seed), journal):
        yield Point(
            strategy=strategy,
            seed=seed,
            round=each.number,
            labels=each.labels,
            accuracy=each.metrics["accuracy"],
            select_seconds=each.select_seconds,
        )


def run_folder(folder: Path, strategy: str, seed: int) -> Path:
    """Where the journal of one run is."""
    return folder / "runs" / strategy / f"seed-{seed:03d}"


def _learner(experiment: Experiment, dataset: Dataset) -> Learner:
    return EstimatorLearner(
        estimator_factory(experiment.model),
        dataset.x_train,
        dataset.x_test,
        dataset.y_test,
        dataset.classes,
    )


def _run_in_worker(experiment: Experiment, folder: Path, strategy: str, seed: int) -> list[Point]:
    dataset = load(experiment.dataset, data_dir=experiment.data_dir)
    return list(run_points(experiment, dataset, folder, strategy, seed))


def _one_thread() -> None:
    """As many workers as cores: more threads would only get in each other's way."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)


def selections_of(
    folder: Path, runs: Sequence[tuple[str, int]], rounds: int
) -> list[dict[str, Any]]:
    """What was chosen in every round of every run: a row of selections.parquet for each item."""
    rows = []
    for strategy, seed in runs:
        journal = Journal(run_folder(folder, strategy, seed))
        for number in range(rounds + 1):
            batch = journal.asked(number)
            if batch is None:
                break
            evidence = {k: v for k, v in batch.evidence.items() if k != "seconds"}
            for k, item in enumerate(batch.indices.tolist()):
                rows.append(
                    {
                        "strategy": strategy,
                        "seed": seed,
                        "round": number,
                        "rank": k + 1,
                        "item": item,
                        "weight": float(batch.weights[k]),
                        "score": float(batch.scores[k]),
                        "evidence": json.dumps(evidence) if k == 0 else None,
                    }
                )
    return rows
