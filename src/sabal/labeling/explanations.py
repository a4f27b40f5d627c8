"""Why an item was chosen, in terms that can be shown beside it.

uncertainty   how undecided the model was, 0 to 1 (from the margin between its two best classes)
guess         the predicted class and its probability
represents    the number of pool items that are nearer to this item than to the rest of the batch
neighbours    the labelled items that are nearest to it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sabal.core.arrays import row_chunks
from sabal.labeling.store.records import TrainingLabel
from sabal.learners.learner import Learner
from sabal.predictions.uncertainty import margin

NEIGHBOURS = 3


def explain(
    head: Learner,
    batch: np.ndarray,
    pool: np.ndarray,
    labels: Sequence[TrainingLabel],
    key_of: Callable[[int], str],
) -> list[dict[str, Any]]:
    """Return the reasons for every item of a batch that was chosen from the rows in `pool`."""
    rows_BD = head.space(batch)
    why: list[dict[str, Any]] = [
        {"represents": count} for count in _represented(head, rows_BD, pool)
    ]
    guesses = predicted(head, batch)
    neighbours = _neighbours(head, rows_BD, labels, key_of)
    return [
        {**one, **two, **({"neighbours": three} if three else {})}
        for one, two, three in zip(why, guesses, neighbours, strict=True)
    ]


def predicted(head: Learner, items: np.ndarray) -> list[dict[str, Any]]:
    """Return the uncertainty and the guess for each item; empty before the first training."""
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
    head: Learner,
    rows_BD: np.ndarray,
    labels: Sequence[TrainingLabel],
    key_of: Callable[[int], str],
) -> list[list[dict[str, Any]]]:
    if not labels:
        return [[] for _ in rows_BD]
    known_LD = head.space(np.asarray([label.item for label in labels]))
    found = []
    for row_D in rows_BD:
        distances_L = np.linalg.norm(known_LD - row_D, axis=1)
        nearest = np.argsort(distances_L, kind="stable")[:NEIGHBOURS]
        found.append(
            [
                {
                    "item": key_of(labels[k].item),
                    "label": labels[k].label,
                    "distance": float(distances_L[k]),
                }
                for k in nearest
            ]
        )
    return found
