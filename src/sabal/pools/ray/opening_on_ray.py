"""Open a pool that is distributed over a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sabal.core.arrays import to_numpy
from sabal.core.checks import check_whole
from sabal.core.memory import parse_bytes
from sabal.pools.pool import Part
from sabal.pools.ray.ray_pool import RayPool
from sabal.pools.ray.ray_workers import RayWorkers
from sabal.pools.ray.session import cpus_of_cluster, session
from sabal.pools.ray.shard_sources import shard_sources
from sabal.pools.ray.shards import max_workers


@contextmanager
def open_on_ray(
    source: Any,
    *,
    loss: str = "softmax",
    memory: int | str | None = None,
    scratch: str | Path | None = None,
    labeled_features: Part = None,
    address: str | None = None,
    workers: int | None = None,
    threads: int = 1,
) -> Iterator[RayPool]:
    """Open a pool with one shard per worker; the parameters are those of `select_pool`."""
    check_whole(threads, "threads")
    if workers is not None:
        check_whole(workers, "workers")
    given = labeled_features() if callable(labeled_features) else labeled_features
    labeled = None if given is None else to_numpy(given)
    sources = shard_sources(source, memory, scratch, loss)
    limit = max_workers(sources.size)
    wanted = None if workers is None else min(workers, limit)
    with session(address, cpus=(wanted or 1) * threads):
        count = wanted or max(1, min(cpus_of_cluster() // threads, limit))
        granted = None if memory is None else parse_bytes(memory)
        with RayWorkers(sources, count, threads, granted) as held:
            yield RayPool(held, labeled, threads)
