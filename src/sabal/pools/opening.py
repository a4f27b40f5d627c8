"""Open a pool in memory, on disk, in a table, in chunks or on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sabal.core.checks import check_choice
from sabal.core.memory import parse_bytes
from sabal.core.urls import is_url
from sabal.errors import InputError
from sabal.pools.chunks import pool_of_chunks
from sabal.pools.contents import Contents
from sabal.pools.frames import Columns, is_table, table_arrays, table_chunks
from sabal.pools.pool import ArrayPool, Part, Pool
from sabal.pools.pool_files import read_pool
from sabal.pools.remote import read_remote, read_url

ENGINES = ("local", "ray")

PoolLike = str | Path | Mapping[str, Any] | Iterable[Any] | Any
"""A path or URL, arrays by name, a table (see `sabal.pools.frames`), or chunks."""


@contextmanager
def open_pool(
    source: PoolLike,
    *,
    columns: Columns | None = None,
    loss: str = "softmax",
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
            _for_cluster(source, columns),
            loss=loss,
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
    # The contents are not kept: they would hold arrays that the pool releases.
    read = read_contents(source, memory=memory, scratch=scratch, columns=columns, loss=loss).pool
    yield read.with_labeled(labeled_features).check()


def read_contents(
    source: PoolLike,
    *,
    memory: int | str | None = None,
    scratch: str | Path | None = None,
    columns: Columns | None = None,
    loss: str = "softmax",
) -> Contents:
    """Read a pool of any kind into this process; the parameters are those of `select_pool`."""
    limit = None if memory is None else parse_bytes(memory)
    table = is_table(source)
    if table:
        source = table_chunks(source, columns)
    elif columns is not None and isinstance(source, Mapping):
        raise InputError("a table where there is `columns`", type(source).__name__, "leave it out")
    if isinstance(source, str) and is_url(source):
        return read_url(source, memory=limit, scratch=scratch, columns=columns, loss=loss)
    if isinstance(source, str | Path):
        return _read_path(Path(source), limit, scratch, columns, loss)
    if isinstance(source, Mapping):
        named = {"ids" if name == "id" else name: part for name, part in source.items()}
        return Contents(ArrayPool(**{"loss": loss, **named}), ())
    if not isinstance(source, Iterable):
        raise InputError(
            "a pool as a path, arrays by name, a table, or chunks",
            type(source).__name__,
            "pass the pool first, and then the budget",
        )
    return pool_of_chunks(
        source, memory=limit, scratch=scratch, columns=None if table else columns, loss=loss
    )


def _read_path(
    path: Path,
    memory: int | None,
    scratch: str | Path | None,
    columns: Columns | None,
    loss: str,
) -> Contents:
    if columns is None:
        return read_pool(path, memory=memory, scratch=scratch, loss=loss)
    url = path.absolute().as_uri()
    return read_remote(url, memory=memory, scratch=scratch, columns=columns, loss=loss)


def _for_cluster(source: PoolLike, columns: Columns | None) -> PoolLike:
    """Return what workers can read: a table as arrays of this process."""
    if is_table(source):
        return table_arrays(source, columns)
    if columns is not None:
        raise InputError("a table where there is `columns`", type(source).__name__, "leave it out")
    return source
