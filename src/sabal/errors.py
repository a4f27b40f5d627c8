"""Errors that the caller can fix, in one line: what was expected, what came, what to do."""

from __future__ import annotations

import difflib
import os
import sys
import warnings
from collections.abc import Iterable

LONGEST_SHOWN = 100
"""Largest number of characters of a value in a message."""


class SabalError(Exception):
    """Base class of the errors that the caller can fix.

    The message is one line of three parts, also kept as attributes.

    Parameters
    ----------
    expected : str
        What was expected.
    got : str
        What came instead.
    fix : str
        What to do about it.
    """

    def __init__(self, expected: str, got: str, fix: str) -> None:
        self.expected = _one_line(expected)
        self.got = _one_line(got)
        self.fix = _one_line(fix)
        super().__init__(f"expected {self.expected}; got {self.got}; {self.fix}")

    def __reduce__(self) -> tuple[type[SabalError], tuple[str, str, str]]:
        return type(self), (self.expected, self.got, self.fix)


class InputError(SabalError, ValueError):
    """An array, a budget or an option that cannot be used."""


class UnknownNameError(SabalError, LookupError):
    """A strategy, option or array name that does not exist."""


class FileError(SabalError):
    """A file or folder that cannot be read or written."""


class MissingPackageError(SabalError):
    """A feature whose optional dependency is not installed."""


class ClusterError(SabalError):
    """A cluster that cannot be reached, or that fails."""


class ServerError(SabalError):
    """A server that cannot be reached, or that fails."""


class SabalWarning(UserWarning):
    """The result is valid, but may not be what the caller hopes for."""


def warn(message: str) -> None:
    """Issue a SabalWarning that points at the line of the caller of this package."""
    package = os.path.dirname(__file__) + os.sep
    frame, level, found = sys._getframe(1), 2, 2
    while True:
        inside = frame.f_code.co_filename.startswith(package)
        if frame.f_back is None:
            break
        frame, level = frame.f_back, level + 1
        if inside:
            found = level
    warnings.warn(message, SabalWarning, stacklevel=found)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "pick one of these") -> str:
    """Return what to do about a wrong name: use the most similar of `known`, if there is one."""
    close = difflib.get_close_matches(name.lower(), list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else otherwise


def counted(number: int, noun: str) -> str:
    """Return a number and what it counts: "1 label", "2,000 labels"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shown(value: object) -> str:
    """Return a short text for any value, for a message."""
    try:
        text = repr(value)
    except Exception:  # a foreign class, or an int that is too long for Python to print
        text = ""
    return text if 0 < len(text) <= LONGEST_SHOWN else f"a {type(value).__name__}"


def _one_line(text: str) -> str:
    return " ".join(str(text).split())
