"""What is said between the driver and its shards: small, whatever the pool.

A message names everything that an answer depends on, so that a shard that has just been read again
answers as the one did that was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sabal.core.arrays import top_k
from sabal.sparse.formulate import Draws, Formulation
from sabal.sparse.items import SparseWeights, Survey
from sabal.sparse.operators import Block


@dataclass(frozen=True)
class Setup:
    """What turns rows into items; `key` tells one such message from another."""

    key: int
    formulation: Formulation
    draws: Draws


@dataclass(frozen=True)
class Step:
    """Where a gradient is wanted: see `items.Items.descend`."""

    key: int
    direction: np.ndarray
    z: SparseWeights
    beta: float


@dataclass(frozen=True)
class Part:
    """One part of the outputs: the shape of a row, and the dtype."""

    row: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Description:
    """What a shard holds, row for row: the same for all shards of a pool.

    has: which outputs there are, or follow from these. ids: the kind of ids; "" for row numbers.
    """

    parts: dict[str, Part]
    has: frozenset[str]
    classes: int
    ids: str


@dataclass(frozen=True)
class Built:
    """The items of a shard are there: their sums, and how an atom looks (`empty` has none).

    atom_bytes, dear, input_bytes: see `items.Items`.
    """

    survey: Survey
    empty: Block
    atom_bytes: int
    dear: bool
    input_bytes: int | None


@dataclass(frozen=True)
class Slopes:
    """The sums over a gradient, a row for each segment."""

    totals: np.ndarray
    squares: np.ndarray
    slopes: np.ndarray


@dataclass(frozen=True)
class Top:
    """Some rows and their scores, best first."""

    rows: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, count: int, start: int) -> Top:
        """The best `count` of `scores`, the first of which is row `start`."""
        chosen = top_k(scores, min(count, scores.size))
        return cls(start + chosen, scores[chosen])

    @staticmethod
    def merge(parts: Sequence[Top], count: int) -> Top:
        """The best `count` of all; of equal ones, the lower row."""
        rows = np.concatenate([part.rows for part in parts])
        scores = np.concatenate([part.scores for part in parts])
        order = np.argsort(rows)
        kept = order[top_k(scores[order], min(count, order.size))]
        return Top(rows[kept], scores[kept])
