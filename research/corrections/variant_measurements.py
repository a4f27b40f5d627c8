"""Measure every variant of the algorithms on the same pools and models.

A state is a task of the study with a seed and a number of labels drawn at random. Every variant
selects one batch from it, and the model is trained again with the labels of that batch added.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from research.corrections.variants import GREEDY, IHT, DenseProblem, WeightedBatch
from research.study.configurations import CHANCE, PAPER
from research.study.csv_lines import append_line, read_lines
from research.study.definitions import Configuration, StudyTask, digest_of, experiment_of
from research.study.seeded_draws import draws_of, first_per_class
from research.study.task_data import prepared
from sabal.core.checks import check_whole
from sabal.errors import SabalError, SabalWarning
from sabal.learners.learner import Learner
from sabal.loop.rounds import round_seed
from sabal.simulate.curves import Point
from sabal.simulate.parallel import run_parallel
from sabal.simulate.runner import make_learner
from sabal.sparse.problem import ProblemSpec

CORRECTIONS_FILE = "corrections.csv"
ROUNDS = (0, 2)
"""Random batches labelled after the initial labels when the variants are compared."""

RANDOM_BATCHES = 10
"""Batches with weights of 1 that give the value of f without any selection."""

ALGORITHMS = ((GREEDY, PAPER[0]), (IHT, PAPER[1]))
"""The variants of each algorithm and the settings that the paper prints for it."""


@dataclass(frozen=True, kw_only=True)
class VariantRecord:
    """The result of one variant from one state: a line of corrections.csv.

    Attributes
    ----------
    task, seed, labels : str, int, int
        The state; `labels` is the number of labels before the batch.
    digest : str
        Hash of everything that determines the state and the settings.
    algorithm, variant : int, str
        The variant; algorithm 0 is a random batch.
    batch, asked : int
        The number of items that may be requested, and that were.
    rises : int
        How often f increased from one iteration to the next.
    objective, chance : float
        f of the batch, and the mean of f over random batches with weights of 1.
    accuracy : float
        Test accuracy with the new labels, in percent.
    """

    task: str
    seed: int
    labels: int
    digest: str
    algorithm: int
    variant: str
    batch: int
    asked: int
    rises: int
    objective: float
    chance: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class VariantPoint(Point):
    """The record of a variant that has finished, or the error that stopped its state."""

    record: VariantRecord | None = None
    error: str = ""


def open_states(
    tasks: Sequence[StudyTask], seeds: int, records: Sequence[VariantRecord]
) -> list[tuple[StudyTask, int, int]]:
    """Return the task, seed and round of every state with missing records."""
    check_whole(seeds, "seeds")
    done: dict[tuple[str, int, int], set[tuple[int, str]]] = {}
    for record in records:
        state = (record.task, record.seed, record.labels)
        done.setdefault(state, set()).add((record.algorithm, record.variant))
    wanted = {(0, CHANCE)}
    wanted |= {(each.algorithm, each.name) for variants, _ in ALGORITHMS for each in variants}
    return [
        (task, seed, number)
        for seed in range(seeds)
        for task in tasks
        for number in ROUNDS
        if wanted - done.get((task.name, seed, task.labels[number]), set())
    ]


def read_current(path: Path, tasks: Sequence[StudyTask]) -> list[VariantRecord]:
    """Read the records of the current tasks and settings, without duplicates."""
    current = {
        (task.name, digest_of(task, settings)) for task in tasks for _, settings in ALGORITHMS
    }
    records, _ = read_lines(path, VariantRecord)
    once = {
        (each.task, each.seed, each.labels, each.algorithm, each.variant): each
        for each in records
        if (each.task, each.digest) in current
    }
    return list(once.values())


def measure(
    states: Sequence[tuple[StudyTask, int, int]],
    folder: Path,
    *,
    data: Path | None,
    jobs: int,
    on_point: Callable[[Point], None] = lambda point: None,
) -> dict[str, str]:
    """Measure every variant from these states, appending each record as it finishes.

    Parameters
    ----------
    states : sequence of (StudyTask, int, int)
        Task, seed and round, as `open_states` returns them.
    folder : Path
        The folder of CORRECTIONS_FILE.
    data : Path or None
        The folder with the NAME.npz files of the data sets.
    jobs : int
        The number of states that are measured in parallel.
    on_point : callable, optional
        Called for every finished variant.

    Returns
    -------
    dict of str to str
        The states that failed, with the reason. The other states are measured regardless.
    """
    failed: dict[str, str] = {}

    def receive(point: Point) -> None:
        if isinstance(point, VariantPoint) and point.record is not None:
            append_line(point.record, folder / CORRECTIONS_FILE)
            on_point(point)
        elif isinstance(point, VariantPoint):
            failed[f"{point.strategy}/seed {point.seed}"] = point.error

    if states:
        try:
            run_parallel([partial(_safe_points, *state, data) for state in states], jobs, receive)
        except BrokenProcessPool:
            raise SabalError(
                "workers that come to the end of their states",
                "one that was killed, perhaps for want of memory",
                "go on with fewer --jobs, or see what kills them; every line is kept",
            ) from None
    return failed


def _safe_points(
    task: StudyTask, seed: int, number: int, data: Path | None
) -> Iterator[VariantPoint]:
    """Yield the points of a state; an error becomes a point, so that other states continue."""
    try:
        yield from variant_points(task, seed, number, data)
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        yield VariantPoint(f"{task.name}/round {number}", seed, -1, 0, 0.0, 0.0, error=reason)


def variant_points(
    task: StudyTask, seed: int, number: int, data: Path | None
) -> Iterator[VariantPoint]:
    """Run all variants from one state, after a random batch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SabalWarning)
        yield from _points(task, seed, number, data)


