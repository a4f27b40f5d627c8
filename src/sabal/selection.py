"""Selection: the chosen batch, with its evidence."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from sabal.core.checks import check_choice
from sabal.core.extras import import_optional
from sabal.core.files import is_stream
from sabal.core.urls import (
    file_ending,
    file_system,
    is_url,
    local_path,
    write_file,
    write_text_file,
)
from sabal.errors import FileError, counted

ENDINGS = (".csv", ".jsonl", ".parquet")
COLUMNS = ("id", "rank", "weight", "score", "strategy", "seed")
SHOWN_ROWS = 5  # items that are shown in a terminal or a notebook
SHOWN_WARNINGS = 2
MAX_SHOWN = 90  # characters of a line


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """A batch of distinct items of a pool, in order of rank.

    A batch iterates over its row numbers, and `numpy.asarray(batch)` returns them.

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

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.indices, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        lines = [self._title(), *(f"  {line}" for line in (self._first_ids(), *self._remarks()))]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return a table of the first items, for notebooks."""
        names = ("id", "rank", "weight", "score")
        head = "".join(f"<th>{name}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_short(row[name]))}</td>" for name in names) + "</tr>"
            for row in self._rows(SHOWN_ROWS)
        )
        left = len(self) - SHOWN_ROWS
        more = [f"... and {left:,} more"] if left > 0 else []
        below = "".join(f"<div>{escape(line)}</div>" for line in (*more, *self._remarks()))
        title = f"<div><b>{escape(self._title())}</b></div>"
        return f"{title}<table><tr>{head}</tr>{body}</table>{below}"

    def _title(self) -> str:
        seed = "" if self.seed is None else f", seed {self.seed}"
        return f"Selection of {counted(len(self), 'item')} by {self.strategy!r}{seed}"

    def _first_ids(self) -> str:
        ids = ", ".join(str(item) for item in self.ids[:SHOWN_ROWS].tolist())
        return f"ids: {_cut(ids)}{', ...' if len(self) > SHOWN_ROWS else ''}"

    def _remarks(self) -> list[str]:
        """Return the main figures of the evidence, and the warnings."""
        found = []
        if "random_batch" in self.evidence and "objective" in self.evidence:
            ours, chance = self.evidence["objective"], self.evidence["random_batch"]["objective"]
            if "objective_before" in self.evidence:
                before = self.evidence["objective_before"]
                found.append(
                    f"uncertainty not covered: {before:.1%} before the batch, {ours:.1%} after it, "
                    f"{chance:.1%} after a random batch"
                )
            else:
                found.append(f"objective: {ours:.4g} (random batch: {chance:.4g}; lower is better)")
        warnings = self.evidence.get("warnings", [])
        found += [f"warning: {_cut(message)}" for message in warnings[:SHOWN_WARNINGS]]
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary per item, with the columns of the exported files."""
        return self._rows(len(self))

    def _rows(self, count: int) -> list[dict[str, Any]]:
        return [
            {
                "id": _as_text(self.ids[k].item()),
                "rank": k + 1,
                "weight": float(self.weights[k]),
                "score": float(self.scores[k]),
                "strategy": self.strategy,
                "seed": self.seed,
            }
            for k in range(min(count, len(self)))
        ]

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the batch as a table with a row per item.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}
            The library of the table.

        Returns
        -------
        table
            With the columns `id`, `index` (the row in the pool), `rank`, `weight` and `score`.
        """
        check_choice(library, "library", ("pandas", "polars", "pyarrow"))
        columns = {
            "id": self.ids,
            "index": self.indices,
            "rank": np.arange(1, len(self) + 1),
            "weight": self.weights,
            "score": self.scores,
        }
        module = import_optional(library, "tables", "to return a table")
        if library == "pyarrow":
            return module.table(columns)
        return module.DataFrame(columns)

    def to_csv(self, path: str | Path) -> str | Path:
        """Write the batch as CSV with a header."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, COLUMNS)
        writer.writeheader()
        writer.writerows(self.rows())
        return write_text_file(path, text.getvalue())

    def to_jsonl(self, path: str | Path) -> str | Path:
        """Write the batch as one JSON object per line."""
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows())
        return write_text_file(path, lines)

    def to_parquet(self, path: str | Path) -> str | Path:
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
        return write_file(path, lambda target: pq.write_table(table, target))

    def save(self, path: str | Path) -> str | Path:
        """Write the batch to a file that ends in .csv, .jsonl or .parquet, and return its path.

        The path may be a URL (s3://, gs://, file://, ...). Devices, pipes and /dev/stdout without
        an ending get CSV.
        """
        writers: dict[str, Callable[[str | Path], str | Path]] = {
            ".csv": self.to_csv,
            ".jsonl": self.to_jsonl,
            ".parquet": self.to_parquet,
        }
        return writers[check_destination(path)](path)


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else _cut(str(value))


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
    ending = file_ending(path)
    if not is_url(path) and is_stream(path):
        return ending if ending in ENDINGS else ".csv"
    if ending not in ENDINGS:
        raise FileError(
            f"a file name that ends in {', '.join(ENDINGS)}",
            str(path),
            "choose one of these endings",
        )
    if isinstance(path, str) and is_url(path):
        here = local_path(path)
        if here is None:
            file_system(path)  # raises for URLs of an unknown kind
            return ending
        path = here
    target = Path(path)
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
