"""Why an item was chosen, in terms that can be shown beside it.

uncertainty: how undecided the model was, 0 to 1 (the margin between its two best classes).
guess: the class it would have given, and how probable it held it to be.
represents: how many items of the pool are nearer to this one than to any other of the batch.
neighbours: the labelled items that are nearest to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sabal.core.arrays import row_chunks
from sabal.labeling.store import Lesson
from sabal.learners.learner import Learner
from sabal.predictions.uncertainty import margin

NEIGHBOURS = 3


def reasons(
    head: Learner,
    batch: np.ndarray,
    pool: np.ndarray,
    lessons: Sequence[Lesson],
    key_of: Callable[[int], str],
) -> list[dict[str, Any]]:
    """A reason for every item of `batch`; `pool` is what it was chosen from, both as rows."""
    rows_BD = head.space(batch)
    why: list[dict[str, Any]] = [
        {"represents": count} for count in _represented(head, rows_BD, pool)
    ]
    guesses = beliefs(head, batch)
    neighbours = _neighbours(head, rows_BD, lessons, key_of)
    return [
        {**one, **two, **({"neighbours": three} if three else {})}
        for one, two, three in zip(why, guesses, neighbours, strict=True)
    ]


def beliefs(head: Learner, items: np.ndarray) -> list[dict[str, Any]]:
    """What the model thought of `items`; nothing before it was trained."""
    if not head.trained or not len(items):
        return [{} for _ in items]
    probs_BC = head.probs(items)
    return [
        {
            "uncertainty": float(undecided),
            "guess": {"label": head.class_names[best], "probability": float(probs_C[best])},
        }
        for undecided, probs_C, best in zip(
            margin(probs_BC), probs_BC, probs_BC.argmax(axis=1), strict=True
        )
    ]


def _represented(head: Learner, rows_BD: np.ndarray, pool: np.ndarray) -> list[int]:
    counts = np.zeros(len(rows_BD), dtype=np.int64)
    squares_B = (rows_BD**2).sum(axis=1)
    for part in row_chunks(len(pool), 16 * (rows_BD.shape[1] + len(rows_BD))):
        # |x - b|^2 without |x|^2, which is the same for every b.
        distances_PB = squares_B - 2 * head.space(pool[part]) @ rows_BD.T
        counts += np.bincount(distances_PB.argmin(axis=1), minlength=len(counts))
    return [int(count) for count in counts]


def _neighbours(
    head: Learner, rows_BD: np.ndarray, lessons: Sequence[Lesson], key_of: Callable[[int], str]
) -> list[list[dict[str, Any]]]:
    if not lessons:
        return [[] for _ in rows_BD]
    known_LD = head.space(np.asarray([lesson.item for lesson in lessons]))
    found = []
    for row_D in rows_BD:
        distances_L = np.linalg.norm(known_LD - row_D, axis=1)
        nearest = np.argsort(distances_L, kind="stable")[:NEIGHBOURS]
        found.append(
            [
                {
                    "item": key_of(lessons[k].item),
                    "label": lessons[k].label,
                    "distance": float(distances_L[k]),
                }
                for k in nearest
            ]
        )
    return found
