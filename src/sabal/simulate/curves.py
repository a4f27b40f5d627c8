"""Learning curves, and the statistics of them: areas, paired differences, wins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BASELINE = "random"


@dataclass(frozen=True)
class Point:
    """One round of one run: a row of results.parquet."""

    strategy: str
    seed: int
    round: int
    labels: int
    accuracy: float
    select_seconds: float
    select_mb: float | None = None  # peak growth of memory, where the system reports it

    def check(self) -> None:
        """Raise a ValueError if this cannot be a round: files may hold anything."""
        whole = (self.seed, self.round, self.labels)
        figures = (self.accuracy, self.select_seconds, self.select_mb or 0.0)
        if not (
            isinstance(self.strategy, str)
            and self.strategy[:1].isalnum()
            and all(type(number) is int and 0 <= number < 2**53 for number in whole)
            and all(type(figure) in (int, float) and math.isfinite(figure) for figure in figures)
            and 0 <= self.accuracy <= 1
        ):
            raise ValueError(f"a row that is no round of a run: {self}")


@dataclass(frozen=True)
class Summary:
    """The learning curves of one strategy, summarised over its seeds.

    `auc` and `std` are of the area under the curve, in percent. `difference` is paired with random,
    with a 95 % interval; None without a random run, the interval also with a single seed. `better`
    and `worse` allow for as many comparisons as there are strategies (Bonferroni). The mean curve
    first reaches the final accuracy of random at `labels_to_match`, and random at its end, with
    `labels`. Seconds and megabytes are means
    over all selections but the first.
    """

    strategy: str
    seeds: int
    auc: float
    std: float
    final_accuracy: float
    difference: float | None
    low: float | None
    high: float | None
    better: bool
    worse: bool
    labels: float
    labels_to_match: float | None
    select_seconds: float
    select_mb: float | None


def area(labels: Sequence[float], accuracies: Sequence[float]) -> float:
    """Return the area under a learning curve (trapezoids) over its range of labels, in percent."""
    span = labels[-1] - labels[0]
    if span <= 0:
        return 100.0 * float(accuracies[-1])
    return 100.0 * float(np.trapezoid(accuracies, labels)) / span


def curves_of(points: Sequence[Point]) -> dict[str, dict[int, list[Point]]]:
    """Return the points by strategy and seed, in the order of rounds."""
    curves: dict[str, dict[int, list[Point]]] = {}
    for point in sorted(points, key=lambda p: p.round):
        curves.setdefault(point.strategy, {}).setdefault(point.seed, []).append(point)
    return curves


def areas_of(points: Sequence[Point]) -> dict[str, dict[int, float]]:
    """Return the area of every run, by strategy and seed."""
    return {
        strategy: {
            seed: area([p.labels for p in curve], [p.accuracy for p in curve])
            for seed, curve in sorted(runs.items())
        }
        for strategy, runs in curves_of(points).items()
    }


def mean_curve(runs: dict[int, list[Point]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, mean accuracy and its standard deviation over seeds, for every round."""
    rounds = min(len(curve) for curve in runs.values())
    labels = np.mean([[p.labels for p in curve[:rounds]] for curve in runs.values()], axis=0)
    accuracy = np.array([[p.accuracy for p in curve[:rounds]] for curve in runs.values()])
    return labels, accuracy.mean(axis=0), accuracy.std(axis=0)


def summarise(points: Sequence[Point]) -> list[Summary]:
    """Return a summary of every strategy, best area first."""
    areas, curves = areas_of(points), curves_of(points)
    found = [_summary(name, areas, curves) for name in areas]
    return sorted(found, key=lambda summary: -summary.auc)


def _summary(
    name: str, areas: dict[str, dict[int, float]], curves: dict[str, dict[int, list[Point]]]
) -> Summary:
    values = np.array(list(areas[name].values()))
    chosen = [p for curve in curves[name].values() for p in curve if p.round > 0]
    megabytes = [p.select_mb for p in chosen if p.select_mb is not None]
    labels, accuracy, _ = mean_curve(curves[name])
    difference = low = high = matched = None
    better = worse = False
    if BASELINE in areas and name != BASELINE:
        paired = [areas[name][s] - areas[BASELINE][s] for s in areas[name] if s in areas[BASELINE]]
        difference, low, high = interval(paired)
        _, strict_low, strict_high = interval(paired, 1.0 - 0.05 / (len(areas) - 1))
        better = strict_low is not None and strict_low > 0
        worse = strict_high is not None and strict_high < 0
        matched = first_reach(labels, accuracy, mean_curve(curves[BASELINE])[1][-1])
    return Summary(
        strategy=name,
        seeds=values.size,
        auc=float(values.mean()),
        std=float(values.std(ddof=1)) if values.size > 1 else 0.0,
        final_accuracy=float(accuracy[-1]),
        difference=difference,
        low=low,
        high=high,
        better=better,
        worse=worse,
        labels=float(labels[-1]),
        labels_to_match=matched,
        select_seconds=float(np.mean([p.select_seconds for p in chosen])) if chosen else 0.0,
        select_mb=float(np.mean(megabytes)) if megabytes else None,
    )


def interval(
    paired: Sequence[float], level: float = 0.95
) -> tuple[float | None, float | None, float | None]:
    """Return the mean and Student's t interval of paired differences; None for lack of them."""
    if not paired:
        return None, None, None
    mean = float(np.mean(paired))
    if len(paired) < 2:
        return mean, None, None
    from scipy.stats import t

    half = float(
        t.ppf(0.5 + level / 2, len(paired) - 1) * np.std(paired, ddof=1) / np.sqrt(len(paired))
    )
    return mean, mean - half, mean + half


def first_reach(labels: np.ndarray, accuracy: np.ndarray, level: float) -> float | None:
    """Return where the curve first reaches `level`, by linear interpolation between points."""
    above = np.flatnonzero(accuracy >= level)
    if above.size == 0:
        return None
    k = int(above[0])
    if k == 0 or accuracy[k] == accuracy[k - 1]:
        return float(labels[k])
    share = (level - accuracy[k - 1]) / (accuracy[k] - accuracy[k - 1])
    return float(labels[k - 1] + share * (labels[k] - labels[k - 1]))


def wins(points: Sequence[Point]) -> tuple[list[str], np.ndarray]:
    """Return the strategies, and the share of seeds in which the row beats the column.

    Ties count half; NaN without common seeds.
    """
    areas = areas_of(points)
    names = [summary.strategy for summary in summarise(points)]
    matrix = np.full((len(names), len(names)), np.nan)
    for i, one in enumerate(names):
        for j, other in enumerate(names):
            common = sorted(set(areas[one]) & set(areas[other]))
            if i != j and common:
                better = [float(areas[one][s] > areas[other][s]) for s in common]
                even = [0.5 * float(areas[one][s] == areas[other][s]) for s in common]
                matrix[i, j] = np.mean(np.add(better, even))
    return names, matrix
