"""`sabal.Loop`: a loop in a notebook. Ask for a batch, tell its labels, fit, and again."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Never

import numpy as np

from sabal.core.checks import check_ids, check_whole
from sabal.core.files import make_folder
from sabal.errors import FileError, InputError, UnknownNameError, counted, did_you_mean, warn
from sabal.learners.any_estimator import AnyEstimatorLearner
from sabal.learners.learner import Learner
from sabal.loop.journal import Journal
from sabal.loop.oracle import Answers
from sabal.loop.plan import Plan, Round
from sabal.loop.rounds import RunState, TestData
from sabal.pools.frames import index_ids
from sabal.predictions.from_estimator import rows_of
from sabal.selection import Selection
from sabal.strategies.registry import (
    StrategyName,
    make_strategy,
    option_names,
    plain_options,
    strategies,
)

TOLD = "told"
"""The strategy of a round whose labels were told without being asked for."""

Callback = Callable[["Loop", Round], object]


class Loop:
    """Keeps the pool, the labels and the model of a loop, and every step of it on disk.

    The rounds, seeds and files are those of `sabal simulate` and of the labelling app: the same
    answers to the same seed give the same batches.

    Parameters
    ----------
    model : estimator or Learner
        A scikit-learn classifier or regressor, as in `sabal.query`, which is cloned; or a
        `sabal.loop.Learner`.
    X : array, sparse matrix, DataFrame or list
        All items, labelled or not.
    ids : sequence, optional
        The ids of the items; by default the index of a pandas frame, or row numbers.
    strategy, options
        How batches are chosen, as in `sabal.select`.
    first : {"random", "typiclust"}
        How the first batch is chosen, when there is no model.
    features : array, optional
        What tells items apart, where that is not what the model sees.
    weighted : bool
        Whether the weights of a batch count in training.
    test : tuple of arrays, optional
        Items and labels to measure every round on, which are never trained on.
    target_accuracy : float, optional
        `should_stop` once the accuracy on the test data reaches it.
    stable_rounds : int, optional
        `should_stop` once this many rounds in a row have changed less than 1 % of the predictions.
    min_gain : float, optional
        `should_stop` once five more batches would probably bring less accuracy on the test data
        than this share; see `sabal.loop.stopping`.
    folder : path, optional
        Where the loop is kept. If there is a loop in it already, it goes on where it was.
    callbacks : sequence of callables
        Each is called as ``callback(loop, round)`` after every round.
    random_state : int
        Determines every random number of the loop.

    Examples
    --------
    >>> loop = sabal.Loop(LogisticRegression(), X)  # doctest: +SKIP
    >>> while not loop.should_stop():
    ...     batch = loop.ask(20)
    ...     loop.tell(batch.ids, labels_of(batch.ids))
    ...     loop.fit()
    """

    def __init__(
        self,
        model: Any,
        X: Any = None,
        *,
        ids: Any = None,
        strategy: StrategyName | str = "sabal",
        options: dict[str, Any] | None = None,
        first: str = "random",
        features: Any = None,
        weighted: bool = False,
        test: TestData | None = None,
        target_accuracy: float | None = None,
        stable_rounds: int | None = 3,
        min_gain: float | None = None,
        folder: str | Path | None = None,
        callbacks: Sequence[Callback] = (),
        random_state: int = 0,
        **unknown: Never,
    ) -> None:
        _refuse(unknown, strategy)
        _check_test(test)
        check_whole(random_state, "random_state", minimum=0)
        plan = Plan(
            initial=1,
            batch=1,
            rounds=0,
            strategy=strategy,
            options=options or {},
            first=first,
            weighted=weighted,
            target_accuracy=target_accuracy,
            stable_rounds=stable_rounds,
            min_gain=min_gain,
            seed=random_state,
        )
        make_strategy(strategy, plain_options(plan.options))
        self.learner = _learner(model, X, features)
        self.callbacks = list(callbacks)
        self.rounds: list[Round] = []
        if folder is None:
            folder = tempfile.mkdtemp(prefix="sabal-loop-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._ids = _ids_of(self.learner, X, ids)
        self._row_of = {item: row for row, item in enumerate(self._ids.tolist())}
        self._run = RunState(self.learner, plan, Journal(folder), test)
        self._run.journal.bind(self._config(plan), may_change=MAY_CHANGE)
        self._resume()

    # -- the loop ----------------------------------------------------------------------------

    def ask(self, n: int) -> Selection:
        """Return `n` items to label, or what is still open of the last batch.

        Labels that the model has not seen yet are trained on first. The last batch is smaller, with
        a warning, if fewer than `n` items are left.
        """
        check_whole(n, "n")
        if self._run.batch is not None and not self._run.open_items():
            self.fit()
        if self._run.batch is None:
            free = self.learner.size - len(self._run.labels) - len(self._run.skipped)
            if not free:
                raise InputError("items without a label", "none left", "the loop is complete")
            if n > free:
                warn(f"only {counted(free, 'item')} of the {n:,} asked for: no more are left")
            self._run.plan = replace(self._run.plan, initial=n, batch=n)
        return self._open_part(self._run.ask())

    def tell(self, ids: Any, labels: Any = None) -> None:
        """Record the labels of some items; None or NaN for an item that cannot be labelled.

        Labels come in any order, a few at a time, for items of the last batch. Labels that you have
        from the beginning are told before the first `ask`.

        Parameters
        ----------
        ids : sequence or mapping
            The ids of the items; or a dict from ids to labels, or a pandas Series with the ids as
            its index.
        labels : sequence, optional
            Their labels.
        """
        pairs = _pairs(ids, labels)
        rows = {self._row(item): _plain(label) for item, label in pairs}
        if self._run.batch is None:
            self._open_round_of(list(rows))
        unasked = set(rows) - set(self._run.open_items())
        if unasked:
            item, known = self._ids[min(unasked)], min(unasked) in self.labels_by_row()
            raise InputError(
                "labels of items of the last batch",
                f"{item!s}, which {'has a label already' if known else 'was not asked'}",
                "leave it out" if known else "call fit() first, or leave it out",
            )
        skipped = frozenset(row for row, label in rows.items() if label is None)
        given = {row: label for row, label in rows.items() if label is not None}
        self._run.tell(Answers(given, skipped))

    def fit(self) -> Round:
        """Train on all labels so far, measure, and complete the round.

        Items of the batch without a label go back to the pool.
        """
        answers = self._run.journal.answers(self._run.number)
        if not answers.labels and not self._run.labels:
            raise InputError("labels to train on", "none", "tell some first")
        if self._run.batch is None or not (answers.labels or answers.skipped):
            self._run.restore()
            return self.rounds[-1]
        current = self._complete()
        for callback in self.callbacks:
            callback(self, current)
        return current

    def should_stop(self) -> bool:
        """Return whether more labels are unlikely to help; `stop_reason` says why."""
        return self.stop_reason is not None

    @property
    def stop_reason(self) -> str | None:
        """Why to stop: a rule of this loop, or no items left; None to go on."""
        if len(self._run.labels) + len(self._run.skipped) >= self.learner.size:
            return "every item of the pool is labelled"
        return self._run.stop_reason(self.rounds[-1]) if self.rounds else None

    def curve(self) -> list[dict[str, Any]]:
        """Return a row for every round: its number, labels, metrics and seconds.

        `changed` is the share of the predictions that the round changed.
        """
        return [
            {
                "round": each.number,
                "labels": each.labels,
                **each.metrics,
                "changed": each.changed,
                "select_seconds": each.select_seconds,
                "train_seconds": each.train_seconds,
            }
            for each in self.rounds
        ]

    # -- what it holds -----------------------------------------------------------------------

    @property
    def model(self) -> Any:
        """The model as trained in the last round; of a `Learner`, the learner itself."""
        self._check_trained()
        self._run.restore()
        return getattr(self.learner, "model", self.learner)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions of the model of the last round."""
        self._check_trained()
        self._run.restore()
        return self.learner.predict(X)

    @property
    def labels(self) -> dict[Any, Any]:
        """The labels so far, by id, with those that the model has not seen yet."""
        return {self._ids[row].item(): label for row, label in self.labels_by_row().items()}

    def labels_by_row(self) -> dict[int, Any]:
        """Return the labels so far, by row of `X`."""
        return {**self._run.labels, **self._run.journal.answers(self._run.number).labels}

    @property
    def folder(self) -> Path:
        """Where the loop is kept."""
        return self._run.journal.folder

    def save(self, folder: str | Path) -> Path:
        """Copy the loop to a new folder, from which ``Loop(..., folder=folder)`` goes on."""
        target = Path(folder)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise FileError("a new folder", f"{target}, which exists", "choose another")
        make_folder(target.absolute().parent)
        shutil.copytree(self.folder, target, dirs_exist_ok=True)
        return target

    def __repr__(self) -> str:
        metrics = self.rounds[-1].metrics if self.rounds else {}
        shown = "".join(f", {name} {value:.3f}" for name, value in metrics.items())
        labels, size = len(self.labels_by_row()), self.learner.size
        rounds = counted(len(self.rounds), "round")
        return f"Loop: {labels:,} of {counted(size, 'item')} labelled in {rounds}{shown}"

    # -- inside ------------------------------------------------------------------------------

    def _resume(self) -> None:
        """Read every round that is complete."""
        for number in count():
            if self._run.journal.done(number) is None:
                return
            self._complete()

    def _complete(self) -> Round:
        """Complete a round, or read it; its batch has the caller's ids."""
        current = self._run.complete()
        batch = replace(current.batch, ids=self._ids[current.batch.indices])
        self.rounds.append(replace(current, batch=batch))
        return self.rounds[-1]

    def _config(self, plan: Plan) -> dict[str, Any]:
        listed = json.dumps(self._ids.tolist()).encode()
        return {
            "ids": hashlib.sha256(listed).hexdigest(),
            "items": self.learner.size,
            "seed": plan.seed,
            "strategy": plan.strategy,
            "options": plan.options,
            "first": plan.first,
            "weighted": plan.weighted,
        }

    def _open_part(self, batch: Selection) -> Selection:
        """Return the items of a batch without an answer, with the caller's ids."""
        open_items = set(self._run.open_items())
        rows = [k for k, item in enumerate(batch.indices.tolist()) if item in open_items]
        chosen = batch.indices[rows]
        return replace(
            batch,
            indices=chosen,
            ids=self._ids[chosen],
            weights=batch.weights[rows],
            scores=batch.scores[rows],
        )

    def _open_round_of(self, rows: list[int]) -> None:
        """Begin a round with items that were not asked for."""
        known = {*self._run.labels, *self._run.skipped}
        indices = np.array([row for row in rows if row not in known], dtype=np.int64)
        ones = np.ones(indices.size)
        told = Selection(indices, indices, ones, np.zeros(indices.size), TOLD)
        if indices.size:
            self._run.journal.write_asked(self._run.number, told)

    def _row(self, item: Any) -> int:
        key = item.item() if isinstance(item, np.generic) else item
        if not isinstance(key, str | int) or key not in self._row_of:
            raise InputError("ids of the pool", repr(key), "pass the ids that ask() returned")
        return self._row_of[key]

    def _check_trained(self) -> None:
        if not self.rounds:
            raise InputError("a trained model", "none yet", "tell some labels and call fit()")


