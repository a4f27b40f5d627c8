"""What every kind of source gives, and what is checked of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sabal.errors import FileError
from sabal.labeling.store import Item

LONGEST_KEY = 1_000


@dataclass(frozen=True)
class Source:
    """The items of a pool, by row."""

    kind: str
    items: list[Item]


def source_of(path: Path, kind: str, entries: Iterable[tuple[str, str]]) -> Source:
    """A source of (key, content) pairs: keys are distinct; all can be seen, and can be written."""
    items: list[Item] = []
    seen: set[str] = set()
    for row, (key, content) in enumerate(entries):
        if not key or len(key) > LONGEST_KEY or key in seen or "\0" in key:
            raise FileError(
                f"a distinct id of 1 to {LONGEST_KEY} characters, without NUL, for every item of "
                f"{path}",
                f"{key[:100]!r} at item {row}",
                "repair it, or name another column of ids",
            )
        for text in (key, content):
            _check_text(path, row, text)
        seen.add(key)
        items.append(Item(row, key, kind, content))
    if not items:
        raise FileError(f"items in {path}", "none", "check what the path points to")
    blank = [item.id for item in items if not item.content.strip()]
    if blank:
        raise FileError(
            f"something to see in every row of {path}",
            f"{len(blank)} of {len(items)} empty, row {blank[0] + 1} first",
            "fill these rows or take them out, or name another column",
        )
    return Source(kind, items)


def _check_text(path: Path, row: int, text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise FileError(
            f"names and texts of {path} in valid Unicode",
            f"item {row}, {text[:100]!a}",
            "rename or repair it",
        ) from None
