"""A worker: a process with a shard, which answers in bytes."""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from sabal.core.threads import limit_threads
from sabal.errors import ClusterError, InputError, SabalError
from sabal.pools.pool import Shard
from sabal.pools.ray.id_keys import keys_of, repeated
from sabal.pools.ray.shard_sources import ShardSource


@dataclass(frozen=True)
class SharedArgument:
    """Where an argument belongs that comes beside the others, already unpacked."""

    number: int


class ShardActor:
    """Reads its shard when the first question comes.

    Parameters
    ----------
    source : ShardSource
        How its rows are read.
    size : int
        The size of the pool.
    threads : int
        BLAS threads.

    """

    def __init__(self, source: ShardSource, size: int, threads: int) -> None:
        limit_threads(threads)
        self._source, self._size = source, size
        self._shard: Shard | None = None

    def process(self) -> int:
        """Return the number of this process."""
        return os.getpid()

    def answer(self, packed: bytes, *shared: Any) -> bytes:
        """Return the shard's answer, or the caller's mistake that keeps it from answering."""
        question, *args = pickle.loads(packed)  # noqa: S301  # nosec B301  # from our own driver
        args = [shared[each.number] if isinstance(each, SharedArgument) else each for each in args]
        try:
            answer = question(self.shard(), *args)
        except SabalError as error:
            answer = error
        except MemoryError as error:
            start, stop = self._source.start, self._source.stop
            answer = ClusterError(
                f"room for rows {start} to {stop} in a worker's memory",
                str(error) or "not enough of it",
                "pass memory=, so that they stay on disk, or use more workers",
            )
        return pickle.dumps(answer, protocol=5)

    def keys(self, bucket: int, buckets: int) -> np.ndarray:
        """Return keys of ids for another worker; they do not pass through the driver."""
        return shard_keys(self.shard(), bucket, buckets)

    def repeated(self, *keys: np.ndarray) -> np.ndarray:
        """Return which keys more than one worker has, or one has twice."""
        return repeated(keys)

    def shard(self) -> Shard:
        """Return the shard, which is read on first use."""
        if self._shard is None:
            self._shard = read_shard(self._source, self._size)
        return self._shard


def read_shard(source: ShardSource, size: int) -> Shard:
    """Read and check the rows of a shard, of a pool of `size` items."""
    try:
        contents = source.read()
        contents.pool.check()
    except InputError as error:
        if not source.start:
            raise
        # The rows that a message names are those of this shard.
        where = f"{error.got}, counted from row {source.start} of the pool"
        raise InputError(error.expected, where, error.fix) from None
    return Shard(contents.pool, source.start, size, contents.ids)


def shard_keys(shard: Shard, bucket: int, buckets: int) -> np.ndarray:
    """Return a number for every id: those that go into one of several buckets."""
    if shard.ids is None:
        return np.zeros(0, dtype=np.uint64)
    keys = keys_of(shard.ids, shard.pool.size)
    return keys[(keys >> np.uint64(32)) % np.uint64(buckets) == bucket]
