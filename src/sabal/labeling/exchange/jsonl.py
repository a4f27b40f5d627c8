"""JSONL: an object on every line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sabal.errors import FileError
from sabal.labeling.exchange.rows import Found, Row


def write_jsonl(rows: Sequence[Row], columns: Sequence[str]) -> bytes:
    """A line for every row, in UTF-8."""
    lines = [{name: row.get(name) for name in columns} for row in rows]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def read_jsonl(data: bytes, source: str) -> list[Found]:
    """The objects of a file; empty lines do not count."""
    found = []
    # Not splitlines: a string in JSON may hold what Unicode calls the end of a line.
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"line {number} of {source}"
        row = parse_json(line, where)
        if not isinstance(row, dict):
            raise FileError(f"a JSON object in {where}", type(row).__name__, "correct the file")
        found.append(Found(row, where))
    return found


def parse_json(data: bytes, where: str) -> Any:
    """The value that some JSON stands for."""
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise FileError(f"JSON in UTF-8 in {where}", str(error), "write the file again") from None
