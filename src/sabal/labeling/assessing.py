"""Scores the models of several numbers of labels on the same items, for the advice when to stop.

Items that were drawn at random are scored by the models themselves: they represent the pool. Chosen
items are scored by cross-validation; they are harder than the pool, so that their error is too
large, but it falls in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sabal.labeling.store.records import Assessment, TrainingLabel
from sabal.learners.learner import Learner

FOLDS = 5
MAX_STAGES = 8

Train = Callable[[Sequence[TrainingLabel]], Learner | None]
"""Returns a new model that is trained on labels; None if these do not suffice."""


def assess(
    train: Train, labels: Sequence[TrainingLabel], checks: Sequence[TrainingLabel],
    sizes: Sequence[int], *, cross_validate: bool,
) -> Iterator[Assessment]:  # fmt: skip
    """Score the models of the first labels, for each number in `sizes`, on the same items.

    `labels` are in the order in which they were chosen. Without `cross_validate`, which trains five
    models for each number, only `checks` are scored. Yields what is known after each number, so
    that something more urgent can be done in between; the last one is complete.
    """
    sizes = spread(sizes)
    items = len(checks) + (len(labels) if cross_validate else 0)
    folds = fold_numbers(labels)
    right: list[int] = []
    for size in sizes:
        right_checks = _right(train(labels[:size]), checks)
        wrong_checks = len(checks) - right_checks
        found = right_checks
        if cross_validate:
            for fold in range(FOLDS):
                kept = [label for k, label in enumerate(labels[:size]) if folds[k] != fold]
                held = [label for k, label in enumerate(labels) if folds[k] == fold]
                found += _right(train(kept), held)
        right.append(found)
        known = tuple(sizes[: len(right)])
        yield Assessment(known, tuple(right), items, wrong_checks, len(checks))


def fold_numbers(labels: Sequence[TrainingLabel]) -> np.ndarray:
    """Return the fold of each label, from 0 to 4, drawn at random."""
    return np.random.default_rng(0).permutation(np.arange(len(labels)) % FOLDS)


def spread(sizes: Sequence[int]) -> list[int]:
    """Return at most eight numbers, evenly spread on a logarithmic scale, with both ends."""
    distinct = sorted({size for size in sizes if size > 0})
    if len(distinct) <= MAX_STAGES:
        return distinct
    wanted = np.geomspace(distinct[0], distinct[-1], MAX_STAGES)
    nearest = [int(np.abs(np.asarray(distinct) - each).argmin()) for each in wanted]
    return [distinct[k] for k in sorted(set(nearest))]


def _right(head: Learner | None, labels: Sequence[TrainingLabel]) -> int:
    if head is None or not labels:
        return 0
    items = np.asarray([label.item for label in labels], dtype=np.int64)
    predicted = head.probs(items).argmax(axis=1)
    return sum(
        head.class_names[k] == label.label for k, label in zip(predicted, labels, strict=True)
    )
