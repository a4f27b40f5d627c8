"""A crew: whoever holds the shards of a pool, wherever they are, and answers for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from sabal.core.arrays import segments_of


class Crew(Protocol):
    """Workers with a shard each; shard k has the rows `ranges[k]`."""

    @property
    def ranges(self) -> Sequence[tuple[int, int]]:
        """First row, and row after the last, of every shard in order."""

    def share(self, value: Any) -> Any:
        """A stand-in for `value`, which many questions will carry: it is sent once."""

    def ask(self, question: str, *args: Any) -> list[Any]:
        """What all shards answer to the question (a method of Shard), in their order."""

    def ask_each(self, question: str, args: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """What some shards answer, each with arguments of its own."""

    def suspects(self) -> np.ndarray:
        """Some keys of ids that more than one item has; the shards compare them."""


def shares(size: int, workers: int) -> list[tuple[int, int]]:
    """The rows of every worker: whole segments, as many for each as can be."""
    segments = segments_of(size)
    workers = min(workers, len(segments))
    bounds = [len(segments) * k // workers for k in range(workers + 1)]
    return [(segments[low].start, segments[high - 1].stop) for low, high in pairwise(bounds)]


def most_workers(size: int) -> int:
    """No pool of `size` has work for more."""
    return len(segments_of(size))


class Rows:
    """Row numbers in any order, by the shard that has them."""

    def __init__(self, crew: Crew, rows: np.ndarray) -> None:
        self.rows = np.asarray(rows, dtype=np.int64)
        stops = [stop for _, stop in crew.ranges]
        owners = np.searchsorted(stops, self.rows, side="right")
        self._places = {int(k): np.flatnonzero(owners == k) for k in np.unique(owners)}

    def args(self, *before: Any, after: tuple[Any, ...] = ()) -> dict[int, tuple[Any, ...]]:
        """The arguments of a question about these rows, for every shard that has some."""
        return {k: (*before, self.rows[at], *after) for k, at in self._places.items()}

    def together(self, answers: Mapping[int, np.ndarray]) -> np.ndarray:
        """An array with a row for each, out of what the shards said of theirs."""
        joined = np.concatenate([answers[k] for k in self._places])
        order = np.concatenate(list(self._places.values()))
        found = np.empty_like(joined)
        found[order] = joined
        return found
