"""What the documentation shows: blocks of code, and the commands in them."""

from __future__ import annotations

import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path

import typer.main

import research.commands  # noqa: F401  (its commands add themselves to the app)
from research.cli import app as research_app
from sabal.cli import app
from sabal.cli.parse import parse_options
from sabal.strategies import make_strategy, strategies

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TARGETS = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
COMMANDS = r"(sabal|make|pip|python|pytest) "
PROGRAMS = {"sabal": app, "python -m research": research_app}
"""The programs of this project, each with its commands."""


@dataclass(frozen=True)
class Block:
    """Code on a page. What is indented has no language: commands to adapt, which are not run."""

    language: str
    text: str
    line: int

    @property
    def excuse(self) -> str | None:
        """Why it cannot run here, which readers see too."""
        found = re.match(r"# Not run by the tests[^:\n]*: (\w.+)", self.text)
        return None if found is None else found[1]

    def commands(self) -> list[list[str]]:
        """The words of each command; lines that end in a backslash go on."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page, from top to bottom."""
    blocks: list[Block] = []
    lines = page.read_text().splitlines()
    at = 0
    while at < len(lines):
        fence = re.match(r"( *)```(\w*)", lines[at])
        start = at
        at += 1
        if fence:
            while lines[at].strip() != "```":
                at += 1
            inside = [line[len(fence[1]) :] for line in lines[start + 1 : at]]
            blocks.append(Block(fence[2] or "text", "\n".join(inside), start + 2))
            at += 1
        elif re.match(r" {4}" + COMMANDS, lines[start]) and not lines[start - 1].strip():
            while at < len(lines) and lines[at].startswith("    "):
                at += 1
            text = "\n".join(line[4:] for line in lines[start:at])
            blocks.append(Block("", text, start + 1))
    return blocks


def prose_of(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)


def check_command(words: list[str]) -> None:
    """Refuse what cannot be typed as it is: unknown commands, options, targets, extras, files."""
    match words:
        case ["sabal", *arguments]:
            check_arguments(parsed(arguments, "sabal"))
        case ["python", "-m", "research", *arguments]:
            check_arguments(parsed(arguments, "python -m research"))
        case ["make", *targets]:
            assert set(targets) <= set(TARGETS), targets
        case ["pip", "install", *packages]:
            for extra in re.findall(r"(?:\.|sabal)\[([\w,]+)\]", " ".join(packages)):
                assert set(extra.split(",")) <= set(EXTRAS), extra
        case ["python", script, *_]:
            assert (ROOT / script).exists(), script
        case [".", ".venv/bin/activate"] | ["pre-commit", "install"]:
            pass
        case _:
            raise AssertionError(f"a command that no test understands: {shlex.join(words)}")


def commands_of(program: str) -> set[str]:
    """The names of the commands of a program."""
    return set(typer.main.get_command(PROGRAMS[program]).commands)


def parsed(arguments: list[str], program: str) -> dict[str, object]:
    """What a program makes of these words, without doing it."""
    command, context = typer.main.get_command(PROGRAMS[program]), None
    name: str | None = program
    while True:
        context = command.make_context(name, list(arguments), parent=context)
        arguments = [*getattr(context, "_protected_args", []), *context.args]
        if not arguments or not hasattr(command, "commands"):
            return context.params
        name, command, arguments = command.resolve_command(context, arguments)


def check_arguments(values: dict[str, object]) -> None:
    """Names of strategies and of their options, which the parser takes for mere words."""
    options = parse_options(list(values.get("option") or []))
    if values.get("strategy"):
        make_strategy(str(values["strategy"]), options)
    for name in str(values.get("strategies") or "").split(","):
        assert not name or name in strategies(), name
