"""Which kind of source a path is."""

from __future__ import annotations

from pathlib import Path

from sabal.errors import FileError
from sabal.labeling.sources.images import read_images
from sabal.labeling.sources.source import Source
from sabal.labeling.sources.table import read_table
from sabal.labeling.sources.texts import read_texts

__all__ = ["Source", "read_source"]


def read_source(
    path: Path, *, text_column: str | None = None, id_column: str | None = None
) -> Source:
    """The items at `path`: only their names and texts are read, no image and no feature."""
    if path.is_dir():
        return read_images(path)
    ending = path.suffix.lower()
    if ending not in (".csv", ".jsonl", ".parquet"):
        raise FileError(
            "a folder of images, or a .csv, .jsonl or .parquet file", str(path), "pass one of these"
        )
    if not path.is_file():
        raise FileError(f"a file or folder at {path}", "nothing there", "check the path")
    if ending == ".parquet":
        return read_table(path, text_column, id_column)
    return read_texts(path, text_column, id_column)
