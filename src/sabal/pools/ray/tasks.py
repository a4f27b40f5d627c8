"""Run tasks on a Ray cluster, and report their results item by item."""

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
"""A picklable function that yields items."""

POLL_SECONDS = 0.5  # the longest wait, so that interrupts are noticed while no item arrives


def run_on_ray(
    tasks: Sequence[Task[Item]],
    on_item: Callable[[Item], None],
    *,
    jobs: int | None = None,
    address: str | None = None,
) -> list[list[Item]]:
    """Run tasks in parallel and return the items that each yields.

    A task that fails cancels all others, and its exception is raised.

    Parameters
    ----------
    tasks : sequence of callable
        The tasks.
    on_item : callable
        Called with every item as it arrives, again if a lost task is repeated.
    jobs : int, optional
        The number of tasks at a time; the CPUs of the cluster by default.
    address : str, optional
        See `session`.
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
            ready, _ = ray.wait(list(running), timeout=POLL_SECONDS)
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
            raise error.cause from error  # has the traceback of the worker
        raise
    except ray.exceptions.RayError as error:
        raise ClusterError(
            "a run that comes to its end",
            str(error),
            "start the same command again: it goes on where it stopped",
        ) from None


def _items(task: Task[Item], folder: str) -> Iterator[Item]:
    """Run a task in a worker, in the working directory of the driver."""
    limit_threads(1)
    with contextlib.suppress(OSError):
        os.chdir(folder)
    yield from task()
