"""Every rung on the same pools and models: what it asks for, what f it reaches, what that teaches.

A state is a task of the study with a seed and so many labels drawn at random. From it every rung
takes one batch, and the model is trained anew with these labels too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from research.corrections.ladder import GREEDY, IHT, Batch, Rung, Whole, climb
from research.study.configurations import CHANCE, PAPER
from research.study.data import draws_of, first_per_class, prepared
from research.study.definitions import Configuration, Task, digest_of, experiment_of
from research.study.lines import append_line, read_lines
from sabal.core.checks import check_whole
from sabal.errors import SabalError, SabalWarning
from sabal.loop import Learner, round_seed
from sabal.pools.outputs import Outputs
from sabal.simulate.curves import Point
from sabal.simulate.parallel import run_parallel
from sabal.simulate.runner import make_learner
from sabal.sparse.formulate import Formulation, LocalPool

FILE = "corrections.csv"
ROUNDS = (0, 2)
"""Batches that were drawn at random after the first labels, when the rungs are compared."""

RANDOM_BATCHES = 10
"""With weights of 1: what f is without any choice."""

LADDERS = ((GREEDY, PAPER[0]), (IHT, PAPER[1]))
"""The rungs, and the settings that the paper prints for either algorithm."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One rung from one state: a line of corrections.csv.

    digest: of all that decides the state and the settings.
    labels: how many there were before; batch: the items that may be asked for; asked: those that
        were; rises: how often f rose from one iteration to the next.
    objective, chance: f of the batch, and of random batches with weights of 1 in the mean.
    accuracy: on the test set with the new labels, in percent.
    """

    task: str
    seed: int
    labels: int
    digest: str
    algorithm: int
    rung: str
    batch: int
    asked: int
    rises: int
    objective: float
    chance: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class Step(Point):
    """A rung of a state that is done, or why the state cannot be."""

    line: Line | None = None
    error: str = ""


def open_states(
    tasks: Sequence[Task], seeds: int, lines: Sequence[Line]
) -> list[tuple[Task, int, int]]:
    """Task, seed and round of every state that has not all of its lines."""
    check_whole(seeds, "seeds")
    done: dict[tuple[str, int, int], set[tuple[int, str]]] = {}
    for line in lines:
        done.setdefault((line.task, line.seed, line.labels), set()).add((line.algorithm, line.rung))
    wanted = {(0, CHANCE), *((rung.algorithm, rung.name) for rungs, _ in LADDERS for rung in rungs)}
    return [
        (task, seed, number)
        for seed in range(seeds)
        for task in tasks
        for number in ROUNDS
        if wanted - done.get((task.name, seed, task.labels[number]), set())
    ]


def read_current(path: Path, tasks: Sequence[Task]) -> list[Line]:
    """The lines of tasks and settings as they are now, each once."""
    current = {(task.name, digest_of(task, settings)) for task in tasks for _, settings in LADDERS}
    lines, _ = read_lines(path, Line)
    once = {
        (each.task, each.seed, each.labels, each.algorithm, each.rung): each
        for each in lines
        if (each.task, each.digest) in current
    }
    return list(once.values())


def measure(
    states: Sequence[tuple[Task, int, int]],
    folder: Path,
    *,
    data: Path | None,
    jobs: int,
    on_step: Callable[[Point], None] = lambda point: None,
) -> dict[str, str]:
    """Every rung of these states, each added to FILE in `folder` when it is done.

    The states that failed, and why: the others go on.
    """
    failed: dict[str, str] = {}

    def hear(point: Point) -> None:
        if isinstance(point, Step) and point.line is not None:
            append_line(point.line, folder / FILE)
            on_step(point)
        elif isinstance(point, Step):
            failed[f"{point.strategy}/seed {point.seed}"] = point.error

    if states:
        try:
            run_parallel([partial(_told, *state, data) for state in states], jobs, hear)
        except BrokenProcessPool:
            raise SabalError(
                "workers that come to the end of their states",
                "one that was killed, perhaps for want of memory",
                "go on with fewer --jobs, or see what kills them; every line is kept",
            ) from None
    return failed


def _told(task: Task, seed: int, number: int, data: Path | None) -> Iterator[Step]:
    """The steps of one state; one that cannot be done must not end the others, and is told of."""
    try:
        yield from steps(task, seed, number, data)
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        yield Step(f"{task.name}/round {number}", seed, -1, 0, 0.0, 0.0, error=reason)


def steps(task: Task, seed: int, number: int, data: Path | None) -> Iterator[Step]:
    """All rungs from one state, and a random batch beside them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SabalWarning)
        yield from _steps(task, seed, number, data)


