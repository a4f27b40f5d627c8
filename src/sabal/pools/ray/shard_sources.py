"""Shard sources: how a worker reads its rows, and its replacement reads them again."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sabal.core.arrays import Array, as_array, to_numpy
from sabal.core.checks import check_ids, check_same_items
from sabal.core.memory import parse_bytes
from sabal.core.urls import is_url
from sabal.errors import FileError, InputError, UnknownNameError, did_you_mean
from sabal.pools.contents import Contents, contents_of
from sabal.pools.pool import FILE_ARRAYS
from sabal.pools.pool_files import pool_size, read_pool
from sabal.pools.remote import read_remote, remote_size

PoolSource = str | Path | Mapping[str, Array]
"""A pool: a path or a URL, or arrays by name as in `sabal.select` (with `id` or `ids`)."""


class ShardSource(Protocol):
    """Reads rows `start` to `stop` of a pool."""

    @property
    def start(self) -> int:
        """The first row."""

    @property
    def stop(self) -> int:
        """The row after the last."""

    def read(self) -> Contents:
        """Return the rows, unchecked."""


class ShardSources(Protocol):
    """Sources for any part of one pool."""

    @property
    def size(self) -> int:
        """The number of items of the pool."""

    def of(self, start: int, stop: int) -> ShardSource:
        """Return the source of rows `start` to `stop`."""


@dataclass(frozen=True)
class FileRows:
    """Rows of a file, folder or URL that every machine can read; options as in `read_pool`."""

    path: str
    start: int
    stop: int
    memory: int | None
    scratch: str | None
    loss: str = "softmax"

    def read(self) -> Contents:
        """Read the rows."""
        options: dict[str, Any] = {
            "memory": self.memory, "scratch": self.scratch, "loss": self.loss,
        }  # fmt: skip
        if is_url(self.path):
            return read_remote(self.path, self.start, self.stop, **options)
        if not Path(self.path).exists():
            raise FileError(
                f"the pool {self.path} on every machine of the cluster",
                f"nothing there on {socket.gethostname()}",
                "put it where all machines can read it, or pass a URL such as s3://bucket/pool",
            )
        return read_pool(self.path, rows=(self.start, self.stop), **options)


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Rows from the driver's memory, which are sent with the source."""

    start: int
    stop: int
    arrays: dict[str, Any]
    loss: str = "softmax"

    def read(self) -> Contents:
        """Return the rows."""
        return contents_of(self.arrays, list(self.arrays), loss=self.loss)


class FileSources:
    """Sources for a pool in files."""

    def __init__(self, path: str, memory: int | None, scratch: str | None, loss: str) -> None:
        # A worker may be in another folder.
        self._path = path if is_url(path) else os.path.abspath(path)
        self._memory = memory
        self._scratch = scratch
        self._loss = loss
        self.size = remote_size(path) if is_url(path) else pool_size(path)

    def of(self, start: int, stop: int) -> FileRows:
        """Return the source of rows `start` to `stop`."""
        return FileRows(self._path, start, stop, self._memory, self._scratch, self._loss)


class ArraySources:
    """Sources for arrays of any library in the driver's memory; shards get NumPy arrays."""

    def __init__(self, arrays: Mapping[str, Array], loss: str) -> None:
        self._arrays: dict[str, Any] = {}
        self._loss = loss
        for name, value in arrays.items():
            if name not in ("id", "ids", *FILE_ARRAYS):
                raise UnknownNameError(
                    f"arrays named id, {', '.join(FILE_ARRAYS)}",
                    repr(name),
                    did_you_mean(str(name), FILE_ARRAYS, "leave it out"),
                )
            if value is not None and name not in ("id", "ids"):
                self._arrays[name] = to_numpy(as_array(value, name))
        if not self._arrays:
            raise InputError(
                "something that describes the pool",
                "no array at all",
                "pass for instance {'features': ..., 'logits': ...}",
            )
        if any(array.ndim == 0 for array in self._arrays.values()):
            raise InputError("arrays with a row for every item", "a single number", "pass rows")
        self.size = check_same_items(**self._arrays)
        ids = arrays.get("id", arrays.get("ids"))
        if ids is not None:
            self._arrays["id"] = check_ids(ids, self.size)

    def of(self, start: int, stop: int) -> ArrayRows:
        """Return the source of rows `start` to `stop`."""
        rows = {k: array[start:stop] for k, array in self._arrays.items()}
        return ArrayRows(start, stop, rows, self._loss)


def shard_sources(
    source: PoolSource,
    memory: int | str | None = None,
    scratch: str | Path | None = None,
    loss: str = "softmax",
) -> ShardSources:
    """Return the sources of a pool of any kind."""
    granted = None if memory is None else parse_bytes(memory)
    if isinstance(source, Mapping):
        return ArraySources(source, loss)
    if not isinstance(source, str | Path):
        raise InputError(
            "a pool as a path, a URL or a dict of arrays",
            type(source).__name__,
            "pass for instance {'features': ..., 'logits': ...}",
        )
    # Each worker writes to the scratch folder of its own machine.
    folder = None if scratch is None else os.path.abspath(scratch)
    return FileSources(os.fspath(source), granted, folder, loss)
