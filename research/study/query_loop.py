"""The loop of tasks as people have them: fit a classifier, choose by `sabal.query`, repeat."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import sabal
from research.study.definitions import Configuration, OracleConfiguration, StudyTask
from research.study.query_data import QueryData
from research.study.query_learners import QUERY_LEARNERS
from research.study.seeded_draws import draws_of, first_per_class
from sabal.loop.rounds import round_seed


@dataclass(frozen=True)
class QueryRound:
    """One round: the number of labels, the test accuracy, and the seconds of CPU that it took.

    Other processes on the machine do not count, so that the plan of seeds does not depend on them.
    """

    number: int
    labels: int
    accuracy: float
    select_seconds: float
    train_seconds: float


@dataclass(frozen=True, eq=False)
class _Trained:
    """A classifier, the rows of the pool that it was trained on, and its test accuracy."""

    model: Any
    labeled: np.ndarray
    accuracy: float


Choose = Callable[[_Trained, int], np.ndarray]
"""Returns rows of the pool to label next, for a trained model and a round."""


def query_rounds(
    task: StudyTask, configuration: Configuration, data: QueryData, seed: int
) -> Iterator[QueryRound]:
    """Run all rounds of a task; warnings of scikit-learn about few labels are ignored."""
    train = _Training(task, data, seed)
    choose: Choose = _ByQuery(task, configuration, data, seed)
    if isinstance(configuration, OracleConfiguration):
        choose = _Oracle(task, configuration, data, seed, train)
    items = _first_items(task, data, seed)
    select_seconds = 0.0
    for number in range(task.rounds + 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            started = time.process_time()
            trained = train(items, number)
            train_seconds = time.process_time() - started
            yield QueryRound(number, items.size, trained.accuracy, select_seconds, train_seconds)
            if number < task.rounds:
                started = time.process_time()
                items = np.concatenate([items, choose(trained, number + 1)])
                select_seconds = time.process_time() - started


def _first_items(task: StudyTask, data: QueryData, seed: int) -> np.ndarray:
    """Draw the first labels; a single class, which no classifier can be trained on, is mended."""
    rng = draws_of(seed, "first")
    if task.first == "per-class":
        return first_per_class(data.y_pool, task.initial, rng)
    drawn = rng.permutation(data.y_pool.size)
    items, rest = drawn[: task.initial], drawn[task.initial :]
    if np.unique(data.y_pool[items]).size < 2:
        items[-1] = rest[np.argmax(data.y_pool[rest] != data.y_pool[items[0]])]
    return items


@dataclass(frozen=True, eq=False)
class _Training:
    task: StudyTask
    data: QueryData
    seed: int

    def __call__(self, items: np.ndarray, number: int) -> _Trained:
        """Train on these rows of the pool, with the random numbers of this round."""
        seed = round_seed(self.seed, number, "train")
        model = QUERY_LEARNERS[self.task.model].build(seed)
        model.fit(self.data.x_pool[items], self.data.y_pool[items])
        hits = model.predict(self.data.x_test) == self.data.y_test
        return _Trained(model, items, float(np.mean(hits)))


def _rest(data: QueryData, labeled: np.ndarray) -> np.ndarray:
    return np.setdiff1d(np.arange(data.y_pool.size), labeled)


@dataclass(frozen=True, eq=False)
class _ByQuery:
    """A strategy through the door that people use."""

    task: StudyTask
    configuration: Configuration
    data: QueryData
    seed: int

    def __call__(self, trained: _Trained, number: int) -> np.ndarray:
        rest = _rest(self.data, trained.labeled)
        batch = sabal.query(
            trained.model,
            self.data.x_pool[rest],
            self.task.batch,
            X_labeled=self.data.x_pool[trained.labeled],
            y_labeled=self.data.y_pool[trained.labeled],
            strategy=self.configuration.strategy,
            random_state=round_seed(self.seed, number, "select"),
            **self.configuration.options,
        )
        return np.asarray(rest[batch.indices])


@dataclass(frozen=True, eq=False)
class _Oracle:
    """The greedy oracle of Werner et al. (2024), in parts of a batch.

    For every part it trains with each of several random candidates in turn, and keeps the one with
    the best test accuracy. If none is better than before, it takes the part with the smallest
    margins.
    """

    task: StudyTask
    configuration: OracleConfiguration
    data: QueryData
    seed: int
    train: _Training

    def __call__(self, trained: _Trained, number: int) -> np.ndarray:
        rng = np.random.default_rng(round_seed(self.seed, number, "select"))
        before = trained.labeled.size
        bounds = np.linspace(0, self.task.batch, self.configuration.parts + 1).astype(int)
        for size in np.diff(bounds):
            if size:
                trained = self._extended(trained, int(size), number, rng)
        return trained.labeled[before:]

    def _extended(
        self, trained: _Trained, size: int, number: int, rng: np.random.Generator
    ) -> _Trained:
        rest = _rest(self.data, trained.labeled)
        best = trained
        for _ in range(self.configuration.tries):
            part = rng.choice(rest, size, replace=False)
            tried = self.train(np.concatenate([trained.labeled, part]), number)
            best = tried if tried.accuracy > best.accuracy else best
        if best is not trained:
            return best
        batch = sabal.query(
            trained.model, self.data.x_pool[rest], size, strategy="margin", random_state=0
        )
        return self.train(np.concatenate([trained.labeled, rest[batch.indices]]), number)