def _points(task: StudyTask, seed: int, number: int, data: Path | None) -> Iterator[VariantPoint]:
    dataset = prepared(task, seed, data)
    experiment = experiment_of(task, PAPER[0], seed)
    pool, held_out = experiment.split(len(dataset.x_train))
    learner = make_learner(experiment, dataset, pool, held_out)
    labels_N = dataset.y_train[pool]
    order = _labeling_order(task, labels_N, seed)
    count = task.labels[number]
    labeled, free = order[:count], np.sort(order[count:])

    def accuracy_with(items: np.ndarray, after: int) -> float:
        learner.train(items, labels_N[items], None, round_seed(seed, after, "train"))
        return 100.0 * learner.measure(dataset.x_test, dataset.y_test)["accuracy"]

    accuracy_with(labeled, number)
    problems = [_problem(learner, labeled, free, task, each, seed) for _, each in ALGORITHMS]
    rng = np.random.default_rng(round_seed(seed, number, "check"))
    random_batches = [
        WeightedBatch(rng.choice(free.size, task.batch, replace=False), np.ones(task.batch))
        for _ in range(RANDOM_BATCHES)
    ]
    for algorithm, name, dense, settings, run in _plan(problems, random_batches[0]):
        batch = run(dense)
        accuracy = accuracy_with(np.concatenate([labeled, free[batch.indices]]), number + 1)
        record = VariantRecord(
            task=task.name,
            seed=seed,
            labels=count,
            digest=digest_of(task, settings),
            algorithm=algorithm,
            variant=name,
            batch=task.batch,
            asked=batch.indices.size,
            rises=batch.rises,
            objective=dense.objective(batch),
            chance=float(np.mean([dense.objective(each) for each in random_batches])),
            accuracy=round(accuracy, 4),
        )
        title = f"{task.name}/{algorithm}/{name}"
        yield VariantPoint(title, seed, number, count, accuracy / 100.0, 0.0, record=record)


Planned = tuple[int, str, DenseProblem, Configuration, Callable[[DenseProblem], WeightedBatch]]


def _plan(problems: Sequence[DenseProblem], random_batch: WeightedBatch) -> Iterator[Planned]:
    """Yield algorithm, name, problem, settings and solver: a random batch, then all variants."""
    yield 0, CHANCE, problems[0], PAPER[0], lambda dense: random_batch
    for dense, (variants, settings) in zip(problems, ALGORITHMS, strict=True):
        for variant in variants:
            yield variant.algorithm, variant.name, dense, settings, variant.run


def _labeling_order(task: StudyTask, labels_N: np.ndarray, seed: int) -> np.ndarray:
    """Return all items of the pool in the order in which they would be labelled."""
    rng = draws_of(seed, "first")
    if task.first != "per-class":
        return rng.permutation(labels_N.size)
    first = first_per_class(labels_N, task.initial, rng)
    return np.concatenate([first, rng.permutation(np.setdiff1d(np.arange(labels_N.size), first))])


def _problem(
    learner: Learner,
    labeled: np.ndarray,
    free: np.ndarray,
    task: StudyTask,
    settings: Configuration,
    seed: int,
) -> DenseProblem:
    outputs = learner.outputs(free, labeled, round_seed(seed, 1, "outputs"))
    kind = "posterior" if outputs.has("log_probs") else "gradient"
    # The rest are options of the solvers, which the variants replace.
    units = {name: settings.options[name] for name in ("alpha", "beta", "scale")}
    spec = ProblemSpec(atoms=kind, **units)
    items = spec.local_items(outputs.shard, None)
    return DenseProblem(spec.problem_over(items, task.batch, None), items)
