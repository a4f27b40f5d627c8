"""What the commands `study` and `corrections` share."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import typer

from research import PROGRAM
from sabal.cli.parse import parse_names
from sabal.errors import FileError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from research.study.definitions import StudyTask


class _Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)


def named(text: str | None, known: Sequence[N], flag: str) -> list[N]:
    """Return the objects that a comma-separated list of names and patterns selects.

    Parameters
    ----------
    text : str or None
        Names with commas between; `*` matches any text. None selects everything.
    known : sequence
        What can be selected. The answer keeps its order.
    flag : str
        The option, for the error message.
    """
    if text is None:
        return list(known)
    names = [each.name for each in known]
    selected: set[str] = set()
    for pattern in parse_names(text, flag):
        found = [name for name in names if fnmatchcase(name, pattern)]
        if not found:
            raise UnknownNameError(
                f"{flag} out of {', '.join(names)}", repr(pattern), did_you_mean(pattern, names)
            )
        selected.update(found)
    return [each for each in known if each.name in selected]


def missing_datasets(tasks: Sequence[StudyTask], data: Path | None) -> dict[str, str]:
    """Return the data sets of these tasks that are unavailable, with the reason.

    They are reported on standard error. If no data set is available, a FileError is raised.
    """
    from research.study.task_data import missing_data

    missing = missing_data([task.dataset for task in tasks], data)
    if tasks and all(task.dataset in missing for task in tasks):
        raise FileError(
            "the data of any of these tasks",
            "; ".join(f"none for {name} ({reason})" for name, reason in missing.items()),
            "name a folder that has them with --data",
        )
    for name, reason in missing.items():
        left_out = dict.fromkeys(task.name for task in tasks if task.dataset == name)
        say(f"left out, without {name}: {', '.join(left_out)} ({reason})")
    return missing


@contextmanager
def interruptible() -> Iterator[None]:
    """Exit with code 130 on Ctrl+C, with a line that says how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        say("interrupted; every finished run is kept: the same command goes on")
        raise typer.Exit(130) from None


def origin_lines(
    command: str, options: dict[str, object], flags: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the command as typed, and a line with the date, the libraries and the machine.

    Parameters
    ----------
    command : str
        Name of the command.
    options : dict
        Values by option; None for an option that was not given.
    flags : sequence of str
        Options without a value.
    """
    from research.bench.machine import machine_facts

    words = [*PROGRAM.split(), command, *flags]
    for flag, value in options.items():
        words += [] if value is None else [flag, str(value)]
    facts = machine_facts()
    libraries = ", ".join(f"{name} {found}" for name, found in facts["libraries"].items())
    return (
        shlex.join(words),
        f"Written on {facts['date']} with Python {facts['python']}, {libraries}, on "
        f"{facts['cores']} cores of {facts['processor'] or 'an unnamed processor'}.",
    )


def say(line: str) -> None:
    """Print one line on standard error."""
    print(f"research: {' '.join(line.split())}", file=sys.stderr)
