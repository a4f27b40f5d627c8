"""The plan of a study: which runs, with how many seeds, in which order, in which shard."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from research.study.definitions import FAMILIES, Configuration, StudyTask, digest_of
from research.study.run_records import StudyResults
from sabal.core.checks import check_whole
from sabal.errors import InputError

MANY_SEEDS = 20
"""Seeds of a task whose runs are quick."""

FEW_SEEDS = 5
"""Seeds of other tasks, and of configurations that are not compared with the default."""

ORACLE_SEEDS = 3
QUICK_SECONDS = 10.0
QUICK_FAMILIES = ("tabular", "tfidf", "diagnostic")
COMPARED = ("baseline", "sabal")
"""Roles that nothing significant is said of from few seeds."""


@dataclass(frozen=True)
class StudyRun:
    """A task, a configuration and a seed."""

    task: StudyTask
    configuration: Configuration
    seed: int

    @property
    def digest(self) -> str:
        """The digest of its task and configuration, see `digest_of`."""
        return digest_of(self.task, self.configuration)

    @property
    def title(self) -> str:
        """The name of the run in messages."""
        return f"{self.task.name}/{self.configuration.name}/seed {self.seed}"


SeedRule = Callable[[StudyTask, Configuration], int]
"""Returns the number of seeds of a configuration on a task."""


def fixed_seeds(count: int) -> SeedRule:
    """Return a rule with the same number of seeds for all, but no more than few for the oracle."""
    check_whole(count, "seeds")
    return lambda task, configuration: (
        min(count, ORACLE_SEEDS) if configuration.role == "oracle" else count
    )


def seeds_by_time(
    tasks: Sequence[StudyTask], configurations: Sequence[Configuration], results: StudyResults
) -> SeedRule:
    """Return a rule with many seeds for quick tasks and few for others.

    A task is quick if the median time of its runs, for choosing and training, is below
    QUICK_SECONDS. Without runs it is taken to be quick.
    """
    compared = [each for each in configurations if each.role in COMPARED]
    quick = {task.name for task in tasks if _seconds(task, compared, results) < QUICK_SECONDS}

    def rule(task: StudyTask, configuration: Configuration) -> int:
        if configuration.role == "oracle":
            return ORACLE_SEEDS
        many = configuration.role in COMPARED and task.name in quick
        return MANY_SEEDS if many else FEW_SEEDS

    return rule


def _seconds(
    task: StudyTask, configurations: Sequence[Configuration], results: StudyResults
) -> float:
    found = [
        record.select_seconds + record.train_seconds
        for each in configurations
        for record in results.of(task, each).values()
    ]
    return float(np.median(found)) if found else 0.0


def planned(
    tasks: Sequence[StudyTask],
    configurations: Sequence[Configuration],
    seeds: int | SeedRule,
) -> list[StudyRun]:
    """Return every run, in an order that stays balanced wherever it is stopped.

    Runs come in blocks of FEW_SEEDS seeds. In a block, what is compared comes before the paper's
    method, the candidates and the oracle, and quick families of tasks before the others; then runs
    are ordered by seed and by task. Two configurations with the same digest share one run.
    """
    rule = fixed_seeds(seeds) if isinstance(seeds, int) else seeds
    runs: dict[tuple[str, str, int], StudyRun] = {}
    for task in tasks:
        for each in sorted(configurations, key=lambda each: each.role not in COMPARED):
            if each.applies_to(task):
                digest = digest_of(task, each)
                for seed in range(rule(task, each)):
                    runs.setdefault((task.name, digest, seed), StudyRun(task, each, seed))
    order = {task.name: number for number, task in enumerate(tasks)}
    return sorted(runs.values(), key=lambda run: _place(run, order))


def _place(run: StudyRun, order: dict[str, int]) -> tuple[int, bool, bool, int, int, int]:
    late = run.configuration.role not in COMPARED
    slow = run.task.family not in QUICK_FAMILIES
    family = list(FAMILIES).index(run.task.family)
    return run.seed // FEW_SEEDS, late, slow, run.seed, family, order[run.task.name]


def open_runs(runs: Sequence[StudyRun], results: StudyResults) -> list[StudyRun]:
    """Return the runs that the results do not contain yet."""
    return [run for run in runs if run.seed not in results.of(run.task, run.configuration)]


def parse_shard(text: str) -> tuple[int, int]:
    """Return the number of a shard, from 1, and how many there are, of a text such as 1/2."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise InputError("--shard as K/N, for instance 1/2", repr(text), "number them from 1")
    return int(number), int(count)


def shard_of(runs: Sequence[StudyRun], number: int, count: int) -> list[StudyRun]:
    """Return the runs of one of `count` shards; every run is in exactly one, whatever the plan.

    The runs of a task and seed are in one shard, since they share their data.
    """
    return [
        run
        for run in runs
        if zlib.crc32(f"{run.task.name}/{run.seed}".encode()) % count == number - 1
    ]
