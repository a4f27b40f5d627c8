"""The items of a pool as they are read, and the checks on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sabal.errors import FileError
from sabal.labeling.store import PoolItem

MAX_KEY_LENGTH = 1_000


@dataclass(frozen=True)
class ItemSource:
    """The items of a pool by row."""

    kind: str
    items: list[PoolItem]


def make_source(path: Path, kind: str, entries: Iterable[tuple[str, str]]) -> ItemSource:
    """Return a source of (key, content) pairs; keys must be distinct, and all of it valid text."""
    items: list[PoolItem] = []
    seen: set[str] = set()
    for row, (key, content) in enumerate(entries):
        if not key or len(key) > MAX_KEY_LENGTH or key in seen or "\0" in key:
            raise FileError(
                f"a distinct id of 1 to {MAX_KEY_LENGTH} characters, without NUL, for every item "
                f"of {path}",
                f"{key[:100]!r} at item {row}",
                "repair it, or name another column of ids",
            )
        for text in (key, content):
            _check_text(path, row, text)
        seen.add(key)
        items.append(PoolItem(row, key, kind, content))
    if not items:
        raise FileError(f"items in {path}", "none", "check what the path points to")
    blank = [item.id for item in items if not item.content.strip()]
    if blank:
        raise FileError(
            f"something to see in every row of {path}",
            f"{len(blank)} of {len(items)} empty, row {blank[0] + 1} first",
            "fill these rows or take them out, or name another column",
        )
    return ItemSource(kind, items)


def _check_text(path: Path, row: int, text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise FileError(
            f"names and texts of {path} in valid Unicode",
            f"item {row}, {text[:100]!a}",
            "rename or repair it",
        ) from None
