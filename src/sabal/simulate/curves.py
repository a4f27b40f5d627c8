"""Learning curves and what they say: areas, paired differences, wins, and a plain verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BASELINE = "random"

WORTHWHILE = 1.0
"""Points of area that would be worth choosing for: an interval that ends below says it is not."""


CEILING = 0.99
"""An accuracy of random that leaves nothing to be better at."""


@dataclass(frozen=True)
class Point:
    """One round of one run: a row of results.parquet.

    select_mb: the peak growth of memory while choosing, where the system could tell.
    """

    strategy: str
    seed: int
    round: int
    labels: int
    accuracy: float
    select_seconds: float
    select_mb: float | None = None

    def check(self) -> None:
        """Raise a ValueError unless this can be a round: a file may say anything."""
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
    """What the curves of one strategy come to, over its seeds.

    auc, std: mean and standard deviation of the area under the curve, in percent.
    difference, low, high: the paired difference of areas to random, with its 95 % interval; None
        where there is no random run or only one seed to pair.
    better, worse: whether the difference is above or below 0 for sure: by an interval that allows
        for as many comparisons with random as there are strategies (Bonferroni).
    labels_to_match: labels at which the mean curve first reaches random's final accuracy.
    select_seconds, select_mb: the mean time and memory of a selection, but for the first batch.
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
    labels_to_match: float | None
    select_seconds: float
    select_mb: float | None


def area(labels: Sequence[float], accuracies: Sequence[float]) -> float:
    """The area under a learning curve: trapezoid over labels, over the range, in percent."""
    span = labels[-1] - labels[0]
    if span <= 0:
        return 100.0 * float(accuracies[-1])
    return 100.0 * float(np.trapezoid(accuracies, labels)) / span


def curves_of(points: Sequence[Point]) -> dict[str, dict[int, list[Point]]]:
    """The points by strategy and seed, in order of rounds."""
    curves: dict[str, dict[int, list[Point]]] = {}
    for point in sorted(points, key=lambda p: p.round):
        curves.setdefault(point.strategy, {}).setdefault(point.seed, []).append(point)
    return curves


def areas_of(points: Sequence[Point]) -> dict[str, dict[int, float]]:
    """The area of every run, by strategy and seed."""
    return {
        strategy: {
            seed: area([p.labels for p in curve], [p.accuracy for p in curve])
            for seed, curve in sorted(runs.items())
        }
        for strategy, runs in curves_of(points).items()
    }


def mean_curve(runs: dict[int, list[Point]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, mean accuracy and its standard deviation over seeds, round by round."""
    rounds = min(len(curve) for curve in runs.values())
    labels = np.mean([[p.labels for p in curve[:rounds]] for curve in runs.values()], axis=0)
    accuracy = np.array([[p.accuracy for p in curve[:rounds]] for curve in runs.values()])
    return labels, accuracy.mean(axis=0), accuracy.std(axis=0)


def summarise(points: Sequence[Point]) -> list[Summary]:
    """A summary of every strategy, best area first."""
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
        matched = _first_reach(labels, accuracy, mean_curve(curves[BASELINE])[1][-1])
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
        labels_to_match=matched,
        select_seconds=float(np.mean([p.select_seconds for p in chosen])) if chosen else 0.0,
        select_mb=float(np.mean(megabytes)) if megabytes else None,
    )


def interval(
    paired: Sequence[float], level: float = 0.95
) -> tuple[float | None, float | None, float | None]:
    """The mean of paired differences and its interval (Student's t)."""
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


def _first_reach(labels: np.ndarray, accuracy: np.ndarray, level: float) -> float | None:
    """Where the curve first reaches `level`, between points by a straight line."""
    above = np.flatnonzero(accuracy >= level)
    if above.size == 0:
        return None
    k = int(above[0])
    if k == 0 or accuracy[k] == accuracy[k - 1]:
        return float(labels[k])
    share = (level - accuracy[k - 1]) / (accuracy[k] - accuracy[k - 1])
    return float(labels[k - 1] + share * (labels[k] - labels[k - 1]))


def wins(points: Sequence[Point]) -> tuple[list[str], np.ndarray]:
    """For every pair, the share of common seeds in which the row has the larger area."""
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


def verdict(summaries: Sequence[Summary]) -> str:
    """Whether active learning helps here, in a sentence or two that claim no more than was seen."""
    compared = [s for s in summaries if s.difference is not None]
    if not compared:
        return "No verdict: run `random` beside the others, with the same seeds."
    best = max(compared, key=lambda s: s.difference or 0.0)
    seeds = f"{best.seeds} seed{'s' if best.seeds > 1 else ''}"
    if best.low is None:
        return (
            f"No verdict from one seed: {best.strategy} is {best.difference:+.2f} points of area "
            "from random. Run at least 3 seeds."
        )
    figures = f"95 % interval {best.low:.2f} to {best.high:.2f}, {seeds}"
    if best.better:
        saved = ""
        if best.labels_to_match is not None:
            saved = f" It reaches random's final accuracy with {best.labels_to_match:.0f} labels."
        return (
            f"Active learning helps here: {best.strategy} beats random by {best.difference:.2f} "
            f"points of area ({figures}).{saved}"
        )
    if all(s.worse for s in compared):
        return f"Active learning hurts here: every strategy is worse than random ({figures})."
    among = f" among {len(compared)} strategies" if len(compared) > 1 else ""
    if (best.high or 0.0) > WORTHWHILE:
        return (
            f"It cannot be told yet whether active learning helps here: the best, {best.strategy}, "
            f"is {best.difference:+.2f} points of area from random ({figures}), which may be "
            f"chance{among}. Run more seeds."
        )
    found = (
        f"Active learning is not helping here: the best, {best.strategy}, is "
        f"{best.difference:+.2f} points of area from random ({figures})."
    )
    by_chance = next(s for s in summaries if s.strategy == BASELINE)
    if by_chance.final_accuracy >= CEILING:
        return (
            f"{found} Random ends at {by_chance.final_accuracy:.1%}: there is next to nothing to "
            "gain. Fewer labels, or a harder task, would tell."
        )
    return f"{found} Label at random."
