"""Analysis of the runs of a study: paired differences, ranks over tasks, and pairwise wins.

All comparisons are by area under the learning curve and paired by seed: runs of one task and seed
share their data, their initial labels and the seeds of their learner. "Better" and "worse" mean
that the 95 % interval of a paired difference (Student's t, `curves.interval`) excludes zero. There
is no correction for multiple comparisons here; `scopes` has intervals that allow for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from research.study.configurations import CHANCE, DEFAULT
from research.study.definitions import Configuration, StudyTask
from research.study.run_records import RunRecord, StudyResults
from sabal.simulate.curves import interval

Areas = dict[str, dict[str, dict[int, float]]]
"""Areas by task, configuration and seed."""


def areas_of(
    results: StudyResults, tasks: Sequence[StudyTask], configurations: Sequence[Configuration]
) -> Areas:
    """Return the area of every run; tasks and configurations without runs are left out."""
    return _values_of(results, tasks, configurations, lambda record: record.auc)


def finals_of(
    results: StudyResults, tasks: Sequence[StudyTask], configurations: Sequence[Configuration]
) -> Areas:
    """Return the final accuracy of every run, in the same form."""
    return _values_of(results, tasks, configurations, lambda record: record.final)


def _values_of(
    results: StudyResults,
    tasks: Sequence[StudyTask],
    configurations: Sequence[Configuration],
    value: Callable[[RunRecord], float],
) -> Areas:
    values: Areas = {}
    for task in tasks:
        for each in configurations:
            runs = results.of(task, each)
            if runs:
                found = {seed: value(record) for seed, record in runs.items()}
                values.setdefault(task.name, {})[each.name] = found
    return values


@dataclass(frozen=True)
class Difference:
    """A mean paired difference with its 95 % interval, over `pairs` seeds or tasks."""

    mean: float
    low: float | None
    high: float | None
    pairs: int

    @property
    def better(self) -> bool:
        """Whether the interval is above zero."""
        return self.low is not None and self.low > 0

    @property
    def worse(self) -> bool:
        """Whether the interval is below zero."""
        return self.high is not None and self.high < 0


def difference(values: Sequence[float]) -> Difference | None:
    """Return the mean of paired differences with its interval; None if there are no values."""
    mean, low, high = interval(values)
    return None if mean is None else Difference(mean, low, high, len(values))


def paired(one: dict[int, float], other: dict[int, float]) -> Difference | None:
    """Return the difference `one` minus `other`, over the seeds that both have."""
    return difference([one[seed] - other[seed] for seed in sorted(set(one) & set(other))])


@dataclass(frozen=True, kw_only=True)
class ConfigurationRow:
    """One configuration on one task: its mean area and its differences to others.

    Attributes
    ----------
    configuration : str
        Name of the configuration.
    seeds : int
        Number of runs.
    auc, final : float
        Mean area under the learning curve and mean final accuracy, in percent.
    select_seconds : float
        Mean time of all selections of a run.
    to_default, to_best, to_chance : Difference or None
        Differences to `sabal`, to the best baseline and to random.
    """

    configuration: str
    seeds: int
    auc: float
    final: float
    select_seconds: float
    to_default: Difference | None
    to_best: Difference | None
    to_chance: Difference | None


@dataclass(frozen=True, kw_only=True)
class TaskTable:
    """All configurations on one task, largest area first.

    Attributes
    ----------
    task : str
        Name of the task.
    best : str or None
        The baseline with the largest mean area.
    rows : list of ConfigurationRow
        The configurations.
    winners : list of str
        Configurations that are better than random, except candidates and the oracle.
    """

    task: str
    best: str | None
    rows: list[ConfigurationRow]
    winners: list[str]

    def row(self, configuration: str) -> ConfigurationRow | None:
        """Return the row of a configuration, or None if it was not run."""
        return next((row for row in self.rows if row.configuration == configuration), None)


def task_table(
    task: StudyTask, configurations: Sequence[Configuration], results: StudyResults
) -> TaskTable | None:
    """Return the table of a task, or None if nothing was run."""
    runs = {each.name: results.of(task, each) for each in configurations}
    areas = {name: _areas(found) for name, found in runs.items() if found}
    if not areas:
        return None
    best = best_baseline(areas, configurations)
    nothing: dict[int, float] = {}
    rows = [
        ConfigurationRow(
            configuration=name,
            seeds=len(found),
            auc=float(np.mean(list(found.values()))),
            final=float(np.mean([record.final for record in runs[name].values()])),
            select_seconds=float(np.mean([r.select_seconds for r in runs[name].values()])),
            to_default=None if name == DEFAULT else paired(found, areas.get(DEFAULT, nothing)),
            to_best=None if name == best else paired(found, areas.get(best or "", nothing)),
            to_chance=None if name == CHANCE else paired(found, areas.get(CHANCE, nothing)),
        )
        for name, found in areas.items()
    ]
    aside = {each.name for each in configurations if each.role in ("candidate", "oracle")}
    winners = [
        row.configuration
        for row in rows
        if row.to_chance is not None and row.to_chance.better and row.configuration not in aside
    ]
    rows.sort(key=lambda row: -row.auc)
    return TaskTable(task=task.name, best=best, rows=rows, winners=winners)


def best_baseline(
    areas: dict[str, dict[int, float]], configurations: Sequence[Configuration]
) -> str | None:
    """Return the baseline with the largest mean area, among those with the most seeds.

    A single lucky seed does not make the best baseline.
    """
    names = [e.name for e in configurations if e.role == "baseline" and e.name in areas]
    most = max((len(areas[name]) for name in names), default=0)
    full = [name for name in names if len(areas[name]) == most]
    return max(full, key=lambda name: np.mean(list(areas[name].values())), default=None)


def _areas(runs: dict[int, RunRecord]) -> dict[int, float]:
    return {seed: record.auc for seed, record in runs.items()}


@dataclass(frozen=True, kw_only=True)
class RankedConfiguration:
    """A configuration in a ranking: its mean rank over tasks (1 is best), with an interval.

    Attributes
    ----------
    configuration : str
        Name of the configuration.
    rank, low, high : float
        Mean rank and its 95 % interval.
    to_default : Difference or None
        Mean area minus that of `sabal`, over tasks.
    """

    configuration: str
    rank: float
    low: float | None
    high: float | None
    to_default: Difference | None


@dataclass(frozen=True, kw_only=True)
class ConfigurationRanking:
    """Configurations by mean rank, and the tasks ranked, with the number of seeds of each."""

    places: list[RankedConfiguration]
    tasks: dict[str, int]


def ranking(areas: Areas, tasks: Sequence[str], compared: Sequence[str]) -> ConfigurationRanking:
    """Rank `compared` by mean area on every task where all of them share a seed.

    Only seeds that all of them have count. Ties share their ranks.
    """
    from scipy.stats import rankdata

    ranks: list[np.ndarray] = []
    means: list[np.ndarray] = []
    seeds_of_task: dict[str, int] = {}
    for task in tasks:
        found = areas.get(task, {})
        if not compared or any(name not in found for name in compared):
            continue
        seeds = sorted(set.intersection(*(set(found[name]) for name in compared)))
        if seeds:
            mean = np.array([np.mean([found[name][s] for s in seeds]) for name in compared])
            means.append(mean)
            ranks.append(rankdata(-mean))
            seeds_of_task[task] = len(seeds)
    places = []
    for k, name in enumerate(compared if ranks else ()):
        mean_rank, low, high = interval([float(rank[k]) for rank in ranks])
        away = None
        if DEFAULT in compared and name != DEFAULT:
            base = list(compared).index(DEFAULT)
            away = difference([float(mean[k] - mean[base]) for mean in means])
        places.append(
            RankedConfiguration(
                configuration=name,
                rank=mean_rank or 0.0,
                # Ranks lie between the first and the last.
                low=None if low is None else max(low, 1.0),
                high=None if high is None else min(high, float(len(compared))),
                to_default=away,
            )
        )
    places.sort(key=lambda place: place.rank)
    return ConfigurationRanking(places=places, tasks=seeds_of_task)


def win_matrix(areas: Areas, tasks: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """Return a matrix with the number of tasks on which the row is better than the column."""
    wins = np.zeros((len(names), len(names)), dtype=np.int64)
    for task in tasks:
        found = areas.get(task, {})
        for i, one in enumerate(names):
            for j in range(i):
                away = paired(found.get(one, {}), found.get(names[j], {}))
                if away is not None:
                    wins[i, j] += away.better
                    wins[j, i] += away.worse
    return wins
