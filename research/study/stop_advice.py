"""How often the advice when to stop would have been right, on the curves of the study.

Each run is cut after every round from the fourth on. From the curve up to there,
`sabal.loop.stopping` projects the gain of the labels that the run still went on to get. The truth
is the gain over these labels, averaged over the seeds of the same task and configuration, since one
run alone is noisy.
"""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sabal.errors import FileError
from sabal.loop.stopping import HELPING, MIN_POINTS, NOT_HELPING, WORTHWHILE, project


@dataclass(frozen=True)
class AdviceRecord:
    """How many projections there were, and how many of each verdict were right."""

    projections: int
    helping: int
    helping_right: int
    stop: int
    stop_right: int
    covered: int
    median_error: float


def advice_record(runs: Path, every: int = 1) -> AdviceRecord:
    """Return the record of the advice on the curves in `runs`, a runs.csv of the study."""
    rows = _read(runs)
    groups: defaultdict[tuple[str, ...], list[np.ndarray]] = defaultdict(list)
    for row in rows:
        groups[_group(row)].append(_curve(row))
    means = {group: np.mean(curves, axis=0) for group, curves in groups.items()}
    counts: Counter[str] = Counter()
    errors: list[float] = []
    for row in rows[::every]:
        curve, mean, labels = _curve(row), means[_group(row)], _labels(row)
        for cut in range(MIN_POINTS, len(curve)):
            found = project(labels[:cut], curve[:cut].tolist(), labels[-1] - labels[cut - 1])
            gain = float(mean[-1] - mean[cut - 1])
            errors.append(abs(gain - found.gain))
            counts["covered"] += found.low <= gain <= found.high
            counts[found.verdict] += 1
            counts[f"{found.verdict} right"] += (gain >= WORTHWHILE) == (found.verdict == HELPING)
    return AdviceRecord(
        projections=len(errors),
        helping=counts[HELPING],
        helping_right=counts[f"{HELPING} right"],
        stop=counts[NOT_HELPING],
        stop_right=counts[f"{NOT_HELPING} right"],
        covered=counts["covered"],
        median_error=float(np.median(errors)),
    )


def record_lines(record: AdviceRecord) -> list[str]:
    """Return the record in words."""
    n = record.projections
    return [
        f"{n} projections; the median error of the projected gain is "
        f"{100 * record.median_error:.1f} points, and the 90 % interval covers "
        f"{record.covered / n:.0%} of the gains",
        f"more labels help: said {record.helping} times ({record.helping / n:.0%}), "
        f"right {record.helping_right / max(record.helping, 1):.0%}",
        f"you can stop: said {record.stop} times ({record.stop / n:.0%}), "
        f"right {record.stop_right / max(record.stop, 1):.0%}",
    ]


def _read(runs: Path) -> list[dict[str, str]]:
    try:
        with runs.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise FileError(f"the runs of a study at {runs}", str(error), "run the study") from None


def _group(row: dict[str, str]) -> tuple[str, ...]:
    return row["task"], row["configuration"], row["digest"], row["labels"]


def _curve(row: dict[str, str]) -> np.ndarray:
    return np.array([float(value) for value in row["curve"].split()]) / 100


def _labels(row: dict[str, str]) -> Sequence[int]:
    """Return the numbers of labels of a curve: the last one, and the batch size in the name."""
    found = re.search(r"-b(\d+)", row["task"])
    if found is None:
        raise FileError("a batch size in the name of every task", row["task"], "rename it")
    batch, rounds = int(found[1]), len(row["curve"].split())
    first = int(row["labels"]) - batch * (rounds - 1)
    return [first + batch * k for k in range(rounds)]
