"""The paper's method as it is printed, and what each change to it brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from research.study.analysis import Areas, Difference, difference, paired


@dataclass(frozen=True)
class Change:
    """One change to the paper's method: two configurations that differ in nothing else."""

    what: str
    before: str
    after: str


CHANGES = (
    Change(
        "Algorithm 1, line 3: the decrease of the best step for the first-order score",
        "greedy-as-printed",
        "sabal-greedy",
    ),
    Change("Algorithm 1 in scale-free units, alpha = beta = 1", "sabal-greedy", "greedy-free"),
    Change(
        "Algorithm 2, line 6: items left out cost 1/2 s^2, and the bonus carries the step",
        "iht-as-printed",
        "sabal-iht",
    ),
    Change("Algorithm 2 in scale-free units, alpha = beta = 1", "sabal-iht", "iht-free"),
)


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What a change brings: over tasks, and on how many of them it is better or worse by itself."""

    change: Change
    over_tasks: Difference
    better: int
    worse: int


def effects(areas: Areas, tasks: Sequence[str]) -> list[Effect]:
    """The effect of every change of which both sides were run."""
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


def _effect_on(areas: dict[str, dict[int, float]], change: Change) -> Difference | None:
    return paired(areas.get(change.after, {}), areas.get(change.before, {}))
