"""Pool files: .npz, .parquet (a file or a folder of them) and folders of .npy, read safely.

A pool has `features` and one of `logits`, `probs`, `log_probs`; `id`, `label_probs` and (not in
Parquet, whose columns are all of one length) `labeled_features` if wanted.
Nothing is unpickled, ever.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sabal.errors import FileError
from sabal.files import read_npz
from sabal.outputs import PARTS, Outputs

NAMES = ("id", *PARTS, "labeled_features")


@dataclass(frozen=True)
class Contents:
    """What a pool file holds, and the names in it that mean nothing to us."""

    outputs: Outputs
    ignored: tuple[str, ...]


def read_pool(path: str | Path) -> Contents:
    """The pool at `path`; what kind of file it is follows from its ending or its content."""
    source = Path(path)
    if not source.exists():
        raise FileError("a pool file or folder", f"nothing at {source}", "check the path")
    names, arrays = _read(source)
    _reject_near_misses(source, names)
    if not arrays:
        raise FileError(
            f"a pool with some of {', '.join(NAMES)}",
            f"{source} with {', '.join(names) or 'nothing'}",
            "rename the arrays or columns",
        )
    parts: dict[str, Any] = dict(arrays)
    ids = parts.pop("id", None)
    outputs = Outputs(**parts, ids=None if ids is None else ids.tolist())
    return Contents(outputs, tuple(name for name in names if name not in NAMES))


Read = tuple[list[str], dict[str, np.ndarray]]
"""Every name in a file, and the arrays with names that a pool may have."""


def _read(source: Path) -> Read:
    if source.is_dir():
        if any(source.glob("*.npy")):
            return _read_npy_folder(source)
        if any(source.glob("*.parquet")):
            return _read_parquet(source)
    elif source.suffix == ".npz":
        return read_npz(source, NAMES)
    elif source.suffix == ".parquet":
        return _read_parquet(source)
    raise FileError(
        "a .npz file, a .parquet file, or a folder of .parquet or .npy files",
        str(source),
        "save the pool as one of these",
    )


def _read_npy_folder(source: Path) -> Read:
    files = {file.stem: file for file in sorted(source.glob("*.npy"))}
    arrays = {}
    for name in NAMES:
        if name in files:
            try:
                arrays[name] = np.load(files[name], allow_pickle=False, mmap_mode="r")
            except (OSError, ValueError, EOFError) as error:
                raise _unreadable(files[name], error) from None
    return list(files), arrays


def _read_parquet(source: Path) -> Read:
    import pyarrow as pa
    import pyarrow.dataset as ds

    try:
        files = ds.dataset(str(source), format="parquet")
        names = list(files.schema.names)
        table = files.to_table(columns=[name for name in ("id", *PARTS) if name in names])
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(source, error) from None
    return names, {name: _column(table.column(name), name, source) for name in table.column_names}


def _column(column: Any, name: str, source: Path) -> np.ndarray:
    """A Parquet column as an array: numbers, strings, or (nested) lists of equal length."""
    import pyarrow as pa

    values = column.combine_chunks()
    shape = [len(values)]
    while pa.types.is_nested(values.type):
        if not hasattr(values, "flatten") or pa.types.is_struct(values.type) or values.null_count:
            raise FileError(
                f"column `{name}` of {source} as lists of numbers, one for every row",
                f"{column.type} with {values.null_count} empty rows",
                "fill or drop these rows",
            )
        entries = values.flatten()
        length, ragged = divmod(len(entries), len(values)) if len(values) else (0, 0)
        lengths = values.value_lengths() if hasattr(values, "value_lengths") else None
        if ragged or (lengths is not None and any(x.as_py() != length for x in lengths.unique())):
            raise FileError(
                f"lists of one length in column `{name}` of {source}",
                "lists of different lengths",
                "give every item the same number of entries",
            )
        shape.append(length)
        values = entries
    if values.null_count:
        raise FileError(
            f"column `{name}` of {source} without gaps",
            f"{values.null_count} empty entries",
            "fill or drop these rows",
        )
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(shape)


def _reject_near_misses(source: Path, names: list[str]) -> None:
    """Refuse `feature` or `ids`: leaving out what was surely meant would choose without it."""
    for name in names:
        meant = difflib.get_close_matches(name.lower(), NAMES, n=1, cutoff=0.8)
        if name not in NAMES and meant and meant[0] not in names:
            raise FileError(
                f"arrays named {', '.join(NAMES)} in {source}",
                f"`{name}`",
                f"rename it to `{meant[0]}`",
            )


def _unreadable(source: Path, error: Exception) -> FileError:
    return FileError(f"a readable pool in {source}", str(error), "write the file again")
