"""Open a pool in memory, on disk, in chunks or on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sabal.core.checks import check_choice
from sabal.core.memory import parse_bytes
from sabal.errors import InputError
from sabal.pools.chunks import pool_of_chunks
from sabal.pools.pool import ArrayPool, Part, Pool
from sabal.pools.pool_files import read_pool

ENGINES = ("local", "ray")

PoolLike = str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]]


@contextmanager
def open_pool(
    source: PoolLike,
    *,
    memory: int | str | None = None,
    scratch: str | Path | None = None,
    labeled_features: Part = None,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    threads: int = 1,
) -> Iterator[Pool]:
    """Open a pool as a context manager; the parameters are those of `select_pool`."""
    check_choice(engine, "engine", ENGINES)
    if engine == "ray":
        # Ray is needed only for pools on a cluster.
        from sabal.pools.ray.opening_on_ray import open_on_ray

        with open_on_ray(
            source,
            memory=memory,
            scratch=scratch,
            labeled_features=labeled_features,
            address=address,
            workers=workers,
            threads=threads,
        ) as pool:
            yield pool
        return
    if address is not None or workers is not None:
        raise InputError(
            "engine='ray' where there is `address` or `workers`",
            "engine='local'",
            "pass engine='ray', or leave them out",
        )
    yield _open_here(source, memory, scratch).with_labeled(labeled_features).check()


def _open_here(source: PoolLike, memory: int | str | None, scratch: str | Path | None) -> ArrayPool:
    limit = None if memory is None else parse_bytes(memory)
    if isinstance(source, str | Path):
        return read_pool(source, memory=limit, scratch=scratch).pool
    if isinstance(source, Mapping):
        return ArrayPool(**{"ids" if name == "id" else name: part for name, part in source.items()})
    if not isinstance(source, Iterable):
        raise InputError(
            "a pool as a path, arrays by name, or chunks",
            type(source).__name__,
            "pass the pool first, and then the budget",
        )
    return pool_of_chunks(source, memory=limit, scratch=scratch).pool