def _steps(task: Task, seed: int, number: int, data: Path | None) -> Iterator[Step]:
    dataset = prepared(task, seed, data)
    experiment = experiment_of(task, PAPER[0], seed)
    pool, held_out = experiment.split(len(dataset.x_train))
    learner = make_learner(experiment, dataset, pool, held_out)
    labels_N = dataset.y_train[pool]
    order = _order(task, labels_N, seed)
    count = task.labels[number]
    labeled, free = order[:count], np.sort(order[count:])

    def learn(items: np.ndarray, after: int) -> float:
        learner.train(items, labels_N[items], None, round_seed(seed, after, "train"))
        return 100.0 * learner.measure(dataset.x_test, dataset.y_test)["accuracy"]

    learn(labeled, number)
    wholes = [_whole(learner, labeled, free, task, settings, seed) for _, settings in LADDERS]
    rng = np.random.default_rng(round_seed(seed, number, "check"))
    by_chance = [
        Batch(rng.choice(free.size, task.batch, replace=False), np.ones(task.batch))
        for _ in range(RANDOM_BATCHES)
    ]
    ladders = [(whole, *ladder) for whole, ladder in zip(wholes, LADDERS, strict=True)]
    for whole, rungs, settings in [(wholes[0], (Rung(CHANCE, 0),), PAPER[0]), *ladders]:
        chance = float(np.mean([whole.objective(each) for each in by_chance]))
        for rung in rungs:
            batch = climb(whole, rung) if rung.algorithm else by_chance[0]
            accuracy = learn(np.concatenate([labeled, free[batch.indices]]), number + 1)
            line = Line(
                task=task.name,
                seed=seed,
                labels=count,
                digest=digest_of(task, settings),
                algorithm=rung.algorithm,
                rung=rung.name,
                batch=task.batch,
                asked=batch.indices.size,
                rises=batch.rises,
                objective=whole.objective(batch),
                chance=chance,
                accuracy=round(accuracy, 4),
            )
            name = f"{task.name}/{rung.algorithm}/{rung.name}"
            yield Step(name, seed, number, count, accuracy / 100.0, 0.0, line=line)


def _order(task: Task, labels_N: np.ndarray, seed: int) -> np.ndarray:
    """All items of the pool: those of the first labels first, then as they are drawn."""
    rng = draws_of(seed, "first")
    if task.first != "per-class":
        return rng.permutation(labels_N.size)
    first = first_per_class(labels_N, task.initial, rng)
    return np.concatenate([first, rng.permutation(np.setdiff1d(np.arange(labels_N.size), first))])


def _whole(
    learner: Learner,
    labeled: np.ndarray,
    free: np.ndarray,
    task: Task,
    settings: Configuration,
    seed: int,
) -> Whole:
    outputs: Outputs = learner.outputs(free, labeled, round_seed(seed, 1, "outputs"))
    kind = "posterior" if outputs.has("log_probs") else "gradient"
    formulation = Formulation(atoms=kind, **settings.options)
    draws = formulation.draw(LocalPool(outputs).facts(formulation), np.random.default_rng(0))
    items = formulation.items(outputs, draws)
    return Whole(formulation.problem(items, task.batch, draws), items)
