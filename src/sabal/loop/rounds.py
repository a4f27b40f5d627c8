"""The loop: choose, ask, train, and again (the paper's Algorithm 3, as a generator of rounds).

Every draw is decided by the seed, the round and what it is for, and every step is journalled before
the next begins. So a run that was killed anywhere resumes to the same result as one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sabal.api import choose
from sabal.core.checks import check_choice, check_number, check_whole
from sabal.core.memory import PeakMemory
from sabal.errors import InputError
from sabal.loop.journal import Journal
from sabal.loop.oracle import Answers, Oracle
from sabal.pools.outputs import Outputs
from sabal.selection import Selection

PURPOSES = ("select", "outputs", "train", "check")
SETTLED = 0.01
"""A round that changes a smaller share of the predictions than this has settled."""


class Learner(Protocol):
    """A model that the loop trains again and again, from scratch each time."""

    @property
    def size(self) -> int:
        """The number of items in the pool, labelled or not."""

    @property
    def gives(self) -> tuple[str, ...]:
        """The parts of `outputs` once it is trained, by name."""

    def train(
        self, items: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, seed: int
    ) -> None:
        """Forget everything and learn `labels` of `items`; the seed decides every draw."""

    def outputs(self, items: np.ndarray, labeled: np.ndarray, seed: int) -> Outputs:
        """What the model says of `items`; `labeled` are those it was trained on.

        Before any training: what is known without a model (features, if any).
        """

    def metrics(self) -> dict[str, float]:
        """How good the model is, `accuracy` among them, on data that no round touches."""

    def predictions(self) -> np.ndarray:
        """The class that the model gives to each item of a fixed set, to see it settle."""

    def save(self, path: Path) -> bool:
        """Store the trained model; False if this kind of model is trained anew instead."""

    def load(
        self, path: Path, items: np.ndarray, labels: np.ndarray, weights: np.ndarray | None
    ) -> None:
        """Bring back what `save` stored after training on these."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a run goes on, from its first batch to its end.

    initial, batch, rounds: the size of the first batch, of every later one, and how many follow.
    strategy, options: how later batches are chosen.
    first: the strategy of the first batch, when there is no model: "random" or "typiclust".
    weighted: whether the weights of a batch count in training.
    target_accuracy: stop once the metric `accuracy` reaches it.
    stable_rounds: stop once this many rounds in a row changed less than 1 % of the predictions.
    """

    initial: int
    batch: int
    rounds: int
    strategy: str = "sabal"
    options: dict[str, Any] = field(default_factory=dict)
    first: str = "random"
    weighted: bool = False
    target_accuracy: float | None = None
    stable_rounds: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole(self.initial, "initial")
        check_whole(self.batch, "batch")
        check_whole(self.rounds, "rounds", least=0)
        check_choice(self.first, "first", ("random", "typiclust"))
        check_whole(self.seed, "seed", least=0)
        if self.target_accuracy is not None:
            check_number(self.target_accuracy, "target_accuracy")
        if self.stable_rounds is not None:
            check_whole(self.stable_rounds, "stable_rounds")

    def check_pool(self, size: int) -> None:
        """Refuse to ask for more labels than a pool of `size` items has."""
        wanted = self.initial + self.batch * self.rounds
        if wanted > size:
            raise InputError(
                f"initial + batch * rounds of at most {size}, the size of the pool",
                str(wanted),
                "ask for fewer labels",
            )


@dataclass(frozen=True)
class Round:
    """What one round did. Round 0 is the first batch; `labels` counts all rounds up to this one.

    `select_mb` is the peak growth of memory while choosing; None where the system cannot tell.
    `open_items` are asked for and not answered yet: the run waits, and goes on when it is started
    again.
    """

    number: int
    batch: Selection
    labels: int
    metrics: dict[str, float]
    select_seconds: float
    select_mb: float | None
    train_seconds: float
    open_items: tuple[int, ...] = ()


def run_rounds(learner: Learner, oracle: Oracle, plan: Plan, journal: Journal) -> Iterator[Round]:
    """The rounds of a run, one at a time; those in the journal already are read, not repeated.

    Ends after the last round of the plan, when a rule says stop, or with a round whose
    `open_items` wait for the oracle.
    """
    plan.check_pool(learner.size)
    run = _Run(learner, oracle, plan, journal)
    for number in range(plan.rounds + 1):
        current = run.round(number)
        yield current
        if current.open_items or run.should_stop(current):
            return


def round_seed(seed: int, number: int, purpose: str) -> int:
    """A seed of its own for every draw of every round, whatever was drawn before.

    Neither strategy nor options enter: runs that differ in these only are paired.
    """
    key = [seed, number, PURPOSES.index(purpose)]
    return int(np.random.SeedSequence(key).generate_state(1, np.uint32)[0])


def choose_batch(
    learner: Learner, plan: Plan, number: int, labeled: list[int], excluded: set[int]
) -> Selection:
    """Choose among what is neither labelled nor excluded; rows are those of the whole pool.

    The learner is as it was after the round before.
    """
    free = np.ones(learner.size, dtype=bool)
    free[[*labeled, *excluded]] = False
    items = np.flatnonzero(free)
    seed = round_seed(plan.seed, number, "outputs")
    outputs = learner.outputs(items, np.asarray(labeled, dtype=np.int64), seed)
    wanted, strategy, options = (
        (plan.initial, plan.first, {}) if number == 0 else (plan.batch, plan.strategy, plan.options)
    )
    memory = PeakMemory()
    seed = round_seed(plan.seed, number, "select")
    batch = choose(outputs, min(wanted, items.size), strategy, seed, options)
    evidence = {**batch.evidence, "megabytes": memory.megabytes()}
    chosen = items[batch.indices]
    return replace(batch, indices=chosen, ids=chosen, evidence=evidence)


class _Run:
    """What a run knows so far: labels, weights, what was skipped, and which model is trained."""

    def __init__(self, learner: Learner, oracle: Oracle, plan: Plan, journal: Journal) -> None:
        self.learner, self.oracle, self.plan, self.journal = learner, oracle, plan, journal
        self.labels: dict[int, int] = {}
        self.labels_after: dict[int, int] = {}
        self.weights: dict[int, float] = {}
        self.skipped: set[int] = set()
        self.trained_round = -1
        self.unchanged_rounds = 0

    def round(self, number: int) -> Round:
        """Read a round that is complete, or do what is left of it."""
        done = self.journal.done(number)
        batch = self.journal.asked(number)
        if batch is None:
            batch = self._chosen(number)
            self.journal.write_asked(number, batch)
        answers = self._answers(number, batch)
        open_items = tuple(
            item
            for item in batch.indices.tolist()
            if item not in answers.labels and item not in answers.skipped
        )
        took = float(batch.evidence.get("seconds", 0.0)), batch.evidence.get("megabytes")
        if open_items:
            return Round(number, batch, len(self.labels), {}, *took, 0.0, open_items)
        for item, weight in zip(batch.indices.tolist(), batch.weights.tolist(), strict=True):
            if item in answers.labels:
                self.labels[item], self.weights[item] = answers.labels[item], weight
        self.skipped |= answers.skipped
        self.labels_after[number] = len(self.labels)
        if done is None:
            done = self._trained(number)
        self.unchanged_rounds = int(done["unchanged_rounds"])
        train_seconds = float(done["train_seconds"])
        return Round(number, batch, len(self.labels), done["metrics"], *took, train_seconds)

    def should_stop(self, current: Round) -> bool:
        """Whether a stopping rule of the plan is met."""
        target, stable = self.plan.target_accuracy, self.plan.stable_rounds
        reached = target is not None and current.metrics.get("accuracy", 0.0) >= target
        return reached or (stable is not None and self.unchanged_rounds >= stable)

    def _chosen(self, number: int) -> Selection:
        """Choose with the model of the round before, if there was one."""
        if number > 0:
            self._bring_back(number - 1)
        return choose_batch(self.learner, self.plan, number, list(self.labels), self.skipped)

    def _answers(self, number: int, batch: Selection) -> Answers:
        """Ask for what is open until the oracle has nothing more to say for now."""
        while True:
            known = self.journal.answers(number)
            still_open = [
                item
                for item in batch.indices.tolist()
                if item not in known.labels and item not in known.skipped
            ]
            if not still_open:
                return known
            answers = self.oracle.answer(still_open)
            _check_answers(answers, still_open)
            if not answers.labels and not answers.skipped:
                return known
            self.journal.add_answers(number, answers)

    def _trained(self, number: int) -> dict[str, Any]:
        """Train on all labels so far, keep the model, and complete the round."""
        before = None
        if self.plan.stable_rounds is not None and number > 0:
            self._bring_back(number - 1)
            before = self.learner.predictions()
        started = time.perf_counter()
        self._train(number)
        seconds = time.perf_counter() - started
        unchanged = 0
        if before is not None:
            settled = float(np.mean(before != self.learner.predictions())) < SETTLED
            unchanged = self.unchanged_rounds + 1 if settled else 0
        done = {
            "metrics": self.learner.metrics(),
            "train_seconds": seconds,
            "unchanged_rounds": unchanged,
        }
        self.journal.keep_model(number, self.learner.save)
        self.journal.write_done(number, done)
        return done

    def _train(self, number: int) -> None:
        seed = round_seed(self.plan.seed, number, "train")
        self.learner.train(*self._lessons(number), seed)
        self.trained_round = number

    def _lessons(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Items, labels and weights as they were after round `number`."""
        count = self.labels_after[number]
        items = np.asarray(list(self.labels)[:count], dtype=np.int64)
        labels = np.asarray(list(self.labels.values())[:count], dtype=np.int64)
        weights = np.asarray(list(self.weights.values())[:count])
        return items, labels, weights if self.plan.weighted else None

    def _bring_back(self, number: int) -> None:
        """The model as it was after round `number`: still there, stored, or trained again."""
        if self.trained_round == number:
            return
        stored = self.journal.model_path(number)
        if stored.exists():
            self.learner.load(stored, *self._lessons(number))
            self.trained_round = number
        else:
            self._train(number)


def _check_answers(answers: Answers, asked: list[int]) -> None:
    strangers = (set(answers.labels) | set(answers.skipped)) - set(asked)
    if strangers:
        raise InputError(
            "answers to items that were asked for", f"item {min(strangers)}", "fix the oracle"
        )
