"""Plots of a study: mean ranks, pairwise wins, and the learning curves of all tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from research.study.analysis import ConfigurationRanking
from research.study.configurations import CHANCE, DEFAULT
from research.study.definitions import Configuration, StudyTask
from research.study.run_records import RunRecord, StudyResults
from research.study.scopes import ORACLE, ScopeFigures
from sabal.core.files import write_whole
from sabal.simulate.curves import Point, mean_curve

COLOUR = "#2a7f62"
OTHERS = "#9aa5b1"
MAX_SHOWN = 115.0
"""The right edge of shares of labels, in percent."""

ACROSS = 4
"""Panels in a row of learning curves."""


def draw_ranks(ranking: ConfigurationRanking, title: str, path: Path) -> Path:
    """Plot mean ranks as bars with their intervals over tasks, best on top."""
    plt = _pyplot()
    places = ranking.places[::-1]
    rank = np.array([place.rank for place in places])
    low = np.array([rank[k] if p.low is None else p.low for k, p in enumerate(places)])
    high = np.array([rank[k] if p.high is None else p.high for k, p in enumerate(places)])
    figure, axes = plt.subplots(figsize=(8, 1.2 + 0.28 * len(places)), layout="constrained")
    axes.barh(
        [place.configuration for place in places],
        rank,
        xerr=[rank - low, high - rank],
        color=[COLOUR if place.configuration == DEFAULT else OTHERS for place in places],
        error_kw={"elinewidth": 1, "capsize": 2},
    )
    axes.set(xlabel=f"mean rank over {len(ranking.tasks)} tasks (1 is best)", title=title)
    axes.set_xlim(left=0)
    axes.grid(axis="x", alpha=0.25)
    return _saved(figure, path)


def draw_wins(names: Sequence[str], wins: np.ndarray, title: str, path: Path) -> Path:
    """Plot the number of tasks on which the row is better than the column."""
    plt = _pyplot()
    side = max(6.0, 2.0 + 0.36 * len(names))
    figure, axes = plt.subplots(figsize=(side, side), layout="constrained")
    axes.imshow(wins, cmap="Greens", vmin=0, vmax=max(1, int(wins.max(initial=0))))
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.set_yticks(range(len(names)), names)
    axes.xaxis.tick_top()
    middle = wins.max(initial=0) / 2
    for i in range(len(names)):
        for j in range(len(names)):
            if i != j:
                shade = "white" if wins[i, j] > middle else "black"
                axes.text(j, i, str(wins[i, j]), ha="center", va="center", color=shade, fontsize=7)
    axes.set_title(title, fontsize=10)
    return _saved(figure, path)


def draw_saved(scopes: dict[str, ScopeFigures], path: Path) -> Path:
    """Plot the median share of labels to reach the final accuracy of random, by strategy.

    A bar is over all tasks, a mark over a family; what is never reached ends at the right edge.
    """
    plt = _pyplot()
    everything = next(iter(scopes.values()))
    names = [p.configuration for p in everything.by_area.places if p.configuration != CHANCE]
    names.sort(key=everything.median_share, reverse=True)
    figure, axes = plt.subplots(figsize=(8, 1.6 + 0.3 * len(names)), layout="constrained")
    colours = [COLOUR if name == DEFAULT else OTHERS for name in names]
    axes.barh(names, [_at_most(everything.median_share(name)) for name in names], color=colours)
    marks = "ovs^D*P"
    for mark, (title, each) in zip(marks, list(scopes.items())[1:], strict=False):
        shares = [_at_most(each.median_share(name)) for name in names]
        axes.plot(shares, names, mark, label=title, markersize=5, alpha=0.8)
    axes.axvline(100, color="black", linestyle="--", linewidth=1)
    axes.set_xlim(0, MAX_SHOWN)
    axes.set_xlabel(
        f"labels needed to reach the final accuracy of random, in % (median over tasks; "
        f"bars: {everything.tasks} tasks)"
    )
    figure.legend(loc="outside upper center", ncols=7, fontsize=8)
    return _saved(figure, path)


def _at_most(share: float) -> float:
    return min(100 * share, MAX_SHOWN)


def draw_small_curves(
    results: StudyResults,
    tasks: Sequence[StudyTask],
    configurations: Sequence[Configuration],
    held_out: Sequence[str],
    path: Path,
) -> Path:
    """Plot mean test accuracy over labels, in one panel for each task."""
    plt = _pyplot()
    colours = plt.get_cmap("tab10").colors
    down = -(-len(tasks) // ACROSS)
    figure, grid = plt.subplots(
        down, ACROSS, figsize=(4.2 * ACROSS, 3.0 * down + 0.8), layout="constrained", squeeze=False
    )
    lines: dict[str, Any] = {}
    for axes, task in zip(grid.flat, tasks, strict=False):
        for k, each in enumerate(configurations):
            runs = results.of(task, each)
            if runs:
                labels, mean, _ = mean_curve(_curves(task, runs))
                (lines[each.name],) = axes.plot(labels, 100 * mean, **_style(each.name, k, colours))
        held = " (held out)" if task.name in held_out else ""
        axes.set_title(f"{task.name}{held}", fontsize=9)
        axes.grid(alpha=0.25)
    for axes in list(grid.flat)[len(tasks) :]:
        axes.set_axis_off()
    figure.supxlabel("labels")
    figure.supylabel("test accuracy (%)")
    figure.legend(lines.values(), lines.keys(), loc="outside upper center", ncols=7)
    return _saved(figure, path, dpi=80)


def _curves(task: StudyTask, runs: dict[int, RunRecord]) -> dict[int, list[Point]]:
    return {
        seed: [
            Point(record.configuration, seed, number, labels, accuracy, 0.0)
            for number, (labels, accuracy) in enumerate(
                zip(task.labels, record.accuracies, strict=True)
            )
        ]
        for seed, record in runs.items()
    }


def _style(name: str, number: int, colours: Sequence[Any]) -> dict[str, Any]:
    if name == DEFAULT:
        return {"color": COLOUR, "linewidth": 2.2, "zorder": 3}
    if name == CHANCE:
        return {"color": "black", "linestyle": "--", "linewidth": 1.2}
    if name == ORACLE:
        return {"color": "black", "linestyle": ":", "linewidth": 1.2}
    again = number >= len(colours)
    colour = colours[number % len(colours)]
    return {"color": colour, "linewidth": 1.0, "linestyle": ":" if again else "-"}


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _saved(figure: Any, path: Path, dpi: int = 110) -> Path:
    write_whole(path, lambda target: figure.savefig(target, dpi=dpi, format="png"))
    _pyplot().close(figure)
    return path
