"""The results of a study: one file, a line for each run, only ever added to."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from sabal.errors import FileError
from sabal.experiments.curves import area
from sabal.experiments.study.definitions import Configuration, Task, digest_of
from sabal.files import make_folder

FILE = "runs.csv"
CUT_SHORT = b"," * 20 + b"cut short\n"


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


COLUMNS = tuple(field.name for field in fields(Record))
NUMBERS: dict[str, Any] = {
    "seed": int,
    "auc": float,
    "final": float,
    "labels": int,
    "select_seconds": float,
    "train_seconds": float,
    "harness": int,
}


def curve_figures(labels: Sequence[int], accuracies: Sequence[float]) -> dict[str, Any]:
    """What a record says of a learning curve."""
    return {
        "auc": round(area(labels, accuracies), 4),
        "final": round(100 * accuracies[-1], 4),
        "labels": labels[-1],
        "curve": " ".join(f"{100 * each:.2f}" for each in accuracies),
    }


def append(record: Record, path: Path) -> None:
    """Add a line in one write, so that others who append at the same time do no harm.

    A line that a crash cut short is ended first, with a column too many: it then is a bad line,
    wherever it was cut.
    """
    make_folder(path.parent)
    try:
        fresh = not path.exists()
        with path.open("ab+") as file:
            if fresh:
                file.write((",".join(COLUMNS) + "\n").encode())
            elif not _ends_whole(file):
                file.write(CUT_SHORT)
            file.write(_line([getattr(record, name) for name in COLUMNS]))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise FileError(
            f"to write {path}", error.strerror or str(error), "check that there is room for it"
        ) from None


def _ends_whole(file: Any) -> bool:
    if file.seek(0, os.SEEK_END) == 0:
        return True
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")


def _line(values: Sequence[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode()


def read(path: Path) -> tuple[list[Record], int]:
    """Every line that is whole, and how many are not."""
    if not path.is_file():
        return [], 0
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, ValueError) as error:
        raise FileError(f"a readable {path}", str(error), "restore it from a copy") from None
    if lines and lines[0].strip() != ",".join(COLUMNS):
        raise FileError(
            f"{path} to begin with {','.join(COLUMNS)}", repr(lines[0].strip()), "restore it"
        )
    records, bad = [], 0
    for line in lines[1:]:
        values = next(csv.reader([line]), [])
        try:
            if not line.endswith("\n"):
                raise ValueError("a line without an end")
            given = dict(zip(COLUMNS, values, strict=True))
            records.append(Record(**{**given, **{k: of(given[k]) for k, of in NUMBERS.items()}}))
        except ValueError:
            bad += bool(line.strip())
    return records, bad


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
    records, bad = read(path)
    return sort_out(records, tasks, configurations, bad)