MAY_CHANGE = ("strategy", "options", "first", "weighted")
"""What may differ when a loop goes on: it changes later rounds, and none before."""


MEANT = {
    "seed": "did you mean random_state?",
    "y": "tell the labels that you have, loop.tell(ids, labels), before the first ask",
    "labels": "tell the labels that you have, loop.tell(ids, labels), before the first ask",
    "X_test": "pass test=(X_test, y_test)",
    "y_test": "pass test=(X_test, y_test)",
    "batch_size": "pass it to loop.ask",
    "budget": "pass it to loop.ask",
}
"""What to do instead of passing these to a loop."""


def _refuse(unknown: Mapping[str, Any], strategy: str) -> None:
    """Raise an UnknownNameError about the first of these arguments."""
    known = [name for name in inspect.signature(Loop).parameters if name != "unknown"]
    for name in unknown:
        fix = MEANT.get(name, did_you_mean(name, known))
        if strategy in strategies() and name in option_names(strategies()[strategy]):
            fix = f"it is an option of {strategy!r}: pass options={{{name!r}: ...}}"
        raise UnknownNameError(f"arguments of Loop ({', '.join(known)})", repr(name), fix)


def _check_test(test: Any) -> None:
    """Raise an InputError unless there are test items and as many labels, or none."""
    if test is None:
        return
    if not isinstance(test, tuple | list) or len(test) != 2:
        raise InputError("test data as test=(X, y)", f"a {type(test).__name__}", "pass both")
    items, labels = rows_of(test[0]), rows_of(test[1])
    if items != labels:
        raise InputError(
            "a label for every item of the test data",
            f"{counted(items, 'item')} and {counted(labels, 'label')}",
            "pass test=(X, y) with as many of each",
        )


