"""Pool files: .npz, .parquet (a file or a folder of them) and folders of .npy, read safely.

A pool has `features` and one of `logits`, `probs` and `log_probs`. `id`, `label_probs` and (not in
Parquet, whose columns all have the same length) `labeled_features` are optional.
Nothing is ever unpickled.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sabal.core.checks import check_same_items
from sabal.core.memory import SHARE, parse_bytes
from sabal.errors import FileError, InputError
from sabal.pools.contents import (
    PER_ITEM,
    ArraySpec,
    Contents,
    check_names,
    check_spec,
    contents_of,
)
from sabal.pools.npy import NpyFolder
from sabal.pools.npz import NpzFile
from sabal.pools.parquet import ParquetPool
from sabal.pools.scratch import Scratch, removed_on_error
from sabal.pools.sinks import Wanted


class PoolReader(Protocol):
    """Reads a pool of one file format."""

    path: Path
    names: list[str]

    def whole(self) -> dict[str, np.ndarray]:
        """Return all arrays of the pool, in memory."""

    def specs(self) -> dict[str, ArraySpec]:
        """Return the metadata of all arrays of the pool."""

    def read(self, names: list[str], wanted: Wanted) -> dict[str, Any]:
        """Return the requested rows of some arrays."""


def read_pool(
    path: str | Path,
    *,
    memory: int | str | None = None,
    scratch: str | Path | None = None,
    rows: range | tuple[int, int] | None = None,
    loss: str = "softmax",
) -> Contents:
    """Read a pool from a file or folder.

    Parameters
    ----------
    path : path
        A .npz or .parquet file, or a folder of .parquet or .npy files.
    memory : int or str, optional
        Bytes (or "2GB") that work on the pool may take. Arrays of more than a quarter of it stay
        on disk and are read on demand; by default everything is read.
    scratch : path, optional
        A folder for decompressed Parquet files and archives; the system's temporary folder by
        default. Its content is removed with the pool.
    rows : range or tuple, optional
        The first row to read, and the row after the last.
    loss : str
        The loss of the prediction, as in `ArrayPool`.
    """
    source = _open(Path(path))
    granted = None if memory is None else parse_bytes(memory)
    if granted is None and rows is None:
        return _whole(source, loss)
    specs = source.specs()
    items = _items(source, specs)
    if not items:
        return _whole(source, loss)
    size = check_same_items(**items)
    start, stop = _range(rows, size)
    count = stop - start
    needed = sum(spec.nbytes for spec in items.values()) * count // max(1, size)
    stored = granted is not None and needed > granted // SHARE
    if not stored and rows is None:
        return _whole(source, loss)
    with removed_on_error(Scratch(scratch)) as folder:
        spilled = sum(spec.spilled for spec in items.values()) * count // max(1, size)
        with folder.filling(spilled if stored else 0):
            arrays = source.read(list(items), Wanted(start, stop, stored, folder))
        if "labeled_features" in specs:
            everything = Wanted(0, specs["labeled_features"].shape[0], False, folder)
            arrays |= source.read(["labeled_features"], everything)
        return contents_of(arrays, source.names, granted, loss)


def pool_size(path: str | Path) -> int:
    """Return the number of items of the pool at `path`, without reading it."""
    source = _open(Path(path))
    items = _items(source, source.specs())
    if not items:
        raise FileError(
            f"a pool with some of {', '.join(PER_ITEM)}",
            f"{source.path} with {', '.join(source.names)}",
            "add an array with a row for every item",
        )
    return check_same_items(**items)


def _whole(source: PoolReader, loss: str) -> Contents:
    arrays = source.whole()
    check_names(source.path, source.names, arrays)
    return contents_of(arrays, source.names, loss=loss)


def _items(source: PoolReader, specs: dict[str, ArraySpec]) -> dict[str, ArraySpec]:
    """Return the metadata of the arrays with a row per item, which are checked."""
    check_names(source.path, source.names, specs)
    for name, spec in specs.items():
        check_spec(name, spec)
    return {name: specs[name] for name in PER_ITEM if name in specs}


def _range(rows: range | tuple[int, int] | None, size: int) -> tuple[int, int]:
    if rows is None:
        return 0, size
    start, stop, step = (
        (rows.start, rows.stop, rows.step) if isinstance(rows, range) else (*rows, 1)
    )
    if not 0 <= start < stop <= size or step != 1:
        raise InputError(
            f"`rows` between 0 and {size}, the size of the pool, at least one of them",
            repr(rows),
            f"pass for instance rows=(0, {size})",
        )
    return start, stop


def _open(source: Path) -> PoolReader:
    # Unlike Path.exists, these functions also accept names that are too long.
    folder, file = os.path.isdir(source), os.path.isfile(source)
    if not folder and not file:
        got = "neither at" if os.path.exists(source) else "nothing at"
        raise FileError("a pool file or folder", f"{got} {source}", "check the path")
    if folder:
        if any(source.glob("*.npy")):
            return NpyFolder(source)
        if any(source.glob("*.parquet")):
            return ParquetPool(source)
    elif source.suffix == ".npz":
        return NpzFile(source)
    elif source.suffix == ".parquet":
        return ParquetPool(source)
    raise FileError(
        "a .npz file, a .parquet file, or a folder of .parquet or .npy files",
        str(source),
        "save the pool as one of these",
    )
