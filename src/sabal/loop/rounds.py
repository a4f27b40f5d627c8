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
from sabal.errors import InputError, counted
from sabal.learners.learner import Learner
from sabal.loop.journal import Journal
from sabal.loop.oracle import Answers, Oracle
from sabal.loop.plan import Plan, Round
from sabal.loop.stopping import BATCHES_AHEAD, NOT_HELPING, project
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
    run = RunState(learner, plan, journal, test)
    for _ in range(plan.rounds + 1):
        run.ask()
        ask_oracle(run, oracle)
        if run.open_items():
            yield run.interrupted()
            return
        current = run.complete()
        yield current
        if run.should_stop(current):
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


class RunState:
    """A run in progress: its labels, its model and the round that is open.

    A round is asked for, told and completed. What the journal has of it already is read.

    Parameters
    ----------
    learner, plan, journal, test
        As in `run_rounds`.
    """

    def __init__(
        self, learner: Learner, plan: Plan, journal: Journal, test: TestData | None = None
    ) -> None:
        for rule in ("target_accuracy", "min_gain"):
            if getattr(plan, rule) is not None and test is None:
                raise InputError(
                    f"test data to measure the accuracy on, for {rule}",
                    "none",
                    f"pass test=(X, y), or leave {rule} out",
                )
        self.learner, self.plan, self.journal, self.test = learner, plan, journal, test
        self.number = 0
        self.labels: dict[int, Any] = {}
        self.skipped: set[int] = set()
        self._labels_after: dict[int, int] = {}
        self._weights: dict[int, float] = {}
        self._trained_round = -1
        self._unchanged_rounds = 0
        self._curve: dict[int, float] = {}

    @property
    def batch(self) -> Selection | None:
        """The batch of the open round; None if it has not been chosen yet."""
        return self.journal.asked(self.number)

    def ask(self) -> Selection:
        """Return the batch of the open round, which is chosen if necessary."""
        batch = self.batch
        if batch is None:
            if self.number > 0:
                self.restore()
            labeled = list(self.labels)
            batch = choose_batch(self.learner, self.plan, self.number, labeled, self.skipped)
            self.journal.write_asked(self.number, batch)
        return batch

    def open_items(self) -> list[int]:
        """Return the items of the open round that have no answer yet."""
        batch, known = self.batch, self.journal.answers(self.number)
        answered = {*known.labels, *known.skipped}
        items = [] if batch is None else batch.indices.tolist()
        return [item for item in items if item not in answered]

    def tell(self, answers: Answers) -> None:
        """Record answers to the open round."""
        if unexpected := {*answers.labels, *answers.skipped} - set(self.open_items()):
            raise InputError(
                "answers to items that were asked for", f"item {min(unexpected)}", "fix the oracle"
            )
        self.journal.add_answers(self.number, answers)

    def complete(self) -> Round:
        """Train on all answers so far, measure, and open the next round.

        Items without an answer can be chosen again.
        """
        batch, answers, number = self.ask(), self.journal.answers(self.number), self.number
        for item, weight in zip(batch.indices.tolist(), batch.weights.tolist(), strict=True):
            if item in answers.labels:
                self.labels[item], self._weights[item] = answers.labels[item], weight
        self.skipped |= answers.skipped
        self._labels_after[number] = len(self.labels)
        done = self.journal.done(number)
        if done is None:
            done = self._train_and_measure()
        self._unchanged_rounds = int(done["unchanged_rounds"])
        if "accuracy" in done["metrics"]:
            self._curve[len(self.labels)] = done["metrics"]["accuracy"]
        self.number += 1
        return Round(
            number,
            batch,
            len(self.labels),
            done["metrics"],
            float(batch.evidence.get("seconds", 0.0)),
            batch.evidence.get("megabytes"),
            float(done["train_seconds"]),
            changed=done.get("changed"),
        )

    def interrupted(self) -> Round:
        """Return the open round as it is, with its open items."""
        batch = self.ask()
        took = float(batch.evidence.get("seconds", 0.0)), batch.evidence.get("megabytes")
        return Round(self.number, batch, len(self.labels), {}, *took, 0.0, tuple(self.open_items()))

    def should_stop(self, current: Round) -> bool:
        """Return whether a stopping rule of the plan is met."""
        return self.stop_reason(current) is not None

    def stop_reason(self, current: Round) -> str | None:
        """Return which stopping rule of the plan is met; None if none is."""
        target, stable = self.plan.target_accuracy, self.plan.stable_rounds
        accuracy = current.metrics.get("accuracy", 0.0)
        if target is not None and accuracy >= target:
            return f"the accuracy is {accuracy:.3f}, and the target {target:g}"
        if stable is not None and self._unchanged_rounds >= stable:
            return (
                f"each of the last {counted(self._unchanged_rounds, 'round')} changed less than "
                f"{STABLE_SHARE:.0%} of the predictions"
            )
        return self._little_to_gain(current)

    def _little_to_gain(self, current: Round) -> str | None:
        if self.plan.min_gain is None or not self._curve:
            return None
        more = BATCHES_AHEAD * max(len(current.batch.indices), 1)
        labels, accuracies = list(self._curve), list(self._curve.values())
        expected = project(labels, accuracies, more, worthwhile=self.plan.min_gain)
        if expected.verdict != NOT_HELPING:
            return None
        return (
            f"{counted(more, 'more label')} would bring about {100 * expected.gain:+.1f} points of "
            f"accuracy ({100 * expected.low:.1f} to {100 * expected.high:.1f})"
        )

    def restore(self) -> None:
        """Make the learner what it was after the last complete round.

        It is that already, or is loaded, or is trained again.
        """
        self._restore(self.number - 1)

    def _train_and_measure(self) -> dict[str, Any]:
        """Train on all labels so far, store the model, and record the round."""
        before = None
        if self.plan.stable_rounds is not None and self.number > 0:
            self.restore()
            before = self._decisions()
        started = time.perf_counter()
        self._train(self.number)
        seconds = time.perf_counter() - started
        done: dict[str, Any] = {
            "metrics": {} if self.test is None else self.learner.measure(*self.test),
            "train_seconds": seconds,
            "unchanged_rounds": 0,
        }
        if before is not None:
            differs_N = (before != self._decisions()).reshape(len(before), -1).any(axis=1)
            done["changed"] = float(np.mean(differs_N))
            if done["changed"] < STABLE_SHARE:
                done["unchanged_rounds"] = self._unchanged_rounds + 1
        self.journal.keep_model(self.number, self.learner.save)
        self.journal.write_done(self.number, done)
        return done

    def _decisions(self) -> np.ndarray:
        """Predict the test items or, without any, the pool."""
        if self.test is None:
            return self.learner.decide_items(np.arange(self.learner.size))
        return self.learner.decide(self.test[0])

    def _train(self, number: int) -> None:
        seed = round_seed(self.plan.seed, number, "train")
        self.learner.train(*self._training_labels(number), seed)
        self._trained_round = number

    def _training_labels(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return items, labels and weights as they were after round `number`."""
        count = self._labels_after[number]
        items = np.asarray(list(self.labels)[:count], dtype=np.int64)
        labels = np.asarray(list(self.labels.values())[:count])
        weights = np.asarray(list(self._weights.values())[:count])
        return items, labels, weights if self.plan.weighted else None

    def _restore(self, number: int) -> None:
        if self._trained_round == number:
            return
        stored = self.journal.model_path(number)
        if stored.exists():
            self.learner.load(stored, *self._training_labels(number))
            self._trained_round = number
        else:
            self._train(number)


def ask_oracle(run: RunState, oracle: Oracle) -> None:
    """Ask for the labels of a batch, until the oracle has no more answers for the rest."""
    while still_open := run.open_items():
        answers = oracle.answer(still_open)
        if not answers.labels and not answers.skipped:
            return
        run.tell(answers)
