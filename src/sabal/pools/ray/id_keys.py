"""Check that the ids of a sharded pool are distinct."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import chain

import numpy as np

from sabal.errors import InputError
from sabal.pools.ids import Ids

CHUNK = 65_536  # ids processed at a time
SUSPECTS = 1_000  # the number of possibly repeated ids that are compared; one repetition suffices


def keys_of(ids: Ids, size: int) -> np.ndarray:
    """Return a hash of each id that is the same in every process."""
    keys = np.empty(size, dtype=np.uint64)
    for start in range(0, size, CHUNK):
        rows = slice(start, min(start + CHUNK, size))
        keys[rows] = _keys(np.asarray(ids[rows]))
    return keys


def _keys(ids: np.ndarray) -> np.ndarray:
    # Python's own hashes of strings differ between processes.
    digests = (blake2b(value, digest_size=8).digest() for value in _encoded(ids))
    return np.frombuffer(b"".join(digests), dtype="<u8")


def _encoded(ids: np.ndarray) -> Iterator[bytes]:
    if ids.dtype.kind == "S":
        return iter(ids.tolist())
    return (str(value).encode("utf-8", "surrogatepass") for value in ids.tolist())


def repeated(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return some of the keys that occur more than once."""
    keys = np.sort(np.concatenate(parts))
    return np.unique(keys[1:][keys[1:] == keys[:-1]])[:SUSPECTS]


def refuse_repeated(suspects: list[np.ndarray]) -> None:
    """Raise if an id occurs twice; `suspects` are from all shards."""
    counts = Counter(chain.from_iterable(each.tolist() for each in suspects))
    for found, times in counts.most_common(1):
        if times > 1:
            raise InputError(
                "`ids` to be distinct",
                f"{found!s} {times} times",
                "give every item an id of its own",
            )
