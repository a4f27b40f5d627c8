"""Tasks on a Ray cluster, as many at a time as wanted, heard of item by item."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from sabal.core.threads import limit_threads
from sabal.errors import ClusterError, SabalError
from sabal.pools.ray.session import cpus_of_cluster, ray_module, session

Item = TypeVar("Item")
Task = Callable[[], Iterable[Item]]
"""Something that can be sent to another process, and yields an item now and then."""

LISTEN_SECONDS = 0.5
"""An interrupt is noticed after so long, even while nothing comes."""


def run_on_ray(
    tasks: Sequence[Task[Item]],
    on_item: Callable[[Item], None],
    *,
    jobs: int | None = None,
    address: str | None = None,
) -> list[list[Item]]:
    """What every task yields, `jobs` of them at a time (None: as many as there are CPUs).

    on_item: called with every item when it comes; again, if a task was lost and ran once more.
    A task that fails ends all others, and raises here what it raised there.
    """
    with session(address, cpus=jobs):
        return _run(tasks, on_item, jobs or cpus_of_cluster())


def _run(
    tasks: Sequence[Task[Item]], on_item: Callable[[Item], None], jobs: int
) -> list[list[Item]]:
    ray = ray_module()
    remote = ray.remote(num_cpus=1, max_retries=3)(_items)
    found: list[list[Item]] = [[] for _ in tasks]
    waiting = list(reversed(range(len(tasks))))
    running: dict[Any, int] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                number = waiting.pop()
                running[remote.remote(tasks[number], os.getcwd())] = number
            ready, _ = ray.wait(list(running), timeout=LISTEN_SECONDS)
            for stream in ready:
                try:
                    item = _get(ray, next(stream))
                except StopIteration:
                    del running[stream]
                    continue
                found[running[stream]].append(item)
                on_item(item)
    except BaseException:
        for stream in running:
            with contextlib.suppress(ray.exceptions.RayError, ValueError):
                ray.cancel(stream)
        raise
    return found


def _get(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, SabalError):
            raise error.cause from None
        if isinstance(error.cause, Exception):
            raise error.cause from error  # which tells where, over there
        raise
    except ray.exceptions.RayError as error:
        raise ClusterError(
            "a run that comes to its end",
            str(error),
            "start the same command again: it goes on where it stopped",
        ) from None


def _items(task: Task[Item], folder: str) -> Iterator[Item]:
    """In a worker: what a task yields, with paths that mean what they mean to the driver."""
    limit_threads(1)
    with contextlib.suppress(OSError):
        os.chdir(folder)
    yield from task()
