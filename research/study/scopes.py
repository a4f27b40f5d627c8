"""Figures of the study by scope: all tasks, each family, large batches, and held-out tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from research.study.analysis import (
    Areas,
    ConfigurationRanking,
    Difference,
    areas_of,
    finals_of,
    ranking,
)
from research.study.chance import LEVEL, behind_any, behind_best, chance_of_behind, shared_values
from research.study.configurations import CHANCE, DEFAULT
from research.study.definitions import FAMILIES, Configuration, StudyTask
from research.study.labels_saved import SavedLabels, saved_labels
from research.study.planning import FEW_SEEDS
from research.study.run_records import StudyResults
from sabal.simulate.curves import interval

LARGE_BATCH = 200
LARGE = f"b >= {LARGE_BATCH}"
ORACLE = "oracle"


@dataclass(frozen=True, kw_only=True)
class ScopeFigures:
    """The figures of one scope.

    Attributes
    ----------
    title : str
        What the tasks have in common.
    by_area, by_final : ConfigurationRanking
        Mean ranks by area under the curve and by final accuracy.
    saved : list of SavedLabels
        Labels needed, task by task.
    behind, behind_adjusted : list of str
        Tasks with at least FEW_SEEDS seeds on which `sabal` is significantly behind the best of the
        others, by area: tested against that one alone, and allowing for all others (Bonferroni).
    tested : int
        The tasks with so many seeds.
    chance : float
        The number of tasks in `behind` that chance would give if all were equally good.
    lead, lead_by_data : dict of str to Difference
        Mean difference in area of `sabal` to every other over tasks, and over data sets (means over
        the tasks of each), with intervals that allow for as many comparisons as there are others
        (Bonferroni).
    oracle_share : dict of str to float
        Median over tasks of the gain over random, as a share of the gain of the oracle.
    oracle_tasks : int
        The tasks with runs of the oracle.
    """

    title: str
    by_area: ConfigurationRanking
    by_final: ConfigurationRanking
    saved: list[SavedLabels]
    behind: list[str]
    behind_adjusted: list[str]
    tested: int
    chance: float
    lead: dict[str, Difference]
    lead_by_data: dict[str, Difference]
    oracle_share: dict[str, float]
    oracle_tasks: int

    @property
    def tasks(self) -> int:
        """The number of tasks on which all were run."""
        return len(self.by_area.tasks)

    @property
    def least_chance(self) -> float:
        """The number of tasks in `behind` that chance would give with one comparison on each."""
        return LEVEL / 2 * self.tested

    def median_share(self, configuration: str) -> float:
        """Return the median share of labels to reach the final accuracy of random."""
        return float(np.median([each.share[configuration] for each in self.saved]))

    @property
    def median_share_of_best(self) -> float:
        """The median share with which `sabal` reaches the final accuracy of the best baseline."""
        return float(np.median([each.share_of_best for each in self.saved]))

    @property
    def best_reached(self) -> int:
        """The tasks on which `sabal` reaches the final accuracy of the best baseline."""
        return sum(each.share_of_best < np.inf for each in self.saved)


def task_scopes(
    tasks: Sequence[StudyTask], held_out: Sequence[str]
) -> dict[str, Sequence[StudyTask]]:
    """Return the tasks of every scope; diagnostic and held-out tasks are in no other."""
    ranked = [t for t in tasks if t.family != "diagnostic" and t.name not in held_out]
    found: dict[str, Sequence[StudyTask]] = {"all": ranked}
    for family in FAMILIES:
        found[family] = [task for task in ranked if task.family == family]
    found[LARGE] = [task for task in ranked if task.batch >= LARGE_BATCH]
    found["held out"] = [task for task in tasks if task.name in held_out]
    return {title: chosen for title, chosen in found.items() if chosen}


def scope_figures(
    results: StudyResults,
    tasks: Sequence[StudyTask],
    held_out: Sequence[str],
    compared: Sequence[Configuration],
    oracle: Configuration | None = None,
) -> dict[str, ScopeFigures]:
    """Return the figures of every scope in which all `compared` were run on some task.

    There are none without `sabal` and random among them.
    """
    if not {DEFAULT, CHANCE} <= {each.name for each in compared}:
        return {}
    areas = areas_of(results, tasks, [*compared, *([oracle] if oracle else [])])
    finals = finals_of(results, tasks, compared)
    found = {}
    for title, chosen in task_scopes(tasks, held_out).items():
        figures = _figures(title, results, chosen, compared, areas, finals)
        if figures.tasks:
            found[title] = figures
    return found


def _figures(
    title: str,
    results: StudyResults,
    tasks: Sequence[StudyTask],
    compared: Sequence[Configuration],
    areas: Areas,
    finals: Areas,
) -> ScopeFigures:
    task_names = [task.name for task in tasks]
    # `sabal` first, as `chance` expects it.
    names = sorted((each.name for each in compared), key=lambda name: name != DEFAULT)
    rng = np.random.default_rng(0)
    values = {name: shared_values(areas.get(name, {}), names) for name in task_names}
    full = {name: found for name, found in values.items() if found is not None}
    firm = {name: found for name, found in full.items() if len(found) >= FEW_SEEDS}
    return ScopeFigures(
        title=title,
        by_area=ranking(areas, task_names, names),
        by_final=ranking(finals, task_names, names),
        saved=[s for task in tasks if (s := saved_labels(results, task, compared)) is not None],
        behind=[name for name, found in firm.items() if behind_best(found)],
        behind_adjusted=[name for name, found in firm.items() if behind_any(found)],
        tested=len(firm),
        chance=sum(chance_of_behind(found, rng) for found in firm.values()),
        lead=_leads(names, [found.mean(axis=0) for found in full.values()]),
        lead_by_data=_leads(names, _means_by_data(tasks, full)),
        **_oracle_figures(areas, task_names, names),
    )


def _means_by_data(tasks: Sequence[StudyTask], values: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return the mean values of every data set, whose tasks are not independent."""
    by_data: dict[str, list[np.ndarray]] = {}
    for task in tasks:
        if task.name in values:
            data = task.dataset.partition(":")[0]
            by_data.setdefault(data, []).append(values[task.name].mean(axis=0))
    return [np.mean(found, axis=0) for found in by_data.values()]


def _leads(names: Sequence[str], means: Sequence[np.ndarray]) -> dict[str, Difference]:
    """Return the lead of the first configuration over every other, from rows of means."""
    level = 1.0 - LEVEL / max(1, len(names) - 1)
    leads = {}
    for k, name in enumerate(names[1:], start=1):
        away = [float(mean[0] - mean[k]) for mean in means]
        mean, low, high = interval(away, level)
        if mean is not None:
            leads[name] = Difference(mean, low, high, len(away))
    return leads


def _oracle_figures(areas: Areas, tasks: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """Return the gains over random as shares of the gain of the oracle, on tasks that have it."""
    shares: list[np.ndarray] = []
    order = [name for name in names if name != CHANCE]
    for task in tasks:
        values = shared_values(areas.get(task, {}), [CHANCE, ORACLE, *order])
        if values is not None:
            mean = values.mean(axis=0)
            if mean[1] > mean[0]:
                shares.append((mean[2:] - mean[0]) / (mean[1] - mean[0]))
    medians = np.median(shares, axis=0) if shares else []
    return {
        "oracle_share": dict(zip(order, map(float, medians), strict=False)),
        "oracle_tasks": len(shares),
    }
