"""Workers on a Ray cluster, each with a shard of the pool, and replaced when it dies.

Questions carry all that their answers depend on (see `sabal.sparse.items`), so that a new worker,
which reads the rows of the old one again, is simply asked what the old one was.
"""

from __future__ import annotations

import contextlib
import pickle
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sabal.errors import ClusterError, SabalError
from sabal.pools.pool import Question
from sabal.pools.ray.actor import ShardActor, SharedArgument
from sabal.pools.ray.session import cpus_of_cluster, ray_module, reason_of
from sabal.pools.ray.shard_sources import ShardSources
from sabal.pools.ray.shards import row_ranges

MAX_DEATHS = 3
"""A question that so many workers die of, one after the other, is not asked again."""

PATIENCE = 300.0
"""Seconds to wait for a machine that has room for a worker."""

INLINE_BYTES = 64 * 2**10
"""Arguments up to here are sent with a question; larger ones are stored once for all workers."""

PASSES = (
    "best_items",
    "descent_sums",
    "most_uncertain",
    "most_uncertain_items",
    "most_informative_rows",
    "largest_priorities",
)
"""Questions that read the whole pool while a batch is chosen."""


class Traffic:
    """What came to the driver: how often each question was asked, and bytes of answers."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.nbytes: Counter[str] = Counter()

    def total(self) -> int:
        """Bytes of all answers."""
        return self.nbytes.total()

    def per_pass(self) -> int:
        """Bytes that a pass over the pool brought, on average."""
        passes = sum(self.asked[name] for name in PASSES)
        return round(sum(self.nbytes[name] for name in PASSES) / max(1, passes))


class RayWorkers:
    """Workers on a cluster that this process is connected to.

    Parameters
    ----------
    sources : ShardSources
        How the shards of the pool are read.
    workers : int
        How many there are, at most.
    threads : int
        BLAS threads of each, which takes as many CPUs.

    """

    def __init__(self, sources: ShardSources, workers: int, threads: int = 1) -> None:
        self._ray = ray_module()
        self._lost = _losses(self._ray)
        self.ranges: Sequence[tuple[int, int]] = row_ranges(sources.size, workers)
        needed, there = len(self.ranges) * threads, cpus_of_cluster()
        if needed > there:
            raise ClusterError(
                f"a cluster with {needed} CPUs for {len(self.ranges)} workers",
                str(there),
                "ask for fewer workers",
            )
        self.traffic = Traffic()
        self.replaced = 0
        self._size = sources.size
        self._kind = self._ray.remote(num_cpus=threads, scheduling_strategy="SPREAD")(ShardActor)
        self._threads = threads
        # Kept here as well: a worker that comes later is given its rows from there.
        self._sources = [self._stored(sources.of(*rows)) for rows in self.ranges]
        self._workers = [self._new(k) for k in range(len(self.ranges))]

    def __enter__(self) -> RayWorkers:
        self._await(self._workers)
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self._workers:
            self._end(worker)

    def share(self, value: Any) -> Any:
        """A stand-in for `value`, which many questions will carry: it is sent once."""
        return self._stored(value)

    def ask(self, question: Question, *args: Any) -> list[Any]:
        """What all shards answer to the question, in their order."""
        packed = self._packed(question, args)
        numbers = range(len(self._workers))
        answers = self._answers(question, dict.fromkeys(numbers, packed))
        return [answers[k] for k in numbers]

    def ask_each(self, question: Question, args: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """What some shards answer, each with arguments of its own."""
        packed = {k: self._packed(question, each) for k, each in args.items()}
        return self._answers(question, packed)

    def suspects(self) -> np.ndarray:
        """Some keys of ids that more than one item has; each worker compares a part of all."""
        for attempt in range(1, MAX_DEATHS + 1):
            try:
                return np.concatenate(self._compared())
            except self._lost as error:
                self._replace_dead(error, attempt)
        return np.concatenate(self._compared())

    def evidence(self) -> dict[str, Any]:
        """Return how many workers there are, and what came back from them."""
        return {
            "workers": len(self.ranges),
            "bytes_per_pass": self.traffic.per_pass(),
            "bytes": self.traffic.total(),
            "replaced": self.replaced,
        }

    def _compared(self) -> list[np.ndarray]:
        count = len(self._workers)
        # All keys are on their way before any is waited for some, so that none waits in a circle.
        keys = [
            [worker.keys.remote(bucket, count) for worker in self._workers]
            for bucket in range(count)
        ]
        pairs = zip(self._workers, keys, strict=True)
        return list(self._ray.get([worker.repeated.remote(*each) for worker, each in pairs]))

    def _answers(self, question: Question, packed: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        name = question.__name__
        self.traffic.asked[name] += 1
        pending = {self._send(k, packed[k]): k for k in packed}
        answers: dict[int, Any] = {}
        deaths: Counter[int] = Counter()
        while pending:
            for ready in self._ray.wait(list(pending))[0]:
                k = pending.pop(ready)
                try:
                    data: bytes = self._ray.get(ready)
                except self._lost as error:
                    deaths[k] += 1
                    self._replace(k, error, deaths[k])
                    pending[self._send(k, packed[k])] = k
                    continue
                self.traffic.nbytes[name] += len(data)
                answers[k] = pickle.loads(data)  # noqa: S301  # nosec B301  # from our own worker
                if isinstance(answers[k], SabalError):
                    raise answers[k]
        return answers

    def _packed(self, question: Question, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments as bytes, and beside them what is stored already."""
        shared = [each for each in args if isinstance(each, self._ray.ObjectRef)]
        places = iter(range(len(shared)))
        reference = self._ray.ObjectRef
        plain = [
            SharedArgument(next(places)) if isinstance(each, reference) else each for each in args
        ]
        data = pickle.dumps([question, *plain], protocol=5)
        return (data if len(data) <= INLINE_BYTES else self._stored(data), *shared)

    def _stored(self, value: Any) -> Any:
        try:
            return self._ray.put(value)
        except self._ray.exceptions.RayError as error:
            raise ClusterError(
                "room for the arrays in Ray's object store",
                _cause(error),
                "save the pool to files that all machines can read, and pass their path",
            ) from None

    def _send(self, k: int, packed: tuple[Any, ...]) -> Any:
        return self._workers[k].answer.remote(*packed)

    def _new(self, k: int) -> Any:
        return self._kind.remote(self._sources[k], self._size, self._threads)

    def _await(self, workers: Sequence[Any]) -> None:
        """Wait until there is a process for each."""
        try:
            self._ray.get([worker.process.remote() for worker in workers], timeout=PATIENCE)
        except self._ray.exceptions.GetTimeoutError:
            raise ClusterError(
                f"room for {len(workers)} more workers on the cluster",
                f"none in {PATIENCE:.0f} seconds",
                "ask for fewer workers, or wait until others have finished",
            ) from None
        except self._ray.exceptions.RayError as error:
            raise ClusterError(
                "workers that start",
                _cause(error),
                "install the same versions of Python, Ray and Sabal on every machine",
            ) from None

    def _replace(self, k: int, error: Exception, deaths: int) -> None:
        """Put a new worker in the place of one that died."""
        if deaths > MAX_DEATHS:
            start, stop = self.ranges[k]
            raise ClusterError(
                f"a worker that survives its work on rows {start} to {stop}",
                f"{deaths} that died, the last one because: {_cause(error)}",
                "see that the machines have enough memory: pass memory=, or use more workers",
            ) from None
        self._end(self._workers[k])
        self._workers[k] = self._new(k)
        self.replaced += 1
        self._await([self._workers[k]])

    def _replace_dead(self, error: Exception, deaths: int) -> None:
        """Find out who died, and put new workers in their places."""
        for k, worker in enumerate(self._workers):
            try:
                self._ray.get(worker.process.remote())
            except self._lost:
                self._replace(k, error, deaths)

    def _end(self, worker: Any) -> None:
        # One that cannot be reached may still be there, and would keep its CPU.
        with contextlib.suppress(self._ray.exceptions.RayError, ValueError):
            self._ray.kill(worker)


def _losses(ray: Any) -> tuple[type[Exception], ...]:
    """What Ray raises when a worker, its machine, or an answer on its way is lost."""
    lost = ray.exceptions
    return (
        lost.RayActorError,
        lost.WorkerCrashedError,
        lost.NodeDiedError,
        lost.ObjectLostError,
        lost.OutOfMemoryError,
    )


def _cause(error: Exception) -> str:
    """What Ray's report says of the reason: its last line, where there is one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else reason_of(error)
