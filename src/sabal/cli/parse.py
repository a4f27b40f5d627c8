"""Values that come as text."""

from __future__ import annotations

import json
from typing import Any

from sabal.errors import InputError


def parse_numbers(text: str, name: str) -> list[int]:
    """Whole numbers with commas between; `name` is for the message."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"{name} as whole numbers with commas between",
            repr(text),
            "write for instance 100,1000",
        ) from None


def parse_options(texts: list[str]) -> dict[str, Any]:
    """name=value texts as keyword arguments; values are JSON, or words."""
    pairs = [_parse_option(text) for text in texts]
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise InputError("every --option once", f"`{name}` twice", "leave one of them out")
    return dict(pairs)


def _parse_option(text: str) -> tuple[str, Any]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise InputError("--option as name=value", repr(text), "write for instance alpha=2.0")
    try:
        return name.replace("-", "_"), json.loads(value)
    except json.JSONDecodeError:
        # Words need no quotes: uncertainty=entropy.
        return name.replace("-", "_"), value
