"""The ids of a pool's items, read on demand for the few items that are chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from sabal.core.memory import SHARE
from sabal.core.rows import RawRows
from sabal.errors import FileError, InputError

CHUNK = 65_536  # ids processed at a time
MIN_KEYS = 2**20  # the minimum number of ids compared in one pass, whatever the memory limit: 8 MB

SUSPECTS = 1_000
_MIXER = np.uint64(0x9E3779B97F4A7C15)
"""An odd multiplier: distinct numbers stay distinct, and their high bits are mixed."""


class StoredStrings:
    """Strings of any length in two raw files; UTF-8 if `text`, bytes otherwise.

    `data` has the concatenated bytes, `ends` the start of each string and the end of the last one.
    """

    def __init__(self, data: RawRows, ends: RawRows, *, text: bool) -> None:
        self._data = data
        self._ends = ends
        self.text = text

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        return as_strings(self.encoded(rows), text=self.text)

    def encoded(self, rows: slice | np.ndarray) -> list[bytes]:
        """Return the bytes of some strings."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            ends = self._ends[start : max(start, stop) + 1]
            return split(self._data[int(ends[0]) : int(ends[-1])], ends - ends[0])
        numbers = np.asarray(rows, dtype=np.int64)
        begins, ends = self._ends[numbers], self._ends[numbers + 1]
        return [
            self._data[begin:end].tobytes()
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        ]


class Ids:
    """One id per item, integers or strings, in memory or on disk.

    `ids[rows]` reads the ids of a slice with step 1, or of row numbers in any order.
    """

    def __init__(self, values: np.ndarray | RawRows | StoredStrings) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        return self.look_up(rows)

    def look_up(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return the ids of some rows."""
        found = np.asarray(self._values[rows])
        # Integers have the same width for every source.
        narrow = found.dtype.kind in "iu" and np.can_cast(found.dtype, np.int64)
        return found.astype(np.int64) if narrow else found

    def check_distinct(self, memory: int) -> None:
        """Raise if an id repeats; takes as many passes as `memory` bytes require."""
        count = len(self)
        # Keys are concatenated before they are sorted, so each takes 2 * 8 bytes, and only a share
        # of the memory is available to them.
        passes = -(-count // max(MIN_KEYS, memory // (16 * SHARE)))
        for turn in range(passes):
            kept = []
            for chunk in self._chunks():
                keys = _keys(self._items(chunk))
                kept.append(keys[(keys >> np.uint64(32)) % np.uint64(passes) == turn])
            keys = np.concatenate(kept)
            del kept
            keys.sort()
            suspects = np.unique(keys[1:][keys[1:] == keys[:-1]])
            for start in range(0, suspects.size, SUSPECTS):
                self._refuse_repeated(suspects[start : start + SUSPECTS])

    def _refuse_repeated(self, suspects: np.ndarray) -> None:
        """Compare the ids themselves, as different strings may (rarely) have the same key."""
        seen: Counter = Counter()
        for chunk in self._chunks():
            items = self._items(chunk)
            places = np.flatnonzero(np.isin(_keys(items), suspects))
            seen.update(items[place] for place in places.tolist())
        item, times = seen.most_common(1)[0]
        if times > 1:
            shown = item
            if isinstance(self._values, StoredStrings):
                shown = as_strings([item], text=self._values.text)[0]
            raise InputError(
                "`ids` to be distinct",
                f"{shown!s} {times} times",
                "give every item an id of its own",
            )

    def _chunks(self) -> Iterator[slice]:
        for start in range(0, len(self), CHUNK):
            yield slice(start, min(start + CHUNK, len(self)))

    def _items(self, rows: slice) -> np.ndarray | list[Any]:
        """Return some ids to compare: integers, or a list of hashable values."""
        if isinstance(self._values, StoredStrings):
            # In an array of strings each would take as much memory as the longest.
            return self._values.encoded(rows)
        values = self[rows]
        return values if values.dtype.kind in "iu" else values.tolist()


def split(data: np.ndarray, ends: np.ndarray) -> list[bytes]:
    """Return the strings in `data`; the first is from `ends[0]` to `ends[1]`, and so on."""
    blob, bounds = data.tobytes(), ends.tolist()
    return [blob[begin:end] for begin, end in pairwise(bounds)]


def as_strings(encoded: Sequence[bytes], *, text: bool) -> np.ndarray:
    """Return an array of strings, or of bytes."""
    if not text:
        return np.array(encoded, dtype=bytes)
    return np.array([_decode(value) for value in encoded], dtype=str)


def encode(value: str) -> bytes:
    """Encode a string in UTF-8; unpaired surrogates are preserved."""
    return value.encode("utf-8", "surrogatepass")


def _decode(value: bytes) -> str:
    try:
        return value.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise FileError(
            "ids in UTF-8", f"{value!r} ({error.reason})", "write the ids again as text"
        ) from None


def _keys(items: np.ndarray | list[Any]) -> np.ndarray:
    """Return a hash of each id; different ids rarely have the same one."""
    if isinstance(items, np.ndarray):
        return items.view(np.uint64) * _MIXER
    hashes = np.fromiter(map(hash, items), dtype=np.int64, count=len(items))
    return hashes.view(np.uint64)
