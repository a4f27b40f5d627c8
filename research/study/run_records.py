"""The results of a study: an append-only file with one line for each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from research.study.csv_lines import read_lines
from research.study.definitions import Configuration, StudyTask, digest_of
from sabal.simulate.curves import area

RUNS_FILE = "runs.csv"


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run: a line of runs.csv.

    Attributes
    ----------
    task, configuration, seed
        The run. The name of the configuration is for readers: the digest identifies it.
    digest : str
        Hash of everything that determines the result, see `digest_of`.
    auc, final : float
        Area under the learning curve and final test accuracy, in percent.
    labels : int
        Number of labels at the end.
    select_seconds, train_seconds : float
        Total time of all rounds.
    harness : int
        Version of the harness.
    data : str
        Fingerprint of the training and test set.
    curve : str
        Test accuracy after every round, in percent, separated by spaces.
    """

    task: str
    configuration: str
    digest: str
    seed: int
    auc: float
    final: float
    labels: int
    select_seconds: float
    train_seconds: float
    harness: int
    data: str
    curve: str

    @property
    def accuracies(self) -> list[float]:
        """The curve as fractions of 1."""
        return [float(each) / 100 for each in self.curve.split()]


def curve_figures(labels: Sequence[int], accuracies: Sequence[float]) -> dict[str, Any]:
    """Return the fields of a record that describe a learning curve."""
    return {
        "auc": round(area(labels, accuracies), 4),
        "final": round(100 * accuracies[-1], 4),
        "labels": labels[-1],
        "curve": " ".join(f"{100 * each:.2f}" for each in accuracies),
    }


@dataclass(frozen=True)
class StudyResults:
    """The sorted contents of the file.

    Attributes
    ----------
    runs : dict
        Runs by task and digest, then by seed.
    stale : list of RunRecord
        Runs of outdated definitions, or of other data than the other runs of their task and seed.
    bad : int
        Number of lines that cannot be read.
    """

    runs: dict[tuple[str, str], dict[int, RunRecord]]
    stale: list[RunRecord]
    bad: int = 0

    def of(self, task: StudyTask, configuration: Configuration) -> dict[int, RunRecord]:
        """Return the runs of a configuration on a task, by seed."""
        if not configuration.applies_to(task):
            return {}
        found = self.runs.get((task.name, digest_of(task, configuration)), {})
        return dict(sorted(found.items()))


def sort_out(
    records: Iterable[RunRecord],
    tasks: Sequence[StudyTask],
    configurations: Sequence[Configuration],
    bad: int = 0,
) -> StudyResults:
    """Separate current runs from stale ones; the first of two equal runs counts."""
    known = {
        (task.name, digest_of(task, configuration))
        for task in tasks
        for configuration in configurations
        if configuration.applies_to(task)
    }
    current: list[RunRecord] = []
    stale: list[RunRecord] = []
    for record in records:
        (current if (record.task, record.digest) in known else stale).append(record)
    # Paired runs have the same data; the majority decides which data that is.
    data: dict[tuple[str, int], Counter[str]] = {}
    for record in current:
        data.setdefault((record.task, record.seed), Counter())[record.data] += 1
    runs: dict[tuple[str, str], dict[int, RunRecord]] = {}
    for record in current:
        if record.data == data[record.task, record.seed].most_common(1)[0][0]:
            runs.setdefault((record.task, record.digest), {}).setdefault(record.seed, record)
        else:
            stale.append(record)
    return StudyResults(runs, stale, bad)


def read_results(
    path: Path, tasks: Sequence[StudyTask], configurations: Sequence[Configuration]
) -> StudyResults:
    """Read the results of these tasks and configurations from a file."""
    records, bad = read_lines(path, RunRecord)
    return sort_out(records, tasks, configurations, bad)
