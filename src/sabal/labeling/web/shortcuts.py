"""Which keys choose which class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ONE_KEY = "1234567890"
SHORT = 4
"""Names of at most so many characters fit five to a row on a phone."""


@dataclass(frozen=True)
class Shortcut:
    """A class and the digits to press for it."""

    label: str
    keys: str


def shortcuts(classes: Sequence[str]) -> list[Shortcut]:
    """Keys in the order of the classes.

    Classes that are single digits are their own keys. Up to ten others take 1 to 9 and then 0, as
    on the keyboard; with more, every class has a number of the same length, such as 07.
    """
    if all(len(name) == 1 and name in ONE_KEY for name in classes):
        return [Shortcut(name, name) for name in classes]
    if len(classes) <= len(ONE_KEY):
        return [Shortcut(*pair) for pair in zip(classes, ONE_KEY, strict=False)]
    width = len(str(len(classes)))
    return [Shortcut(name, f"{number:0{width}d}") for number, name in enumerate(classes, 1)]


def layout_of(classes: Sequence[str]) -> str:
    """How the buttons are laid out: "few", "ten" (two rows of five), "ten short", or "many"."""
    if len(classes) > len(ONE_KEY):
        return "many"
    if len(classes) <= len(ONE_KEY) // 2:
        return "few"
    return "ten short" if max(map(len, classes)) <= SHORT else "ten"
