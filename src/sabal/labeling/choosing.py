"""A batch for people: what the strategy chooses, and check items drawn at random among it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sabal.errors import SabalWarning
from sabal.labeling.settings import Settings
from sabal.labeling.store import Chosen, Lesson
from sabal.labeling.store.records import CHECK, TRAIN
from sabal.labeling.why import beliefs, reasons
from sabal.learners.learner import Learner
from sabal.loop.rounds import choose_batch, round_seed
from sabal.selection import Selection


def choose_for_people(
    settings: Settings,
    head: Learner,
    number: int,
    lessons: Sequence[Lesson],
    taken: set[int],
    room: int,
    key_of: Callable[[int], str],
) -> tuple[Selection, list[Chosen]]:
    """The selection of round `number`, and the batch with its check items and reasons.

    taken: rows that are in a batch already. room: how many items may be chosen at most.
    A head that has learnt nothing chooses by the first strategy.
    """
    free = np.setdiff1d(np.arange(head.size), np.fromiter(taken, np.int64, len(taken)))
    wanted = min(settings.initial if number == 0 else settings.batch, room)
    plan = replace(settings.plan, initial=wanted, batch=wanted)
    if not head.trained:
        plan = replace(plan, strategy=plan.first, options={})
    share = min(round(settings.check_share * wanted), room - wanted)
    reserved = reserved_checks(settings, head.size)
    checks = reserved[~np.isin(reserved, list(taken))][:share]
    held_back = {*taken, *reserved.tolist()}
    if head.size - len(held_back) < wanted:
        # A pool that is nearly labelled: what is reserved may be learnt from after all.
        held_back = {*taken, *checks.tolist()}
    labeled = [lesson.item for lesson in lessons]
    with warnings.catch_warnings():
        # They are in the evidence.
        warnings.simplefilter("ignore", SabalWarning)
        batch = choose_batch(head, plan, number, labeled, held_back)
    why = reasons(head, batch.indices, np.setdiff1d(free, checks), lessons, key_of)
    picked = [
        Chosen(int(item), float(weight), float(score), TRAIN, because)
        for item, weight, score, because in zip(
            batch.indices, batch.weights, batch.scores, why, strict=True
        )
    ]
    drawn = [
        Chosen(int(item), role=CHECK, why=because)
        for item, because in zip(checks, beliefs(head, checks), strict=True)
    ]
    return batch, spread(picked, drawn)


def reserved_checks(settings: Settings, size: int) -> np.ndarray:
    """The rows that are kept for measuring, in the order in which rounds ask for them.

    Drawn once from the whole pool: drawn later, they would stand for what the batches have left
    over, which is easier than the pool.
    """
    rng = np.random.default_rng(round_seed(settings.seed, 0, "check"))
    count = math.ceil(settings.check_share * min(settings.budget, size))
    return rng.permutation(size)[:count]


def spread(batch: Sequence[Chosen], checks: Sequence[Chosen]) -> list[Chosen]:
    """The batch in its order, with the check items evenly among it."""
    mixed: list[Chosen] = []
    done = 0
    for k, check in enumerate(checks, 1):
        position = math.ceil(k * len(batch) / (len(checks) + 1))
        mixed += [*batch[done:position], check]
        done = position
    return [*mixed, *batch[done:]]
