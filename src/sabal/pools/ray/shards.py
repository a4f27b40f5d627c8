"""The shards of a pool: their rows, and the protocol of the workers that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from sabal.core.arrays import segments_of
from sabal.pools.pool import Question


class Workers(Protocol):
    """Workers with a shard each; shard k has the rows `ranges[k]`."""

    @property
    def ranges(self) -> Sequence[tuple[int, int]]:
        """First row, and row after the last, of every shard in order."""

    def share(self, value: Any) -> Any:
        """Return a reference to a `value` used by many questions."""

    def ask(self, question: Question, *args: Any) -> list[Any]:
        """Return the answers of all shards, in row order."""

    def ask_each(self, question: Question, args: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Return the answers of some shards, each with its own arguments."""

    def suspects(self) -> np.ndarray:
        """Return some keys of repeated ids."""

    def evidence(self) -> dict[str, Any]:
        """Return statistics of the work so far."""


def row_ranges(size: int, workers: int) -> list[tuple[int, int]]:
    """Return the rows of every worker: whole segments, split evenly."""
    segments = segments_of(size)
    workers = min(workers, len(segments))
    bounds = [len(segments) * k // workers for k in range(workers + 1)]
    return [(segments[low].start, segments[high - 1].stop) for low, high in pairwise(bounds)]


def max_workers(size: int) -> int:
    """Return the maximum number of workers for a pool of `size` items."""
    return len(segments_of(size))


class RowsByShard:
    """Row numbers in any order, grouped by shard."""

    def __init__(self, workers: Workers, rows: np.ndarray) -> None:
        self.rows = np.asarray(rows, dtype=np.int64)
        stops = [stop for _, stop in workers.ranges]
        owners = np.searchsorted(stops, self.rows, side="right")
        self._places = {int(k): np.flatnonzero(owners == k) for k in np.unique(owners)}

    def args(self, *after: Any) -> dict[int, tuple[Any, ...]]:
        """Return the arguments of a question about these rows, for each shard involved."""
        return {k: (self.rows[at], *after) for k, at in self._places.items()}

    def join(self, answers: Mapping[int, Any]) -> Any:
        """Return the answers of the shards combined, in the order of the rows."""
        first = next(iter(answers.values()))
        if isinstance(first, dict):
            return {n: self.join({k: each[n] for k, each in answers.items()}) for n in first}
        if isinstance(first, tuple):
            numbers = range(len(first))
            return tuple(self.join({k: each[n] for k, each in answers.items()}) for n in numbers)
        joined = np.concatenate([answers[k] for k in self._places])
        order = np.concatenate(list(self._places.values()))
        found = np.empty_like(joined)
        found[order] = joined
        return found