def _learner(model: Any, X: Any, features: Any) -> Learner:
    if isinstance(model, Learner):
        if X is not None or features is not None:
            raise InputError(
                "a learner, which knows its pool", "X or features beside it", "leave them out"
            )
        return model
    if X is None:
        raise InputError("the items, X", "none", "pass Loop(model, X)")
    return AnyEstimatorLearner(model, X, features)


def _ids_of(learner: Learner, X: Any, ids: Any) -> np.ndarray:
    if ids is None:
        ids = index_ids(X)
    return np.arange(learner.size) if ids is None else check_ids(ids, learner.size)


def _pairs(ids: Any, labels: Any) -> list[tuple[Any, Any]]:
    series = labels is None and getattr(ids, "ndim", 0) == 1 and index_ids(ids) is not None
    if isinstance(ids, Mapping) or series:
        if labels is not None:
            raise InputError("a dict of labels, or ids and labels", "both", "pass one of them")
        return list(ids.items())
    if isinstance(ids, Selection):
        ids = ids.ids
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        ids, labels = [ids], [labels]
    listed, given = list(ids), [] if labels is None else list(labels)
    if len(listed) != len(given):
        raise InputError(
            "a label for every id",
            f"{counted(len(listed), 'id')} and {counted(len(given), 'label')}",
            "pass None to skip",
        )
    return list(zip(listed, given, strict=True))


def _plain(label: Any) -> Any:
    """Return a label in types that JSON has; None for a missing one."""
    if isinstance(label, np.ndarray | list | tuple):
        return [_plain(each) for each in label]
    value = label.item() if isinstance(label, np.generic) else label
    if value is None or type(value).__name__ == "NAType":
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    if not isinstance(value, str | int | float | bool):
        raise InputError("labels as words or numbers", repr(type(label)), "convert them first")
    return value
