"""Values given as text on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sabal.core.files import STANDARD_OUTPUT
from sabal.core.urls import is_url
from sabal.errors import InputError

ENGINES = ("local", "ray")


def parse_out(out: Path | None) -> Path:
    """Return where to write; `-`, or nothing, is standard output."""
    return STANDARD_OUTPUT if out is None or out == Path("-") else out


def parse_out_or_url(out: str) -> str | Path:
    """Return where to write, as `parse_out` does, or a URL as it is."""
    return out if is_url(out) else parse_out(Path(out))


def parse_columns(texts: list[str] | None) -> dict[str, str | list[str]] | None:
    """Return texts such as ``probs=cat,dog`` as the columns of each array."""
    if not texts:
        return None
    found: dict[str, str | list[str]] = {}
    for text in texts:
        array, _, names = text.partition("=")
        if not names or array in found:
            example = "write for instance features=embedding"
            raise InputError("--columns once for an array, as array=column", repr(text), example)
        found[array] = names.split(",") if "," in names else names
    return found


def parse_options(
    texts: list[str], flag: str = "--option", example: str = "alpha=2.0"
) -> dict[str, Any]:
    """Return texts such as ``alpha=2.0`` as keyword arguments; a value is JSON, or else a word.

    Hyphens in names become underscores. `flag` and `example` are for messages.
    """
    pairs = [_parse_option(text, flag, example) for text in texts]
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"every {flag} once", f"`{name}` twice", "leave one of them out")
    return dict(pairs)


def _parse_option(text: str, flag: str, example: str) -> tuple[str, Any]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise InputError(f"{flag} as name=value", repr(text), f"write for instance {example}")
    try:
        return name.replace("-", "_"), json.loads(value)
    except (ValueError, RecursionError):
        # Words need no quotes: uncertainty=entropy.
        return name.replace("-", "_"), value


def parse_engine(engine: str, **for_ray: Any) -> str:
    """Return the engine, `local` or `ray`; `for_ray` are options that only the latter has."""
    if engine not in ENGINES:
        raise InputError(f"--engine as {' or '.join(ENGINES)}", repr(engine), "pick one of these")
    for name, value in for_ray.items():
        if engine != "ray" and value is not None:
            raise InputError(
                f"--engine ray where there is --{name}",
                f"--engine {engine}",
                f"write --engine ray, or leave --{name} out",
            )
    return engine


def parse_names(text: str, flag: str) -> tuple[str, ...]:
    """Return the names in a comma-separated text, without blanks or duplicates."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise InputError(f"{flag} as names with commas between", repr(text), "name at least one")
    return names
