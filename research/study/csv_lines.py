"""Append-only files of results with one line each, so that a crash loses no other result."""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from sabal.core.files import make_folder
from sabal.errors import FileError

CUT_SHORT = b"," * 20 + b"cut short\n"

L = TypeVar("L")


def columns_of(kind: type[Any]) -> tuple[str, ...]:
    """Return the columns of a file of such dataclasses."""
    return tuple(field.name for field in fields(kind))


def append_line(line: Any, path: Path) -> None:
    """Append a dataclass under a lock, so that several processes can write to one file.

    A line truncated by a crash is ended first with surplus columns, which make it invalid wherever
    it was cut.
    """
    columns = columns_of(type(line))
    make_folder(path.parent)
    try:
        with path.open("ab+") as file:
            # Released when the file is closed.
            fcntl.flock(file, fcntl.LOCK_EX)
            if file.seek(0, os.SEEK_END) == 0:
                file.write((",".join(columns) + "\n").encode())
            elif not _ends_whole(file):
                file.write(CUT_SHORT)
            file.write(_as_bytes([getattr(line, name) for name in columns]))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise FileError(
            f"to write {path}", error.strerror or str(error), "check that there is room for it"
        ) from None


def _ends_whole(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")


def _as_bytes(values: Sequence[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode()


def read_lines(path: Path, kind: type[L]) -> tuple[list[L], int]:
    """Return all complete lines as dataclasses, and the number of invalid lines."""
    if not path.is_file():
        return [], 0
    columns, types = columns_of(kind), get_type_hints(kind)
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, ValueError) as error:
        raise FileError(f"a readable {path}", str(error), "restore it from a copy") from None
    if lines and lines[0].strip() != ",".join(columns):
        raise FileError(
            f"{path} to begin with {','.join(columns)}", repr(lines[0].strip()), "restore it"
        )
    found, bad = [], 0
    for line in lines[1:]:
        try:
            values = next(csv.reader([line]), [])
            if not line.endswith("\n"):
                raise ValueError("a line without an end")
            given = dict(zip(columns, values, strict=True))
            found.append(kind(**{name: types[name](text) for name, text in given.items()}))
        except (ValueError, csv.Error):
            bad += bool(line.strip())
    return found, bad
