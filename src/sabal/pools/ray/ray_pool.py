"""A pool in shards: every question goes to all of them at once, and few numbers come back.

Sums come back by segment and are added up in the order of the segments, and of equally good items
the lower row is taken: so the answers are those of a pool in memory, to the last digit.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from sabal.core.arrays import to_numpy
from sabal.errors import InputError
from sabal.pools.pool import FILE_ARRAYS, ArrayPool, Pool, Question, Shard, arrays_at
from sabal.pools.ray.id_keys import keys_of, refuse_repeated
from sabal.pools.ray.shards import RowsByShard, Workers
from sabal.predictions import Prediction, Softmax


@dataclass(frozen=True)
class ArrayShape:
    """One array of a pool: the shape of a row, and the dtype."""

    row: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Description:
    """What a shard holds, row for row: the same for all shards of a pool.

    `has` are the arrays that there are, or that follow from these; `ids` is the kind of ids, "" for
    row numbers.
    """

    arrays: dict[str, ArrayShape]
    has: frozenset[str]
    classes: int
    ids: str


class RayPool(Pool):
    """The pool whose shards some workers hold.

    Parameters
    ----------
    workers : Workers
        Whoever holds the shards.
    labeled_features : array, optional
        Of what is labelled already, where the pool's files do not have them.
    threads : int
        BLAS threads of each worker.

    """

    def __init__(
        self, workers: Workers, labeled_features: np.ndarray | None = None, threads: int = 1
    ) -> None:
        self._workers = workers
        self._labeled_features = labeled_features
        self._threads = threads
        self.size = workers.ranges[-1][1]
        self._description = _agreed(workers)
        self._check_labeled()
        if self._description.ids and len(workers.ranges) > 1:
            suspects = workers.suspects()
            if suspects.size:
                refuse_repeated(workers.ask(ids_with_keys, suspects))
        self.ids = _RayIds(self)

    def _check_labeled(self) -> None:
        """Check labelled features that were given here as `ArrayPool` checks its own."""
        shape = self._description.arrays.get("features")
        if self._labeled_features is not None and shape is not None:
            one_row = np.zeros((1, *shape.row), dtype=shape.dtype)
            given = ArrayPool(features=one_row, labeled_features=self._labeled_features)
            self._labeled_features = to_numpy(given.labeled_features)

    @property
    def prediction_type(self) -> type[Prediction]:
        """What kind of prediction the pool has: files know of softmax only."""
        return Softmax

    @property
    def classes(self) -> int:
        """How many classes there are; 0 without a model."""
        return self._description.classes

    @property
    def labeled_features(self) -> np.ndarray:
        """Features of what is labelled already: those given here, or those in the pool's files."""
        if self._labeled_features is None:
            return self._workers.ask_each(labeled_features_of, {0: ()})[0]
        return self._labeled_features

    def given(self) -> list[str]:
        """Return the names of the arrays that were given."""
        return list(self._description.arrays)

    def has(self, name: str) -> bool:
        """Return whether `name` is given, or follows from what is given."""
        here = name == "labeled_features" and self._labeled_features is not None
        return here or name in self._description.has

    def map(self, question: Question, *args: Any) -> list[Any]:
        """Return the answer of every shard, in the order of rows."""
        return self._workers.ask(question, *args)

    def map_rows(self, question: Question, rows: np.ndarray, *args: Any) -> Any:
        """Return what the shards answer about their rows, in the order of `rows`."""
        wanted = RowsByShard(self._workers, rows)
        return wanted.join(self._workers.ask_each(question, wanted.args(*args)))

    def take(self, rows: np.ndarray) -> ArrayPool:
        """Return a pool of some of the items, brought here."""
        arrays = self.map_rows(arrays_at, rows, self.given())
        return ArrayPool(**arrays, ids=self.ids[rows].tolist())

    def rows_here(self, rows: np.ndarray) -> tuple[ArrayPool, np.ndarray]:
        """Return a pool with the features and the predictions of `rows`."""
        names = [name for name in ("features", "probs") if self.has(name)]
        return ArrayPool(**self.map_rows(arrays_at, rows, names)), np.arange(rows.size)

    def share(self, value: Any) -> Any:
        """Return a stand-in for a `value` that many questions carry."""
        return self._workers.share(value)

    def stored_bytes(self, names: Collection[str] | None = None) -> None:
        """Return None: the pool is not brought into one process."""
        return

    def loaded(self, names: Collection[str]) -> NoReturn:
        """Refuse: the pool is not brought into one process."""
        raise InputError("a strategy that streams", "a pool on a cluster", "choose another one")

    def computing(self) -> AbstractContextManager[Any]:
        """Return a context with as many threads as the workers have.

        The last digits of products of matrices depend on how many there are.
        """
        from threadpoolctl import threadpool_limits

        limits: AbstractContextManager[Any] = threadpool_limits(self._threads)
        return limits

    def evidence(self) -> dict[str, Any]:
        """Return what the cluster did."""
        return {"cluster": self._workers.evidence()}


class _RayIds:
    """The ids of a pool in shards, looked up for the few that are asked for."""

    def __init__(self, pool: RayPool) -> None:
        self._pool = pool

    def __len__(self) -> int:
        return self._pool.size

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        # Strings are as long as the longest of a shard, so that their arrays differ in dtype.
        found: np.ndarray = self._pool.map_rows(ids_at, rows)
        return found


def _agreed(workers: Workers) -> Description:
    """Return what all shards hold; they must hold the same."""
    descriptions: list[Description] = workers.ask(describe)
    first = descriptions[0]
    for other, (start, stop) in zip(descriptions, workers.ranges, strict=True):
        if other != first:
            names = sorted({*first.arrays, *other.arrays})
            odd = next((n for n in names if first.arrays.get(n) != other.arrays.get(n)), "id")
            raise InputError(
                f"rows of one shape and kind all over the pool ({odd}: {first.arrays.get(odd)})",
                f"{other.arrays.get(odd)} in rows {start} to {stop}",
                "write every part of the pool in the same way",
            )
    return first


# -- questions ---------------------------------------------------------------------------------


def describe(shard: Shard) -> Description:
    """Return what the arrays of a shard look like."""
    pool = shard.pool
    arrays = {}
    for name in pool.given():
        array = getattr(pool, name)
        arrays[name] = ArrayShape(tuple(array.shape[1:]), str(array.dtype))
    return Description(
        arrays=arrays,
        has=frozenset(name for name in (*FILE_ARRAYS, "labeled_features") if pool.has(name)),
        classes=pool.classes,
        ids="" if shard.ids is None else np.asarray(shard.ids[:1]).dtype.kind,
    )


def ids_at(shard: Shard, rows: np.ndarray) -> np.ndarray:
    """Return the ids of some rows."""
    return rows if shard.ids is None else np.asarray(shard.ids[rows - shard.start])


def labeled_features_of(shard: Shard) -> np.ndarray:
    """Return features of what is labelled already: every shard reads all of them."""
    return to_numpy(shard.pool.labeled_features)


def ids_with_keys(shard: Shard, keys: np.ndarray) -> np.ndarray:
    """Return the ids behind some keys."""
    if shard.ids is None:
        return np.zeros(0, dtype=np.int64)
    own = keys_of(shard.ids, shard.pool.size)
    return np.asarray(shard.ids[np.flatnonzero(np.isin(own, keys))])
