"""Pools that arrive in chunks, and are written to disk when they grow too large for memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from sabal.core.arrays import Array, as_array, to_numpy
from sabal.core.checks import check_same_items
from sabal.core.memory import SHARE, parse_bytes
from sabal.errors import InputError, UnknownNameError, did_you_mean
from sabal.pools.contents import PER_ITEM, Contents, contents_of
from sabal.pools.frames import THE_TABLE, Columns, chunk_of_table, is_table
from sabal.pools.scratch import Scratch, removed_on_error
from sabal.pools.sinks import Numbers, Sink, Strings

KINDS = {"bool": "true or false", "integral": "whole numbers", "real floating": "numbers"}


def pool_of_chunks(
    chunks: Iterable[Any],
    *,
    memory: int | str | None = None,
    scratch: str | Path | None = None,
    columns: Columns | None = None,
    loss: str = "softmax",
    source: str = THE_TABLE,
) -> Contents:
    """Return a pool of NumPy arrays made of chunks.

    Parameters
    ----------
    chunks : iterable of mappings or tables
        Some rows of every array, by name, in the order of the pool. The arrays may be of any
        library. They are copied, so a buffer may be reused for the next chunk. Tables are record
        batches of Arrow or data frames.
    memory : int or str, optional
        Bytes (or "2GB") that work on the pool may take. A pool of more than a quarter of it is
        written to disk as it arrives; by default everything stays in memory.
    scratch : path, optional
        The folder to write it to; the system's temporary folder by default.
    columns : mapping, optional
        The columns of each array, if the chunks are tables; see `sabal.select_pool`.
    loss : str
        The loss of the prediction, as in `ArrayPool`.
    source : str
        What the tables are called in messages.
    """
    granted = None if memory is None else parse_bytes(memory)
    with removed_on_error(Scratch(scratch)) as folder:
        pool = _PoolBuilder(folder, None if granted is None else granted // SHARE)
        for number, chunk in enumerate(chunks):
            pool.add(number, chunk_of_table(chunk, columns, source) if is_table(chunk) else chunk)
        return contents_of(pool.done(), list(pool.sinks), granted, loss)


class _PoolBuilder:
    """Collects the chunks of a pool: in memory up to `limit` bytes, then on disk."""

    def __init__(self, scratch: Scratch, limit: int | None) -> None:
        self.sinks: dict[str, Sink] = {}
        self._kinds: dict[str, str] = {}
        self._scratch = scratch
        self._limit = limit
        self._held = 0
        self._spilled = False

    def add(self, number: int, chunk: Any) -> None:
        """Check chunk `number` and copy its rows."""
        if not isinstance(chunk, Mapping):
            raise InputError(
                "chunks that are dicts from names to arrays, or tables",
                type(chunk).__name__,
                'yield for instance {"features": ..., "probs": ...}',
            )
        self._check_names(number, chunk)
        arrays = {}
        for name, value in chunk.items():
            kind, arrays[name] = _read(name, value)
            self._check_alike(number, name, kind, arrays[name])
        check_same_items(**arrays)
        self._make_room(sum(array.nbytes for array in arrays.values()))
        for name, array in arrays.items():
            self.sinks[name].write(array)

    def done(self) -> dict[str, Any]:
        """Return all rows of every array."""
        if not any(sink.size for sink in self.sinks.values()):
            raise InputError(
                "at least one chunk with at least one row", "none", "yield the rows of the pool"
            )
        return {name: sink.done() for name, sink in self.sinks.items()}

    def _check_names(self, number: int, chunk: Mapping[str, Array]) -> None:
        for name in chunk:
            if name not in PER_ITEM:
                raise UnknownNameError(
                    f"chunks with some of {', '.join(PER_ITEM)}",
                    f"`{name}`",
                    "leave it out; it has no row for every item"
                    if name == "labeled_features"
                    else did_you_mean(str(name), PER_ITEM, "leave it out"),
                )
        if not chunk or (self.sinks and set(chunk) != set(self.sinks)):
            raise InputError(
                f"{' and '.join(self.sinks) or 'at least one array'} in every chunk",
                f"{' and '.join(chunk) or 'nothing'} in chunk {number}",
                "give every chunk the same arrays",
            )

    def _check_alike(self, number: int, name: str, kind: str, array: np.ndarray) -> None:
        """Check that an array matches the first chunk, or record the first chunk."""
        sink = self.sinks.get(name)
        if sink is None:
            self._kinds[name] = kind
            text = name == "id" and array.dtype.kind in "US"
            self.sinks[name] = (
                Strings(name, text=array.dtype.kind == "U", scratch=None)
                if text
                else Numbers(name, array.shape[1:], array.dtype, None)
            )
            return
        row = sink.row if isinstance(sink, Numbers) else ()
        fits = isinstance(sink, Strings) or np.can_cast(array.dtype, sink.dtype)
        if array.shape[1:] != row or kind != self._kinds[name] or not fits:
            dtype = f" of {sink.dtype}" if isinstance(sink, Numbers) else ""
            raise InputError(
                f"rows of shape {row}{dtype} ({self._kinds[name]}) in every chunk of `{name}`",
                f"shape {array.shape[1:]} of {array.dtype} ({kind}) in chunk {number}",
                "make every chunk the way the first one is",
            )

    def _make_room(self, nbytes: int) -> None:
        self._held += nbytes
        if self._spilled:
            self._scratch.check_room(nbytes)
        elif self._limit is not None and self._held > self._limit:
            self._scratch.check_room(self._held)
            self._spilled = True
            for sink in self.sinks.values():
                sink.spill(self._scratch)


def _read(name: str, value: Any) -> tuple[str, np.ndarray]:
    """Return the kind of values in an array of a chunk, and the values."""
    if name == "id":
        return _read_ids(value)
    array = as_array(value, name)
    given = value if is_array_api_obj(value) else array
    xp = array_namespace(given)
    kind = next((k for k in KINDS if xp.isdtype(given.dtype, k)), "real floating")
    if array.ndim == 0:
        raise InputError(f"`{name}` with a row for every item", "a single number", "pass rows")
    return KINDS[kind], to_numpy(array)


def _read_ids(value: Any) -> tuple[str, np.ndarray]:
    try:
        ids = to_numpy(value) if is_array_api_obj(value) else np.asarray(list(value))
    except (TypeError, ValueError):
        ids = np.empty((), dtype=object)
    if ids.dtype.kind == "O" and ids.ndim == 1 and all(isinstance(item, str) for item in ids):
        ids = ids.astype(str)
    if ids.ndim != 1 or ids.dtype.kind not in "iuUS":
        raise InputError(
            "`ids` to be whole numbers or strings, one for every item",
            f"shape {ids.shape} of {ids.dtype}",
            "convert them with str() first",
        )
    if ids.dtype.kind in "iu":
        # int32 ids in one chunk and int64 ids in another are the same ids.
        return "whole numbers", ids.astype(np.uint64 if ids.dtype == np.uint64 else np.int64)
    return ("text" if ids.dtype.kind == "U" else "bytes"), ids
