"""A sharded pool: questions run on all shards in parallel, and return a few numbers.

Sums are returned by segment and added in segment order, and the lower row wins ties, so results
are identical to those of a pool in memory.
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
from sabal.predictions import Gaussian, Prediction
from sabal.predictions.gaussian import VarianceUnits, largest_variances, variance_sums


@dataclass(frozen=True)
class ArrayShape:
    """One array of a pool: the shape of a row, and the dtype."""

    row: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Description:
    """The arrays of a shard; the same for all shards of a pool.

    `has` are the arrays that are given or can be derived; `ids` is the dtype kind of the ids, ""
    for row numbers.
    """

    arrays: dict[str, ArrayShape]
    has: frozenset[str]
    classes: int
    ids: str
    prediction_type: type[Prediction]


class RayPool(Pool):
    """A pool with one shard per worker.

    Parameters
    ----------
    workers : Workers
        The workers that hold the shards.
    labeled_features : array, optional
        Features of the labelled items; those in the pool's files by default.
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
        self._units = self._find_units()
        self._check_labeled()
        if self._description.ids and len(workers.ranges) > 1:
            suspects = workers.suspects()
            if suspects.size:
                refuse_repeated(workers.ask(ids_with_keys, suspects))
        self.ids = _RayIds(self)

    def _find_units(self) -> VarianceUnits | None:
        """Return the units of variances, which depend on all of them."""
        if not (self.prediction_type is Gaussian and self.has("probs")):
            return None
        largest_O = np.max(self._workers.ask(largest_variances_of), axis=0)
        sums_SO = np.concatenate(self._workers.ask(variance_sums_of, largest_O))
        return VarianceUnits.from_sums(largest_O, sums_SO, self.size)

    def _in_units(self, question: Question) -> Question:
        """Return the question in the units of the whole pool, where there are any."""
        return question if self._units is None else InUnits(question, self._units)

    def _check_labeled(self) -> None:
        """Check given labelled features in the same way as `ArrayPool`."""
        shape = self._description.arrays.get("features")
        if self._labeled_features is not None and shape is not None:
            one_row = np.zeros((1, *shape.row), dtype=shape.dtype)
            given = ArrayPool(features=one_row, labeled_features=self._labeled_features)
            self._labeled_features = to_numpy(given.labeled_features)

    @property
    def prediction_type(self) -> type[Prediction]:
        """The type of the prediction."""
        return self._description.prediction_type

    @property
    def classes(self) -> int:
        """The number of classes; 0 without a prediction."""
        return self._description.classes

    @property
    def labeled_features(self) -> np.ndarray:
        """Features of the labelled items, given or from the pool's files."""
        if self._labeled_features is None:
            return self._workers.ask_each(labeled_features_of, {0: ()})[0]
        return self._labeled_features

    def given(self) -> list[str]:
        """Return the names of the arrays that were given."""
        return list(self._description.arrays)

    def has(self, name: str) -> bool:
        """Return whether `name` is given or can be derived."""
        here = name == "labeled_features" and self._labeled_features is not None
        return here or name in self._description.has

    def map(self, question: Question, *args: Any) -> list[Any]:
        """Return the answer of every shard, in row order."""
        return self._workers.ask(self._in_units(question), *args)

    def map_rows(self, question: Question, rows: np.ndarray, *args: Any) -> Any:
        """Return the answers of the shards for their rows, in the order of `rows`."""
        wanted = RowsByShard(self._workers, rows)
        question = self._in_units(question)
        return wanted.join(self._workers.ask_each(question, wanted.args(*args)))

    def take(self, rows: np.ndarray) -> ArrayPool:
        """Return a pool of some of the items, in this process."""
        arrays = self.map_rows(arrays_at, rows, self.given())
        return ArrayPool(**arrays, ids=self.ids[rows].tolist(), loss=self.prediction_type.loss)

    def rows_here(self, rows: np.ndarray) -> tuple[ArrayPool, np.ndarray]:
        """Return a pool with the features and the predictions of `rows`."""
        names = [name for name in ("features", "probs") if self.has(name)]
        if self._units is not None:
            names = self.given()
        arrays = self.map_rows(arrays_at, rows, names)
        pool = ArrayPool(**arrays, loss=self.prediction_type.loss)
        if isinstance(pool.prediction, Gaussian):
            pool.prediction.units = self._units
        return pool, np.arange(rows.size)

    def share(self, value: Any) -> Any:
        """Return a reference to a `value` used by many questions."""
        return self._workers.share(value)

    def stored_bytes(self, names: Collection[str] | None = None) -> None:
        """Return None, as the pool is never loaded into one process."""
        return

    def loaded(self, names: Collection[str]) -> NoReturn:
        """Raise, as the pool is never loaded into one process."""
        raise InputError("a strategy that streams", "a pool on a cluster", "choose another one")

    def computing(self) -> AbstractContextManager[Any]:
        """Return a context with as many threads as the workers have.

        The rounding of matrix products depends on the number of threads.
        """
        from threadpoolctl import threadpool_limits

        limits: AbstractContextManager[Any] = threadpool_limits(self._threads)
        return limits

    def evidence(self) -> dict[str, Any]:
        """Return statistics of the cluster."""
        return {"cluster": self._workers.evidence()}


class _RayIds:
    """The ids of a sharded pool, read on demand."""

    def __init__(self, pool: RayPool) -> None:
        self._pool = pool

    def __len__(self) -> int:
        return self._pool.size

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        # String arrays are as wide as the longest id of a shard, so their dtypes may differ.
        found: np.ndarray = self._pool.map_rows(ids_at, rows)
        return found


def _agreed(workers: Workers) -> Description:
    """Return the description that all shards share; raise if they differ."""
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
    """Return the description of a shard."""
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
        prediction_type=pool.prediction_type,
    )


@dataclass(frozen=True, eq=False)
class InUnits:
    """A question to a shard whose variances are in the units of the whole pool."""

    question: Question
    units: VarianceUnits

    @property
    def __name__(self) -> str:
        """The name of the question, by which traffic is counted."""
        return self.question.__name__

    def __call__(self, shard: Shard, *args: Any) -> Any:
        """Return the answer of the shard."""
        if isinstance(shard.pool.prediction, Gaussian):
            shard.pool.prediction.units = self.units
        return self.question(shard, *args)


def largest_variances_of(shard: Shard) -> np.ndarray:
    """Return the largest variance of each output in a shard."""
    return largest_variances(shard.pool.variances)


def variance_sums_of(shard: Shard, largest_O: np.ndarray) -> np.ndarray:
    """Return the sums of variances in each segment of a shard."""
    return variance_sums(shard.pool.variances, largest_O, shard.segments)


def ids_at(shard: Shard, rows: np.ndarray) -> np.ndarray:
    """Return the ids of some rows."""
    return rows if shard.ids is None else np.asarray(shard.ids[rows - shard.start])


def labeled_features_of(shard: Shard) -> np.ndarray:
    """Return the features of the labelled items, which every shard reads."""
    return to_numpy(shard.pool.labeled_features)


def ids_with_keys(shard: Shard, keys: np.ndarray) -> np.ndarray:
    """Return the ids behind some keys."""
    if shard.ids is None:
        return np.zeros(0, dtype=np.int64)
    own = keys_of(shard.ids, shard.pool.size)
    return np.asarray(shard.ids[np.flatnonzero(np.isin(own, keys))])
