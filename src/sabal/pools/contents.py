"""The contents of a pool: its array names, and array metadata known before reading."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sabal.core.arrays import Array, as_array
from sabal.errors import FileError, InputError
from sabal.pools.ids import Ids
from sabal.pools.pool import FILE_ARRAYS, ArrayPool
from sabal.predictions import Posterior

NAMES = ("id", *FILE_ARRAYS, "labeled_features")
PER_ITEM = ("id", *FILE_ARRAYS)
"""Arrays with a row per item; `labeled_features` has a row per labelled item."""

UNMISTAKABLE = ("id", "features", *Posterior.checks, "labeled_features")
"""Names that a similar one is a misspelling of; a column `mean` may be anything."""


@dataclass(frozen=True)
class Contents:
    """The contents of a pool file.

    Attributes
    ----------
    pool : ArrayPool
        The items.
    ignored : tuple of str
        Names in the file that are not arrays of a pool.
    ids : Ids or None
        The ids of the items, read on demand; None if the row number is the id.
    parts : mapping
        The arrays (or rows on disk) of the pool, by name.
    """

    pool: ArrayPool
    ignored: tuple[str, ...]
    ids: Ids | None = None
    parts: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class ArraySpec:
    """The metadata of an array that has not been read.

    `dtype` is None for strings of any length. `nbytes` is the size in memory, `spilled` the size in
    a scratch folder, which is 0 if the array can be read in place.
    """

    shape: tuple[int, ...]
    dtype: np.dtype | None
    nbytes: int
    spilled: int = 0

    @classmethod
    def of_numbers(cls, shape: tuple[int, ...], dtype: np.dtype, spilled: bool) -> ArraySpec:
        """Return the metadata of numbers or strings of fixed length."""
        entries = int(np.prod(shape, dtype=np.int64))
        width = dtype.itemsize
        if dtype.kind in "biuf":
            width = max(width, as_array(np.empty(0, dtype), "rows").dtype.itemsize)
        return cls(shape, dtype, entries * width, entries * dtype.itemsize if spilled else 0)


def contents_of(
    arrays: Mapping[str, Any],
    names: Sequence[str],
    memory: int | None = None,
    loss: str = "softmax",
) -> Contents:
    """Return the contents of a pool with these arrays.

    `names` are all names in the source, including those that a pool does not use. `memory` is the
    limit of a selection in bytes; comparing ids takes a share of it. `loss` is as in `ArrayPool`.
    """
    parts: dict[str, Any] = {name: array for name, array in arrays.items() if name != "id"}
    ignored = tuple(name for name in names if name not in NAMES)
    ids = arrays.get("id")
    stored = [array for array in arrays.values() if not isinstance(array, np.ndarray)]
    if not stored:
        listed = None if ids is None else ids.tolist()
        pool = ArrayPool(**parts, ids=listed, loss=loss)
        found = None if listed is None else Ids(np.asarray(listed))
        return Contents(pool, ignored, found, parts)
    if ids is not None:
        ids = Ids(ids)
        ids.check_distinct(memory or 0)
    pool = ArrayPool(**parts, ids=ids, size=len(stored[0]), memory=memory, loss=loss)
    return Contents(pool, ignored, ids, parts)


def check_spec(name: str, spec: ArraySpec) -> None:
    """Raise if an array cannot be used, before it is read; `ArrayPool` checks its values."""
    if name == "id":
        if len(spec.shape) != 1 or (spec.dtype is not None and spec.dtype.kind not in "iuUS"):
            raise InputError(
                "`ids` to be whole numbers or strings, one for every item",
                f"shape {spec.shape} of {spec.dtype or 'strings'}",
                "convert them with str() first",
            )
        return
    if spec.dtype is None or spec.dtype.kind not in "biuf":
        raise InputError(
            f"`{name}` as an array of real numbers",
            f"dtype {spec.dtype or 'string'}",
            "convert it to float32 or float64",
        )
    if not spec.shape:
        raise InputError(
            f"`{name}` with a row for every item", "a single number", "save an array of rows"
        )


def check_names(source: str | Path, names: Sequence[str], found: Collection[str]) -> None:
    """Raise if a pool has none of the expected arrays, or a name that looks misspelt."""
    for name in names:
        # Leaving out `feature` or `ids` would choose without them.
        meant = difflib.get_close_matches(name.lower(), UNMISTAKABLE, n=1, cutoff=0.8)
        if name not in NAMES and meant and meant[0] not in names:
            raise FileError(
                f"arrays named {', '.join(NAMES)} in {source}",
                f"`{name}`",
                f"rename it to `{meant[0]}`",
            )
    if not found:
        raise FileError(
            f"a pool with some of {', '.join(NAMES)}",
            f"{source} with {', '.join(names) or 'nothing'}",
            "rename the arrays or columns",
        )


def unreadable(source: str | Path, error: Exception | str) -> FileError:
    """Return the error for a file that exists but cannot be read."""
    got = str(error) or type(error).__name__
    return FileError(f"a readable pool in {source}", got, "write the file again")
