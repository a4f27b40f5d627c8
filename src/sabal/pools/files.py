"""Pool files: .npz, .parquet (a file or a folder of them) and folders of .npy, read safely.

A pool has `features` and one of `logits`, `probs`, `log_probs`; `id` and `label_probs` if wanted.
Nothing is unpickled, ever.
"""

from __future__ import annotations

import difflib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from sabal.errors import FileError
from sabal.outputs import PARTS, Outputs

NAMES = ("id", *PARTS)


def read_pool(path: str | Path) -> Outputs:
    """The pool at `path`; what kind of file it is follows from its ending or its content."""
    source = Path(path)
    if not source.exists():
        raise FileError("a pool file or folder", f"nothing at {source}", "check the path")
    arrays = _read(source)
    _reject_near_misses(source, list(arrays))
    known: dict[str, Any] = {name: arrays[name] for name in NAMES if name in arrays}
    if not known:
        raise FileError(
            f"a pool with some of {', '.join(NAMES)}",
            f"{source} with {', '.join(arrays) or 'nothing'}",
            "rename the arrays or columns",
        )
    ids = known.pop("id", None)
    return Outputs(**known, ids=None if ids is None else ids.tolist())


def _read(source: Path) -> dict[str, np.ndarray]:
    if source.is_dir():
        if any(source.glob("*.npy")):
            return _read_npy_folder(source)
        if any(source.glob("*.parquet")):
            return _read_parquet(source)
    elif source.suffix == ".npz":
        return _read_npz(source)
    elif source.suffix == ".parquet":
        return _read_parquet(source)
    raise FileError(
        "a .npz file, a .parquet file, or a folder of .parquet or .npy files",
        str(source),
        "save the pool as one of these",
    )


def _read_npz(source: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(source, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files if _is_wanted(name)}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zipfile.error) as error:
        raise _unreadable(source, error) from None


def _read_npy_folder(source: Path) -> dict[str, np.ndarray]:
    arrays = {}
    for file in sorted(source.glob("*.npy")):
        if not _is_wanted(file.stem):
            continue
        try:
            arrays[file.stem] = np.load(file, allow_pickle=False, mmap_mode="r")
        except (OSError, ValueError, EOFError) as error:
            raise _unreadable(file, error) from None
    return arrays


def _read_parquet(source: Path) -> dict[str, np.ndarray]:
    import pyarrow as pa
    import pyarrow.dataset as ds

    try:
        files = ds.dataset(str(source), format="parquet")
        wanted = [name for name in files.schema.names if _is_wanted(name)]
        table = files.to_table(columns=wanted)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(source, error) from None
    return {name: _column(table.column(name), name, source) for name in table.column_names}


def _column(column: Any, name: str, source: Path) -> np.ndarray:
    """A Parquet column as an array: numbers, strings, or (nested) lists of equal length."""
    import pyarrow as pa

    values = column.combine_chunks()
    shape = [len(values)]
    while pa.types.is_nested(values.type):
        if not hasattr(values, "flatten") or pa.types.is_struct(values.type) or values.null_count:
            raise FileError(
                f"column `{name}` as lists of numbers without gaps", str(column.type), "rewrite it"
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


def _is_wanted(name: str) -> bool:
    """Whether to read `name`: known names, and near misses of them, which are refused by name."""
    return name in NAMES or bool(_near(name))


def _near(name: str) -> list[str]:
    return difflib.get_close_matches(name.lower(), NAMES, n=1, cutoff=0.8)


def _reject_near_misses(source: Path, names: list[str]) -> None:
    for name in names:
        if name not in NAMES and _near(name)[0] not in names:
            raise FileError(
                f"arrays named {', '.join(NAMES)} in {source}",
                f"`{name}`",
                f"rename it to `{_near(name)[0]}`",
            )


def _unreadable(source: Path, error: Exception) -> FileError:
    return FileError(f"a readable pool in {source}", str(error), "write the file again")
