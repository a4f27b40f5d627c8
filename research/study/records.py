"""The results of a study: one file, a line for each run, only ever added to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from research.study.definitions import Configuration, Task, digest_of
from research.study.lines import read_lines
from sabal.simulate.curves import area

FILE = "runs.csv"


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run: a line of runs.csv.

    digest: of everything that decides the result, see `digest_of`. The configuration's name is for
        readers: whichever has this digest has this result.
    auc, final: the area under the learning curve and the last test accuracy, in percent.
    labels: how many there were at the end.
    select_seconds, train_seconds: of all rounds together.
    harness: the version of the harness.
    data: the fingerprint of the training and test set.
    curve: the test accuracy after every round, in percent, with blanks between.
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
        """The curve as shares of 1."""
        return [float(each) / 100 for each in self.curve.split()]


def curve_figures(labels: Sequence[int], accuracies: Sequence[float]) -> dict[str, Any]:
    """What a record says of a learning curve."""
    return {
        "auc": round(area(labels, accuracies), 4),
        "final": round(100 * accuracies[-1], 4),
        "labels": labels[-1],
        "curve": " ".join(f"{100 * each:.2f}" for each in accuracies),
    }


@dataclass(frozen=True)
class Results:
    """What is in the file, sorted.

    runs: by task and digest, then by seed; stale: of definitions that are no more, or of other data
        than the other runs of their task and seed; bad: lines that cannot be read.
    """

    runs: dict[tuple[str, str], dict[int, Record]]
    stale: list[Record]
    bad: int = 0

    def of(self, task: Task, configuration: Configuration) -> dict[int, Record]:
        """The runs of a configuration on a task, by seed."""
        if not configuration.suits(task):
            return {}
        found = self.runs.get((task.name, digest_of(task, configuration)), {})
        return dict(sorted(found.items()))


def sort_out(
    records: Iterable[Record],
    tasks: Sequence[Task],
    configurations: Sequence[Configuration],
    bad: int = 0,
) -> Results:
    """Tell the runs that count from the stale ones; of two equal runs the first counts."""
    known = {
        (task.name, digest_of(task, configuration))
        for task in tasks
        for configuration in configurations
        if configuration.suits(task)
    }
    current: list[Record] = []
    stale: list[Record] = []
    for record in records:
        (current if (record.task, record.digest) in known else stale).append(record)
    # Paired runs have the same data. Which are the odd ones out, the majority says.
    data: dict[tuple[str, int], Counter[str]] = {}
    for record in current:
        data.setdefault((record.task, record.seed), Counter())[record.data] += 1
    runs: dict[tuple[str, str], dict[int, Record]] = {}
    for record in current:
        if record.data == data[record.task, record.seed].most_common(1)[0][0]:
            runs.setdefault((record.task, record.digest), {}).setdefault(record.seed, record)
        else:
            stale.append(record)
    return Results(runs, stale, bad)


def read_results(
    path: Path, tasks: Sequence[Task], configurations: Sequence[Configuration]
) -> Results:
    """What the file says of these tasks and configurations."""
    records, bad = read_lines(path, Record)
    return sort_out(records, tasks, configurations, bad)
