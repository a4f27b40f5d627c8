"""The effect of each change to the paper's method as printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from research.study.analysis import Areas, Difference, difference, paired


@dataclass(frozen=True)
class MethodChange:
    """A change to the paper's method: two configurations that differ in nothing else."""

    what: str
    before: str
    after: str


CHANGES = (
    MethodChange(
        "Algorithm 1, line 3: the decrease of the best step for the first-order score",
        "greedy-as-printed",
        "sabal-greedy",
    ),
    MethodChange(
        "Algorithm 1 in scale-free units, alpha = beta = 1", "sabal-greedy", "greedy-free"
    ),
    MethodChange(
        "Algorithm 2, line 6: items left out cost 1/2 s^2, and the bonus carries the step",
        "iht-as-printed",
        "sabal-iht",
    ),
    MethodChange("Algorithm 2 in scale-free units, alpha = beta = 1", "sabal-iht", "iht-free"),
)


@dataclass(frozen=True, kw_only=True)
class Effect:
    """The effect of a change over tasks.

    Attributes
    ----------
    change : MethodChange
        The change.
    over_tasks : Difference
        Mean difference over tasks.
    better, worse : int
        Number of tasks on which the change alone is significantly better or worse.
    """

    change: MethodChange
    over_tasks: Difference
    better: int
    worse: int


def effects(areas: Areas, tasks: Sequence[str]) -> list[Effect]:
    """Return the effect of every change whose two configurations were both run."""
    found = []
    for change in CHANGES:
        by_task = [
            away for task in tasks if (away := _effect_on(areas.get(task, {}), change)) is not None
        ]
        over_tasks = difference([away.mean for away in by_task])
        if over_tasks is not None:
            better = int(np.sum([away.better for away in by_task]))
            worse = int(np.sum([away.worse for away in by_task]))
            found.append(Effect(change=change, over_tasks=over_tasks, better=better, worse=worse))
    return found


def _effect_on(areas: dict[str, dict[int, float]], change: MethodChange) -> Difference | None:
    return paired(areas.get(change.after, {}), areas.get(change.before, {}))
