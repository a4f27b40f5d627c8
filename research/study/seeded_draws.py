"""The random draws that the runs of a task and seed share."""

from __future__ import annotations

import numpy as np

from research.study.definitions import StudyTask
from sabal.errors import InputError

PURPOSES = ("pool", "test", "variant", "first", "made up")


def draws_of(seed: int, purpose: str) -> np.random.Generator:
    """Return the generator for one purpose, the same for all tasks and configurations of a seed."""
    return np.random.default_rng([seed, PURPOSES.index(purpose)])


def check_enough(items: int, wanted: int, task: StudyTask) -> None:
    """Raise if the data set of a task has fewer items than the task draws."""
    if wanted > items:
        raise InputError(
            f"at least {wanted} items for {task.name}",
            f"{items} in {task.dataset}",
            "bring more of it, or change the task",
        )


def first_per_class(labels: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return `count` items with equally many of every class, in random order."""
    classes = np.unique(labels)
    each, rest = divmod(count, classes.size)
    if rest:
        raise InputError(
            f"as many first labels for each of {classes.size} classes",
            str(count),
            f"ask for a multiple of {classes.size}",
        )
    rows = [rng.permutation(np.flatnonzero(labels == name))[:each] for name in classes]
    fewest = min(len(found) for found in rows)
    if fewest < each:
        raise InputError(f"{each} items of every class", f"{fewest} of one", "ask for fewer")
    return rng.permutation(np.concatenate(rows))
