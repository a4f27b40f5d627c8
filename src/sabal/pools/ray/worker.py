"""A worker: a process with a shard, asked by name and answering in bytes."""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from sabal.errors import ClusterError, SabalError
from sabal.pools.ray.keys import repeated
from sabal.pools.ray.recipes import Recipe
from sabal.pools.ray.shard import Shard

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Place:
    """Where an argument belongs that comes beside the others, already unpacked."""

    number: int


class Worker:
    """Reads its shard when the first question comes.

    recipe: of its rows, in a pool of `size` items. threads: of BLAS.
    """

    def __init__(self, recipe: Recipe, size: int, threads: int) -> None:
        limit_threads(threads)
        self._shard = Shard(recipe, size)

    def process(self) -> int:
        """The number of this process."""
        return os.getpid()

    def answer(self, question: str, packed: bytes, *shared: Any) -> bytes:
        """What the shard answers, or the caller's mistake that keeps it from answering."""
        args = pickle.loads(packed)  # noqa: S301  # nosec B301  # from our own driver
        args = [shared[each.number] if isinstance(each, Place) else each for each in args]
        try:
            answer = getattr(self._shard, question)(*args)
        except SabalError as error:
            answer = error
        except MemoryError as error:
            answer = ClusterError(
                f"room for rows {self._shard.start} to {self._shard.stop} in a worker's memory",
                str(error) or "not enough of it",
                "pass memory=, so that they stay on disk, or use more workers",
            )
        return pickle.dumps(answer, protocol=5)

    def keys(self, bucket: int, buckets: int) -> np.ndarray:
        """Keys of ids for another worker; they do not pass through the driver."""
        return self._shard.keys(bucket, buckets)

    def repeated(self, *keys: np.ndarray) -> np.ndarray:
        """Which keys more than one worker has, or one has twice."""
        return repeated(keys)


def limit_threads(count: int) -> None:
    """As many workers as CPUs: more threads would only get in each other's way.

    Libraries that are loaded later read the environment; those that are here already are told.
    """
    for name in THREADS:
        os.environ[name] = str(count)
    from threadpoolctl import threadpool_limits

    threadpool_limits(count)
