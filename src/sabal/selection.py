"""Selection: the chosen batch, with its evidence."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sabal.core.extras import import_optional
from sabal.core.files import is_stream, write_text_whole, write_whole
from sabal.errors import FileError

ENDINGS = (".csv", ".jsonl", ".parquet")
COLUMNS = ("id", "rank", "weight", "score", "strategy", "seed")


@dataclass(frozen=True, eq=False)
class Selection:
    """A batch of distinct items of a pool, in order of rank.

    Attributes
    ----------
    indices : array of shape (b,)
        Row numbers in the caller's pool.
    ids : array of shape (b,)
        The ids of the items.
    weights : array of shape (b,)
        Importance weights for training (1 for strategies without weights).
    scores : array of shape (b,)
        The scores that the strategy selected by, in its own units.
    strategy : str
        The name of the strategy.
    evidence : dict
        Figures on the quality of the batch, and `warnings`.
    seed : int or None
        The seed that repeats the selection; None if a generator was passed.
    """

    indices: np.ndarray
    ids: np.ndarray
    weights: np.ndarray
    scores: np.ndarray
    strategy: str
    evidence: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None

    def __len__(self) -> int:
        return len(self.indices)

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary per item, with the columns of the exported files."""
        return [
            {
                "id": _as_text(self.ids[k].item()),
                "rank": k + 1,
                "weight": float(self.weights[k]),
                "score": float(self.scores[k]),
                "strategy": self.strategy,
                "seed": self.seed,
            }
            for k in range(len(self))
        ]

    def to_csv(self, path: str | Path) -> Path:
        """Write the batch as CSV with a header."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, COLUMNS)
        writer.writeheader()
        writer.writerows(self.rows())
        return write_text_whole(path, text.getvalue())

    def to_jsonl(self, path: str | Path) -> Path:
        """Write the batch as one JSON object per line."""
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows())
        return write_text_whole(path, lines)

    def to_parquet(self, path: str | Path) -> Path:
        """Write the batch as Parquet; the evidence goes into the file's metadata as JSON."""
        pa = import_optional("pyarrow", "parquet", "to write Parquet files")
        pq = import_optional("pyarrow.parquet", "parquet", "to write Parquet files")

        rows = self.rows()
        columns = {name: [row[name] for row in rows] for name in COLUMNS}
        # Arrow does not infer the type of the largest unsigned integers.
        kind = pa.from_numpy_dtype(self.ids.dtype) if self.ids.dtype.kind in "iu" else pa.string()
        schema = pa.schema(
            [
                ("id", kind),
                ("rank", pa.int64()),
                ("weight", pa.float64()),
                ("score", pa.float64()),
                ("strategy", pa.string()),
                ("seed", pa.int64()),
            ],
            metadata={"sabal.evidence": json.dumps(self.evidence)},
        )
        table = pa.table(columns, schema=schema)
        return write_whole(path, lambda target: pq.write_table(table, target))

    def save(self, path: str | Path) -> Path:
        """Write the batch to a file that ends in .csv, .jsonl or .parquet, and return its path.

        Devices, pipes and /dev/stdout without an ending get CSV.
        """
        writers: dict[str, Callable[[str | Path], Path]] = {
            ".csv": self.to_csv,
            ".jsonl": self.to_jsonl,
            ".parquet": self.to_parquet,
        }
        return writers[check_destination(path)](path)


def _as_text(item: Any) -> Any:
    """Return an id as an integer or as text; raise if it is not UTF-8."""
    try:
        if isinstance(item, bytes):
            return item.decode()
        if isinstance(item, str):
            item.encode()
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise FileError("ids in UTF-8", f"{item!r} ({error.reason})", "rename the item") from None
    return item


def check_destination(path: str | Path) -> str:
    """Return the file ending for saving a batch; raise if `path` cannot be written."""
    target = Path(path)
    ending = target.suffix.lower()
    if is_stream(target):
        return ending if ending in ENDINGS else ".csv"
    if ending not in ENDINGS:
        raise FileError(
            f"a file name that ends in {', '.join(ENDINGS)}",
            str(path),
            "choose one of these endings",
        )
    # Unlike Path.is_dir, os.path.isdir also accepts names that are too long.
    folder = os.path.dirname(os.path.realpath(target))
    if not os.path.isdir(folder):
        raise FileError(
            f"to write {target}", f"no folder {folder}", "make the folder, or choose another"
        )
    if os.path.isdir(target):
        raise FileError(f"to write {target}", "a folder of that name", "choose another name")
    if ending == ".parquet":
        import_optional("pyarrow", "parquet", "to write Parquet files")
    return ending
