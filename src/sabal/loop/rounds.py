"""The loop: choose, ask, train, repeat (the paper's Algorithm 3, as a generator of rounds).

Every random number follows from the seed, the round and its purpose, and every step is written to
the journal before the next begins. A run that is killed at any moment therefore resumes to the same
result as one that is not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from sabal.api import choose
from sabal.core.memory import PeakMemory
from sabal.errors import InputError
from sabal.learners.learner import Learner
from sabal.loop.journal import Journal
from sabal.loop.oracle import Answers, Oracle
from sabal.loop.plan import Plan, Round
from sabal.selection import Selection

PURPOSES = ("select", "outputs", "train", "check")
STABLE_SHARE = 0.01  # predictions are stable in a round that changes a smaller share of them
TestData = tuple[Any, np.ndarray]  # items of the pool's kind, and their labels


def run_rounds(
    learner: Learner, oracle: Oracle, plan: Plan, journal: Journal, *, test: TestData | None = None
) -> Iterator[Round]:
    """Run the rounds of a plan; those that are in the journal already are read, not repeated.

    Parameters
    ----------
    learner : Learner
        The model, which knows the pool.
    oracle : Oracle
        Answers with labels.
    plan : Plan
        The size and number of the rounds, and the strategy.
    journal : Journal
        The folder in which every step is recorded.
    test : tuple of arrays, optional
        Items and labels to measure every round on, which are never trained on. Without it, rounds
        have no metrics, and `plan.stable_rounds` looks at the predictions for the pool.

    Yields
    ------
    Round
        One round after the other, until the end of the plan, a stopping rule of the plan, or a
        round with `open_items`, which the oracle has not answered yet.
    """
    plan.check_pool(learner.size)
    if plan.target_accuracy is not None and test is None:
        raise InputError(
            "test data to measure the accuracy on, for a target accuracy",
            "none",
            "pass test=(x, y), or leave target_accuracy out",
        )
    run = _Run(learner, oracle, plan, journal, test)
    for number in range(plan.rounds + 1):
        current = run.round(number)
        yield current
        if current.open_items or run.should_stop(current):
            return


def round_seed(seed: int, number: int, purpose: str) -> int:
    """Return the seed for one purpose in one round.

    It does not depend on the strategy or its options, so that runs with the same seed are paired.
    The purposes are "select", "outputs", "train" and "check".
    """
    key = [seed, number, PURPOSES.index(purpose)]
    return int(np.random.SeedSequence(key).generate_state(1, np.uint32)[0])


def choose_batch(
    learner: Learner, plan: Plan, number: int, labeled: list[int], excluded: set[int]
) -> Selection:
    """Choose the batch of a round among the items that are neither labelled nor excluded.

    Parameters
    ----------
    learner : Learner
        The model as it was after the previous round.
    plan : Plan
        The size of the batch, the strategy and the seed.
    number : int
        The round.
    labeled : list of int
        Rows of the pool that have a label.
    excluded : set of int
        Rows of the pool that cannot be chosen for another reason.

    Returns
    -------
    Selection
        The batch, as rows of the whole pool.
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
    """The state of a run: labels, weights, skipped items, and which round's model is trained."""

    def __init__(
        self, learner: Learner, oracle: Oracle, plan: Plan, journal: Journal, test: TestData | None
    ) -> None:
        self.learner, self.oracle, self.plan, self.journal = learner, oracle, plan, journal
        self.test = test
        self.labels: dict[int, int] = {}
        self.labels_after: dict[int, int] = {}
        self.weights: dict[int, float] = {}
        self.skipped: set[int] = set()
        self.trained_round = -1
        self.unchanged_rounds = 0

    def round(self, number: int) -> Round:
        """Read a round that is complete, or do what remains of it."""
        done = self.journal.done(number)
        batch = self.journal.asked(number)
        if batch is None:
            if number > 0:
                self._restore(number - 1)
            batch = choose_batch(self.learner, self.plan, number, list(self.labels), self.skipped)
            self.journal.write_asked(number, batch)
        answers, open_items = self._answers(number, batch)
        took = float(batch.evidence.get("seconds", 0.0)), batch.evidence.get("megabytes")
        if open_items:
            return Round(number, batch, len(self.labels), {}, *took, 0.0, open_items)
        for item, weight in zip(batch.indices.tolist(), batch.weights.tolist(), strict=True):
            if item in answers.labels:
                self.labels[item], self.weights[item] = answers.labels[item], weight
        self.skipped |= answers.skipped
        self.labels_after[number] = len(self.labels)
        if done is None:
            done = self._train_and_measure(number)
        self.unchanged_rounds = int(done["unchanged_rounds"])
        train_seconds = float(done["train_seconds"])
        return Round(number, batch, len(self.labels), done["metrics"], *took, train_seconds)

    def should_stop(self, current: Round) -> bool:
        """Return whether a stopping rule of the plan is met."""
        target, stable = self.plan.target_accuracy, self.plan.stable_rounds
        reached = target is not None and current.metrics.get("accuracy", 0.0) >= target
        return reached or (stable is not None and self.unchanged_rounds >= stable)

    def _answers(self, number: int, batch: Selection) -> tuple[Answers, tuple[int, ...]]:
        """Ask until all items are answered, or the oracle has no more answers for some of them."""
        while True:
            known = self.journal.answers(number)
            answered = {*known.labels, *known.skipped}
            still_open = [item for item in batch.indices.tolist() if item not in answered]
            if not still_open:
                return known, ()
            answers = self.oracle.answer(still_open)
            if unexpected := {*answers.labels, *answers.skipped} - set(still_open):
                raise InputError(
                    "answers to items that were asked for",
                    f"item {min(unexpected)}",
                    "fix the oracle",
                )
            if not answers.labels and not answers.skipped:
                return known, tuple(still_open)
            self.journal.add_answers(number, answers)

    def _train_and_measure(self, number: int) -> dict[str, Any]:
        """Train on all labels so far, store the model, and complete the round."""
        before = None
        if self.plan.stable_rounds is not None and number > 0:
            self._restore(number - 1)
            before = self._predictions()
        started = time.perf_counter()
        self._train(number)
        seconds = time.perf_counter() - started
        unchanged = 0
        if before is not None:
            changed = float(np.mean(before != self._predictions()))
            unchanged = self.unchanged_rounds + 1 if changed < STABLE_SHARE else 0
        done = {
            "metrics": {} if self.test is None else self.learner.measure(*self.test),
            "train_seconds": seconds,
            "unchanged_rounds": unchanged,
        }
        self.journal.keep_model(number, self.learner.save)
        self.journal.write_done(number, done)
        return done

    def _predictions(self) -> np.ndarray:
        """Predict the test items or, without any, the pool."""
        if self.test is None:
            return self.learner.probs(np.arange(self.learner.size)).argmax(axis=1)
        return self.learner.predict(self.test[0])

    def _train(self, number: int) -> None:
        seed = round_seed(self.plan.seed, number, "train")
        self.learner.train(*self._training_labels(number), seed)
        self.trained_round = number

    def _training_labels(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return items, labels and weights as they were after round `number`."""
        count = self.labels_after[number]
        items = np.asarray(list(self.labels)[:count], dtype=np.int64)
        labels = np.asarray(list(self.labels.values())[:count], dtype=np.int64)
        weights = np.asarray(list(self.weights.values())[:count])
        return items, labels, weights if self.plan.weighted else None

    def _restore(self, number: int) -> None:
        """Make the learner what it was after round `number`: as it is, loaded, or trained again."""
        if self.trained_round == number:
            return
        stored = self.journal.model_path(number)
        if stored.exists():
            self.learner.load(stored, *self._training_labels(number))
            self.trained_round = number
        else:
            self._train(number)
