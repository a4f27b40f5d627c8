"""A worker process that holds a shard and returns pickled answers."""

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
    """The position of an argument that is passed as an object reference."""

    number: int


class ShardActor:
    """Reads its shard on the first question.

    Parameters
    ----------
    source : ShardSource
        Reads the rows.
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
        """Return the id of this process."""
        return os.getpid()

    def answer(self, packed: bytes, *shared: Any) -> bytes:
        """Return the pickled answer of the shard, or the error that the question raised."""
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
        """Return hashes of ids for another worker, without passing through the driver."""
        return shard_keys(self.shard(), bucket, buckets)

    def repeated(self, *keys: np.ndarray) -> np.ndarray:
        """Return the keys that occur more than once."""
        return repeated(keys)

    def shard(self) -> Shard:
        """Return the shard, which is read on first use."""
        if self._shard is None:
            self._shard = read_shard(self._source, self._size)
        return self._shard


def read_shard(source: ShardSource, size: int) -> Shard:
    """Read and check the rows of a shard of a pool with `size` items."""
    try:
        contents = source.read()
        contents.pool.check()
    except InputError as error:
        if not source.start:
            raise
        # Row numbers in the message are relative to this shard.
        where = f"{error.got}, counted from row {source.start} of the pool"
        raise InputError(error.expected, where, error.fix) from None
    return Shard(contents.pool, source.start, size, contents.ids)


def shard_keys(shard: Shard, bucket: int, buckets: int) -> np.ndarray:
    """Return the hashes of the ids that belong to one of several buckets."""
    if shard.ids is None:
        return np.zeros(0, dtype=np.uint64)
    keys = keys_of(shard.ids, shard.pool.size)
    return keys[(keys >> np.uint64(32)) % np.uint64(buckets) == bucket]
