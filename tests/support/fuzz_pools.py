"""Pool files, folders and chunks that are not what they should be."""

from __future__ import annotations

import gc
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sabal
from fuzz_arrays import ODD, PARTS, changed, outputs_of
from fuzz_oracle import ANSWERED, REFUSED, Kind, check_error, check_selection, snapshot

SEEN = ("sabal", "sabal-greedy", "margin", "badge", "random", "bald")
MEMORY = (None, None, "2kB", "4kB", "1MB", "1GiB")
NAMES = ("pool", "a pool with blanks", "пул 池 🐍", "pool'; --", "-pool", "p.o.o.l", "%s{0}")
ACCIDENTS = ("cut", "flip", "flip", "head", "tail", "zeros", "noise", "insert", *["none"] * 6)

Write = Callable[[Random, Path], Path]
"""Writes a pool into a folder, and says where it is."""


def damaged(data: bytes, rng: Random) -> bytes:
    """Bytes after an accident: cut off, flipped, overwritten, or with more between them."""
    kind, raw = rng.choice(ACCIDENTS), bytearray(data)
    if kind == "cut" or not raw:
        return data[: rng.randrange(len(data) + 1)]
    if kind in ("flip", "head", "tail"):
        low = max(0, len(raw) - 300) if kind == "tail" else 0
        high = min(200, len(raw)) if kind == "head" else len(raw)
        for _ in range(rng.choice((1, 1, 2, 8))):
            raw[rng.randrange(low, high)] ^= 1 << rng.randrange(8)
    elif kind in ("zeros", "noise"):
        start = rng.randrange(len(raw))
        count = min(len(raw) - start, rng.choice((1, 4, 64, 1000)))
        raw[start : start + count] = bytes(count) if kind == "zeros" else rng.randbytes(count)
    elif kind == "insert":
        at = rng.randrange(len(raw) + 1)
        raw[at:at] = rng.randbytes(rng.choice((1, 3, 100)))
    return bytes(raw)


IDS: tuple[Callable[[int], np.ndarray], ...] = (
    np.arange,
    lambda n: np.array([f"é{k}[/b]" for k in range(n)]),
    lambda n: np.zeros(n, int),
    lambda n: np.arange(n) / 2,
    lambda n: np.array([b"%d" % k for k in range(n)]),
    lambda n: np.array([b"\xff%d" % k for k in range(n)]),
    lambda n: np.array([f"{k}\ud800" for k in range(n)]),
    lambda n: np.arange(2 * n)[::2],
    lambda n: np.array(["x"] * n),
    lambda n: np.array([None] * n),
    lambda n: np.arange(n).astype("datetime64[s]"),
    lambda n: np.arange(n, dtype=">i2"),
    lambda n: np.arange(n, dtype=np.uint64) + 2**63,
    lambda n: np.ones((n, 1)),
    lambda n: np.array(3),
)


def some_parts(rng: Random) -> dict[str, np.ndarray]:
    """Parts of a pool, one of them changed now and then, with ids and strangers perhaps."""
    parts: dict[str, np.ndarray] = outputs_of(rng)
    n = len(parts["features"])
    parts.pop(rng.choice(("logits", "probs")))
    for name in [name for name in PARTS if name in parts and rng.random() < 0.3]:
        del parts[name]
    if parts and rng.random() < 0.4:
        name = rng.choice(sorted(parts))
        parts[name] = as_numpy(changed(parts[name], rng))
    if rng.random() < 0.3:
        parts["id"] = rng.choice(IDS)(n)
    if rng.random() < 0.1:
        parts[rng.choice(("feature", "Probs", "ids", "notes", "log-probs"))] = np.arange(n)
    if rng.random() < 0.1:
        parts["labeled_features"] = np.ones((3, rng.choice((1, 2, 5))))
    return parts


