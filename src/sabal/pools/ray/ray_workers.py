"""Workers on a Ray cluster that hold a shard each, and are replaced when they die.

Questions are stateless (see `sabal.sparse.items`), so a replacement reads the rows of the lost
worker again and answers the same question.
"""

from __future__ import annotations

import contextlib
import pickle
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sabal.errors import ClusterError, SabalError, warn
from sabal.pools.pool import Question
from sabal.pools.ray.actor import ShardActor, SharedArgument
from sabal.pools.ray.session import cpus_of_cluster, ray_module, reason_of
from sabal.pools.ray.shard_sources import ShardSources
from sabal.pools.ray.shards import row_ranges

MAX_DEATHS = 3  # the maximum number of consecutive worker failures on one question
START_SECONDS = 300.0  # seconds to wait for a worker to be scheduled
WAITING = (
    "the cluster has not yet the {} CPUs of {} workers, but {}: waiting for more, at most {:.0f} "
    "seconds"
)
INLINE_BYTES = 64 * 2**10  # larger arguments are put into the object store once for all workers

PASSES = (
    "best_items",
    "descent_sums",
    "most_uncertain",
    "most_uncertain_items",
    "most_informative_rows",
    "largest_priorities",
)
"""Questions that read the whole pool during a selection."""


class Traffic:
    """The number of calls and the bytes of answers, for each question."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.nbytes: Counter[str] = Counter()

    def total(self) -> int:
        """Return the bytes of all answers."""
        return self.nbytes.total()

    def per_pass(self) -> int:
        """Return the mean bytes of answers per pass over the pool."""
        passes = sum(self.asked[name] for name in PASSES)
        return round(sum(self.nbytes[name] for name in PASSES) / max(1, passes))


class RayWorkers:
    """Workers on a cluster that this process is connected to.

    Parameters
    ----------
    sources : ShardSources
        The sources of the shards.
    workers : int
        The maximum number of workers.
    threads : int
        BLAS threads, and CPUs, of each worker.
    memory : int, optional
        Bytes that each worker may take, which are reserved on its machine.
    """

    def __init__(
        self, sources: ShardSources, workers: int, threads: int = 1, memory: int | None = None
    ) -> None:
        self._ray = ray_module()
        self._lost = _losses(self._ray)
        self.ranges: Sequence[tuple[int, int]] = row_ranges(sources.size, workers)
        needed, there = len(self.ranges) * threads, cpus_of_cluster()
        if needed > there:
            warn(WAITING.format(needed, len(self.ranges), there, START_SECONDS))
        self.traffic = Traffic()
        self.replaced = 0
        self._closed = False
        self._size = sources.size
        self._kind = self._ray.remote(
            num_cpus=threads, memory=memory, scheduling_strategy="SPREAD"
        )(ShardActor)
        self._threads, self._memory = threads, memory
        # The references are kept so that a replacement can read its rows.
        self._sources = [self._stored(sources.of(*rows)) for rows in self.ranges]
        self._workers = [self._new(k) for k in range(len(self.ranges))]

    def __enter__(self) -> RayWorkers:
        try:
            self._await(self._workers)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._closed = True
        for worker in self._workers:
            self._end(worker)

    def share(self, value: Any) -> Any:
        """Return a reference to a `value` used by many questions."""
        self._check_open()
        return self._stored(value)

    def _check_open(self) -> None:
        if self._closed:
            raise ClusterError(
                "an open pool", "one that was closed", "select from it inside its `with` block"
            )

    def ask(self, question: Question, *args: Any) -> list[Any]:
        """Return the answers of all shards, in row order."""
        packed = self._packed(question, args)
        numbers = range(len(self._workers))
        answers = self._answers(question, dict.fromkeys(numbers, packed))
        return [answers[k] for k in numbers]

    def ask_each(self, question: Question, args: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Return the answers of some shards, each with its own arguments."""
        packed = {k: self._packed(question, each) for k, each in args.items()}
        return self._answers(question, packed)

    def suspects(self) -> np.ndarray:
        """Return some keys of repeated ids; each worker compares one bucket of keys."""
        for attempt in range(1, MAX_DEATHS + 1):
            try:
                return np.concatenate(self._compared())
            except self._lost as error:
                self._replace_dead(error, attempt)
        return np.concatenate(self._compared())

    def evidence(self) -> dict[str, Any]:
        """Return the number of workers, their traffic and replacements."""
        return {
            "workers": len(self.ranges),
            "bytes_per_pass": self.traffic.per_pass(),
            "bytes": self.traffic.total(),
            "replaced": self.replaced,
        }

    def _compared(self) -> list[np.ndarray]:
        count = len(self._workers)
        # All keys are requested before any worker waits for them, so there is no deadlock.
        keys = [
            [worker.keys.remote(bucket, count) for worker in self._workers]
            for bucket in range(count)
        ]
        pairs = zip(self._workers, keys, strict=True)
        return list(self._ray.get([worker.repeated.remote(*each) for worker, each in pairs]))

    def _answers(self, question: Question, packed: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        self._check_open()
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
        """Return the pickled question and arguments, followed by object references."""
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
        """Wait until every worker has started."""
        try:
            self._ray.get([worker.process.remote() for worker in workers], timeout=START_SECONDS)
        except self._ray.exceptions.GetTimeoutError:
            share = "" if self._memory is None else f" and {self._memory / 2**20:,.0f} MiB"
            raise ClusterError(
                f"room for {len(workers)} more workers of {self._threads} CPUs{share} each",
                f"not enough in {START_SECONDS:.0f} seconds on a cluster of {cpus_of_cluster()} "
                "CPUs",
                "ask for fewer workers or less memory, or wait until others have finished",
            ) from None
        except self._ray.exceptions.RayError as error:
            raise ClusterError(
                "workers that start",
                _cause(error),
                "install the same versions of Python, Ray and Sabal on every machine",
            ) from None

    def _replace(self, k: int, error: Exception, deaths: int) -> None:
        """Replace a worker that died."""
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
        """Find the workers that died, and replace them."""
        for k, worker in enumerate(self._workers):
            try:
                self._ray.get(worker.process.remote())
            except self._lost:
                self._replace(k, error, deaths)

    def _end(self, worker: Any) -> None:
        # An unreachable worker may still be running and hold its CPU.
        with contextlib.suppress(self._ray.exceptions.RayError, ValueError):
            self._ray.kill(worker)


def _losses(ray: Any) -> tuple[type[Exception], ...]:
    """Return Ray's exceptions for a lost worker, machine or answer."""
    lost = ray.exceptions
    return (
        lost.RayActorError,
        lost.WorkerCrashedError,
        lost.NodeDiedError,
        lost.ObjectLostError,
        lost.OutOfMemoryError,
    )


def _cause(error: Exception) -> str:
    """Return the last line of Ray's report, which names the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else reason_of(error)
