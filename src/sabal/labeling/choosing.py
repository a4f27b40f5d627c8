"""The batch of a round: items that the strategy chooses, mixed with random check items."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sabal.errors import SabalWarning
from sabal.labeling.explanations import explain, predicted
from sabal.labeling.settings import Settings
from sabal.labeling.store.records import CHECK, TRAIN, NewBatchItem, TrainingLabel
from sabal.learners.learner import Learner
from sabal.loop.rounds import choose_batch, round_seed
from sabal.selection import Selection


def choose_batch_with_checks(
    settings: Settings,
    head: Learner,
    part_sizes: Sequence[int],
    number: int,
    labels: Sequence[TrainingLabel],
    taken: set[int],
    capacity: int,
    key_of: Callable[[int], str],
) -> tuple[Selection, list[NewBatchItem]]:
    """Choose the batch of a round, with the check items and the reasons for every item.

    A head that is not trained chooses by the first strategy. `part_sizes` says how many items the
    project began with, and how many were added at a time. `taken` holds the rows that are in a
    batch already, `capacity` the maximal number of items.
    """
    free = np.setdiff1d(np.arange(head.size), np.fromiter(taken, np.int64, len(taken)))
    wanted = min(settings.initial if number == 0 else settings.batch, capacity)
    plan = replace(settings.plan, initial=wanted, batch=wanted)
    if not head.trained:
        plan = replace(plan, strategy=plan.first, options={})
    share = min(round(settings.check_share * wanted), capacity - wanted)
    reserved = reserved_checks(settings, part_sizes)
    checks = reserved[~np.isin(reserved, list(taken))][:share]
    held_back = {*taken, *reserved.tolist()}
    if head.size - len(held_back) < wanted:
        # The pool is nearly labelled: reserved items may be trained on after all.
        held_back = {*taken, *checks.tolist()}
    labeled = [label.item for label in labels]
    with warnings.catch_warnings():
        # Warnings are in the evidence.
        warnings.simplefilter("ignore", SabalWarning)
        batch = choose_batch(head, plan, number, labeled, held_back)
    why = explain(head, batch.indices, np.setdiff1d(free, checks), labels, key_of)
    chosen = zip(batch.indices, batch.weights, batch.scores, why, strict=True)
    drawn = zip(checks, predicted(head, checks), strict=True)
    return batch, interleave(
        [NewBatchItem(int(row), float(w), float(score), TRAIN, r) for row, w, score, r in chosen],
        [NewBatchItem(int(row), role=CHECK, why=reason) for row, reason in drawn],
    )


def reserved_checks(settings: Settings, part_sizes: Sequence[int]) -> np.ndarray:
    """Return the rows that are reserved for measuring, in the order in which rounds use them.

    They are drawn once from the whole pool. Drawn later, they would represent what the batches
    have left over, which is easier than the pool. Data that are added are drawn from in the same
    way, and all parts take turns in proportion to their sizes.
    """
    rng = np.random.default_rng(round_seed(settings.seed, 0, "check"))
    size = sum(part_sizes)
    rows, turns, start = [], [], 0
    for part_size in part_sizes:
        rows.append(start + rng.permutation(part_size))
        # A random start: of many small parts, which take few turns each, any may come first.
        turns.append((np.arange(part_size) + rng.random()) / part_size)
        start += part_size
    order = np.argsort(np.concatenate(turns), kind="stable")
    count = math.ceil(settings.check_share * min(settings.budget, size))
    return np.concatenate(rows)[order][:count]


def interleave(batch: Sequence[NewBatchItem], checks: Sequence[NewBatchItem]) -> list[NewBatchItem]:
    """Return the batch in its order, with the check items spread evenly over it."""
    mixed: list[NewBatchItem] = []
    done = 0
    for k, check in enumerate(checks, 1):
        position = math.ceil(k * len(batch) / (len(checks) + 1))
        mixed += [*batch[done:position], check]
        done = position
    return [*mixed, *batch[done:]]