def as_numpy(value: Any) -> np.ndarray:
    """What can be saved of `value`."""
    try:
        array = np.asarray(value.detach() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, RuntimeError):
        array = np.array(["what is this"])
    return np.array([[None, {}, "x"]], dtype=object) if array.dtype.kind == "O" else array


def npy(array: np.ndarray) -> bytes:
    """A .npy file; one with objects is pickled, and must never be unpickled."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def write_npz(rng: Random, folder: Path) -> Path:
    """An archive, compressed or not, damaged or not."""
    file, kind = io.BytesIO(), rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, array in some_parts(rng).items():
            ending = ".npy" if rng.random() < 0.95 else rng.choice(("", ".txt", ".npy.npy"))
            archive.writestr(f"{name}{ending}", npy(array))
    path = folder / f"{rng.choice(NAMES)}.npz"
    path.write_bytes(damaged(file.getvalue(), rng))
    return path


def write_npy_folder(rng: Random, folder: Path) -> Path:
    """A folder of arrays, some of them damaged, and what does not belong there."""
    path = folder / rng.choice(NAMES)
    path.mkdir()
    for name, array in some_parts(rng).items():
        data = npy(array)
        (path / f"{name}.npy").write_bytes(damaged(data, rng) if rng.random() < 0.3 else data)
    add_strangers(path, rng)
    return path


def add_strangers(folder: Path, rng: Random) -> None:
    """What else may lie in a folder."""
    kind = rng.choice(("nothing", "nothing", "text", "hidden", "folder", "array", "parquet"))
    if kind == "text":
        (folder / "readme.txt").write_text("not a pool")
    elif kind == "hidden":
        (folder / "._features.npy").write_bytes(b"\x00\x05\x16\x07")
    elif kind == "folder":
        (folder / rng.choice(("other.npy", "part.parquet", "more"))).mkdir()
    elif kind == "array":
        (folder / "other.npy").write_bytes(rng.randbytes(50))
    elif kind == "parquet":
        (folder / "_metadata.parquet").write_bytes(rng.randbytes(50))


def with_gaps(values: list[Any], rng: Random) -> list[Any]:
    """A row, or an entry of a row, that is not there."""
    at = rng.randrange(len(values))
    row = values[at]
    inner = isinstance(row, list) and row and rng.random() < 0.5
    return [*values[:at], [None, *row[1:]] if inner else None, *values[at + 1 :]]


COLUMNS: dict[str, Callable[[np.ndarray, Random], pa.Array]] = {
    "plain": lambda a, rng: pa.array(a.tolist()),
    "gaps": lambda a, rng: pa.array(with_gaps(a.tolist(), rng)),
    "ragged": lambda a, rng: pa.array([*a.tolist()[:-1], a.tolist()[-1] * 2]),
    "float32": lambda a, rng: pa.array(a.tolist(), pa.list_(pa.float32())),
    "fixed": lambda a, rng: pa.array(a.tolist(), pa.list_(pa.float64(), a.shape[1])),
    "large": lambda a, rng: pa.array(a.tolist(), pa.large_list(pa.float64())),
    "text": lambda a, rng: pa.array([str(value) for value in a.tolist()]),
    "dictionary": lambda a, rng: pa.array([str(v) for v in a.tolist()]).dictionary_encode(),
    "decimal": lambda a, rng: pa.array(a.tolist(), pa.decimal128(20, 2)),
    "struct": lambda a, rng: pa.array([{"x": value} for value in a.tolist()]),
    "map": lambda a, rng: pa.array([[("k", 1.0)]] * len(a), pa.map_(pa.string(), pa.float64())),
    "nulls": lambda a, rng: pa.nulls(len(a)),
}


def column(array: np.ndarray, rng: Random) -> pa.Array:
    """A Parquet column of an array, in one of many types."""
    kind = "plain" if rng.random() < 0.8 else rng.choice(tuple(COLUMNS))
    try:
        return COLUMNS[kind](array, rng)
    except (pa.ArrowException, TypeError, ValueError, IndexError, OverflowError):
        return pa.nulls(len(array))


def parquet(rng: Random) -> bytes:
    """A Parquet file, without any rows now and then."""
    parts = some_parts(rng)
    n = max((len(array) for array in parts.values() if array.ndim), default=3)
    fitting = {
        name: column(array, rng)
        for name, array in parts.items()
        if array.ndim and len(array) == n and array.dtype.kind in "biufUS"
    }
    table, file = pa.table(fitting or {"nothing": pa.nulls(n)}), io.BytesIO()
    pq.write_table(
        table if rng.random() < 0.9 else table.slice(0, 0),
        file,
        row_group_size=rng.choice((None, 1, 3)),
        compression=rng.choice(("snappy", "none", "zstd")),
        use_dictionary=rng.random() < 0.5,
        store_schema=rng.random() < 0.8,
    )
    return file.getvalue()


def write_parquet(rng: Random, folder: Path) -> Path:
    """A file, or a folder of files that mostly belong together."""
    data = parquet(rng)
    if rng.random() < 0.6:
        path = folder / f"{rng.choice(NAMES)}.parquet"
        path.write_bytes(damaged(data, rng) if rng.random() < 0.6 else data)
        return path
    path = folder / rng.choice(NAMES)
    path.mkdir()
    for k in range(rng.choice((1, 2, 3))):
        part = data if rng.random() < 0.7 else parquet(rng)
        (path / f"{k}.parquet").write_bytes(damaged(part, rng) if rng.random() < 0.2 else part)
    add_strangers(path, rng)
    return path


def select_from(source: Any, rng: Random, folder: Path) -> str:
    """`select_pool` with and without a limit of memory; nothing is left behind."""
    scratch = folder / "scratch"
    scratch.mkdir()
    before, budget = snapshot(folder), rng.choice((1, 1, 2, 5))
    try:
        selection = sabal.select_pool(
            source,
            budget,
            strategy=rng.choice(SEEN),
            memory=rng.choice(MEMORY),
            scratch=scratch,
            random_state=rng.randrange(10),
        )
    except sabal.SabalError as error:
        check_error(error)
        outcome = REFUSED
    else:
        check_selection(selection, selection.evidence["items"], budget)
        del selection
        outcome = ANSWERED
    gc.collect(0)
    assert snapshot(folder) == before
    return outcome


def pool_case(write: Write) -> Kind:
    """`select_pool` on what `write` leaves."""

    def run(rng: Random, folder: Path) -> str:
        return select_from(write(rng, folder), rng, folder)

    return run


def chunks_case(rng: Random, folder: Path) -> str:
    """`select_pool` on an iterable whose chunks do not match, or are none."""
    parts = some_parts(rng)
    chunks: list[Any] = [dict(parts), some_parts(rng) if rng.random() < 0.3 else dict(parts)]
    if "id" in chunks[1] and chunks[1]["id"].dtype.kind in "iu":
        chunks[1]["id"] = chunks[1]["id"] + 1000
    kind = rng.choice(("none", "missing", "odd", "empty", "dtype", "nothing", "generator"))
    if kind == "missing" and chunks[1]:
        chunks[1].pop(rng.choice(sorted(chunks[1])))
    elif kind == "odd":
        chunks[1] = rng.choice(ODD)
    elif kind == "empty":
        rows = {name: array[:0] for name, array in parts.items() if array.ndim}
        chunks.insert(rng.randrange(3), rows)
    elif kind == "dtype" and "features" in parts:
        chunks[1]["features"] = as_numpy(changed(outputs_of(rng)["features"], rng))
    elif kind == "nothing":
        chunks = []
    return select_from(iter(chunks) if kind == "generator" else chunks, rng, folder)


KINDS: dict[str, Kind] = {
    "pool npz": pool_case(write_npz),
    "pool npy": pool_case(write_npy_folder),
    "pool parquet": pool_case(write_parquet),
    "pool chunks": chunks_case,
}
