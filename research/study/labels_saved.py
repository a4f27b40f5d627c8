"""Labels saved: how many a strategy needs to be as accurate as another is at the end.

Curves are means over the seeds that all compared configurations share. The share of labels is that
of the labels asked for: the first labels, which are the same for all, do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from research.study.configurations import CHANCE, DEFAULT
from research.study.definitions import Configuration, StudyTask
from research.study.run_records import StudyResults
from sabal.simulate.curves import first_reach

Curves = dict[str, np.ndarray]
"""The mean accuracy after every round, by configuration."""


@dataclass(frozen=True, kw_only=True)
class SavedLabels:
    """What the configurations need on one task.

    Attributes
    ----------
    task : str
        Name of the task.
    seeds : int
        Number of seeds that all of them have.
    share : dict
        Share of the labels asked for at which each reaches the final accuracy of random; infinite
        if it does not.
    best : str
        The baseline with the best final accuracy.
    share_of_best : float
        Share at which `sabal` reaches the final accuracy of that baseline; infinite if it does not.
    """

    task: str
    seeds: int
    share: dict[str, float]
    best: str
    share_of_best: float


def mean_curves(
    results: StudyResults, task: StudyTask, compared: Sequence[Configuration]
) -> tuple[Curves, int]:
    """Return the mean curves over the seeds that all have, and the number of these seeds."""
    runs = {each.name: results.of(task, each) for each in compared}
    seeds = set.intersection(*(set(found) for found in runs.values())) if runs else set()
    if not seeds:
        return {}, 0
    return {
        name: np.mean([found[seed].accuracies for seed in sorted(seeds)], axis=0)
        for name, found in runs.items()
    }, len(seeds)


def saved_labels(
    results: StudyResults, task: StudyTask, compared: Sequence[Configuration]
) -> SavedLabels | None:
    """Return what the configurations need on a task; None if they share no seed."""
    curves, seeds = mean_curves(results, task, compared)
    if not {CHANCE, DEFAULT} <= set(curves):
        return None
    level = curves[CHANCE][-1]
    # Rivals alone: what is compared with itself needs all labels.
    baselines = {name: curve for name, curve in curves.items() if name != DEFAULT}
    best = max(baselines, key=lambda name: baselines[name][-1])
    share = {name: share_needed(task, curve, level) for name, curve in curves.items()}
    return SavedLabels(
        task=task.name,
        seeds=seeds,
        share={**share, CHANCE: 1.0},
        best=best,
        share_of_best=share_needed(task, curves[DEFAULT], baselines[best][-1]),
    )


def share_needed(task: StudyTask, curve: np.ndarray, level: float) -> float:
    """Return the share of the labels asked for at which a curve first reaches an accuracy."""
    labels = np.asarray(task.labels, dtype=float)
    reached = first_reach(labels, curve, level)
    if reached is None:
        return float("inf")
    return float((reached - labels[0]) / (labels[-1] - labels[0]))
