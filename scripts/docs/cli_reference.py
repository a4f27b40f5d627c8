"""The command line's reference as Markdown: every command with its arguments and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer.main

from sabal.cli import app


def page() -> str:
    """Return the whole page."""
    parts = ["# Command line", "Made from the code of this version; `--help` says the same."]
    parts += [_entry(path, command) for path, command in commands()]
    return "\n\n".join(parts) + "\n"


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by its full name, `sabal` itself first."""
    yield from _below("sabal", typer.main.get_command(app))


def _below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _below(f"{path} {name}", child)


def undescribed() -> list[str]:
    """Commands, arguments and options without a word of help."""
    bare = [path for path, command in commands() if not command.help]
    for path, command in commands():
        bare += [f"{path} {_name(it)}" for it in _parameters(command) if not _help(it)]
    return bare


def _entry(path: str, command: Any) -> str:
    parts = [f"## {path}", _prose(command.help or "")]
    rows = [
        f"| `{_name(it)}` | {_default(it)} | {_cell(_help(it))} |" for it in _parameters(command)
    ]
    if rows:
        parts.append("\n".join(["| | default | |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _parameters(command: Any) -> list[Any]:
    return [it for it in command.params if it.name != "help"]


def _help(parameter: Any) -> str:
    return getattr(parameter, "help", None) or ""


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return (parameter.name or "").upper()
    names = [*parameter.opts, *parameter.secondary_opts]
    return ", ".join(sorted(names, key=len, reverse=True))


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    value = parameter.default
    if value is None or value is False or callable(value) or value == ():
        return ""
    return f"`{value}`" if value is not True else "yes"


def _prose(text: str) -> str:
    """Help as it was written: paragraphs, with `code` in them."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("*", "\\*")
