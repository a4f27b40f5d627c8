"""The names of the formats, and which one a file has."""

from __future__ import annotations

from pathlib import Path

from sabal.core.files import is_stream
from sabal.errors import FileError, UnknownNameError, did_you_mean

ENDINGS = {
    "csv": ".csv",
    "jsonl": ".jsonl",
    "parquet": ".parquet",
    "label-studio": ".json",
}
"""The ending of a file in every format."""

FORMATS = tuple(ENDINGS)

MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
    "label-studio": "application/json",
}
"""What a web server says of a file in every format."""


def format_of(path: str | Path) -> str:
    """The format that the ending of a file names."""
    ending = Path(path).suffix.lower()
    for name, usual in ENDINGS.items():
        if usual == ending:
            return name
    raise FileError(
        f"a file name that ends in {', '.join(ENDINGS.values())}",
        str(path),
        "choose one of these endings, or name the format with --format",
    )


def format_to_write(path: str | Path) -> str:
    """The same; CSV for standard output, devices and pipes whose name has none of the endings."""
    ending = Path(path).suffix.lower()
    return "csv" if is_stream(path) and ending not in ENDINGS.values() else format_of(path)


def check_format(name: str) -> str:
    """A format that exists."""
    if name not in ENDINGS:
        raise UnknownNameError(
            f"a format out of {', '.join(FORMATS)}", repr(name), did_you_mean(name, FORMATS)
        )
    return name
