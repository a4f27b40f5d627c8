"""What a pool holds: its names, and what is known of an array before it is read."""

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

NAMES = ("id", *FILE_ARRAYS, "labeled_features")
PER_ITEM = ("id", *FILE_ARRAYS)
"""What has a row for every item; `labeled_features` have one for every labelled item."""


@dataclass(frozen=True)
class Contents:
    """What a pool file holds, and the names in it that mean nothing to us.

    Attributes
    ----------
    pool : ArrayPool
        The items.
    ignored : tuple of str
        Names in the file that a pool does not have.
    ids : Ids or None
        The ids of the items, looked up when asked for; None where a row's number is its id.
    parts : mapping
        The arrays (or rows on disk) that the pool was made of, by name.

    """

    pool: ArrayPool
    ignored: tuple[str, ...]
    ids: Ids | None = None
    parts: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Spec:
    """An array that has not been read.

    dtype: as it is written; None for strings of any length.
    nbytes: what it would take in memory. spilled: what it would take in a scratch folder; 0 if it
        can be read where it is.
    """

    shape: tuple[int, ...]
    dtype: np.dtype | None
    nbytes: int
    spilled: int = 0

    @classmethod
    def of_numbers(cls, shape: tuple[int, ...], dtype: np.dtype, spilled: bool) -> Spec:
        """Numbers (or strings of one length) that take scratch space as they are, or none."""
        entries = int(np.prod(shape, dtype=np.int64))
        width = dtype.itemsize
        if dtype.kind in "biuf":
            width = max(width, as_array(np.empty(0, dtype), "rows").dtype.itemsize)
        return cls(shape, dtype, entries * width, entries * dtype.itemsize if spilled else 0)


def contents_of(
    arrays: Mapping[str, Any], names: Sequence[str], memory: int | None = None
) -> Contents:
    """The contents of a pool that has these arrays, and `names` altogether.

    memory: bytes that the selection may take; comparing ids takes a share of it.
    """
    parts: dict[str, Any] = {name: array for name, array in arrays.items() if name != "id"}
    ignored = tuple(name for name in names if name not in NAMES)
    ids = arrays.get("id")
    stored = [array for array in arrays.values() if not isinstance(array, np.ndarray)]
    if not stored:
        listed = None if ids is None else ids.tolist()
        pool = ArrayPool(**parts, ids=listed)
        found = None if listed is None else Ids(np.asarray(listed))
        return Contents(pool, ignored, found, parts)
    if ids is not None:
        ids = Ids(ids)
        ids.check_distinct(memory or 0)
    pool = ArrayPool(**parts, ids=ids, size=len(stored[0]), memory=memory)
    return Contents(pool, ignored, ids, parts)


def check_spec(name: str, spec: Spec) -> None:
    """Refuse what could not be used, before much is read; `Outputs` looks at the rest."""
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
    """Refuse a pool in which nothing was found, or with a name that was surely meant as ours."""
    for name in names:
        # Leaving out `feature` or `ids` would choose without them.
        meant = difflib.get_close_matches(name.lower(), NAMES, n=1, cutoff=0.8)
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
    """The error for a file that is there but makes no sense."""
    got = str(error) or type(error).__name__
    return FileError(f"a readable pool in {source}", got, "write the file again")
