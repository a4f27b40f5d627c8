"""Verdicts on goals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class GoalVerdict:
    """The verdict on a goal; `met` is None if it was not measured completely."""

    what: str
    goal: str
    measured: str
    met: bool | None

    @property
    def answer(self) -> str:
        """The verdict in words."""
        return {True: "met", False: "not met", None: "not measured"}[self.met]

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict in a form that JSON can represent."""
        return {**asdict(self), "verdict": self.answer}


def judged(
    what: str,
    goal: str,
    values: Sequence[Any],
    good: Callable[[Any], bool],
    show: Callable[[Any], str],
    worst: Callable[..., Any],
) -> GoalVerdict:
    """Return the verdict on the worst of `values`, where None was not measured.

    A value that misses the goal is decisive; to meet the goal, all values must be there.
    """
    there = [value for value in values if value is not None]
    if not there:
        return GoalVerdict(what, goal, "nothing", None)
    decisive = worst(there)
    partial = "" if len(there) == len(values) else f" on {len(there)} of {len(values)} shapes"
    at_worst = " at worst" if len(there) > 1 else ""
    met = False if not good(decisive) else None if partial else True
    return GoalVerdict(what, goal, f"{show(decisive)}{at_worst}{partial}", met)
