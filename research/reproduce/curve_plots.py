"""Learning curves of a section: the accuracies, and what they are ahead of random by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from research.reproduce.preset import title_of
from sabal.core.extras import import_optional
from sabal.core.files import write_whole
from sabal.simulate.curves import BASELINE, Point, curves_of, mean_curve

LINES = {"as-printed": "-", "printed": "-", "corrected": "--", "free": ":"}
"""Line styles by the reading of a solver."""


def draw_section(points: Sequence[Point], title: str, path: Path) -> Path:
    """Draw the mean accuracy of every row over labels, and beside it the difference to random."""
    import_optional("matplotlib", "plot", "to draw learning curves").use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
    try:
        _draw(axes, points)
        figure.suptitle(title)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
        write_whole(path, lambda target: figure.savefig(target, dpi=110, format="png"))
    finally:
        plt.close(figure)
    return path


def _draw(axes: Any, points: Sequence[Point]) -> None:
    import matplotlib as mpl

    curves = curves_of(points)
    means = {row: mean_curve(runs)[:2] for row, runs in curves.items()}
    chance = means.get(BASELINE)
    for k, (row, (labels, accuracy)) in enumerate(means.items()):
        style = {
            "color": "black" if row == BASELINE else mpl.colormaps["tab20"](k % 20),
            "linestyle": next((s for word, s in LINES.items() if f"-{word}" in row), "-."),
            "marker": "o",
            "markersize": 3,
        }
        axes[0].plot(labels, 100 * accuracy, label=title_of(row), **style)
        if chance is not None:
            shared = min(len(accuracy), len(chance[1]))
            ahead = 100 * (accuracy[:shared] - chance[1][:shared])
            axes[1].plot(labels[:shared], ahead, **style)
    axes[0].set(xlabel="labels", ylabel="test accuracy (%)")
    axes[1].set(xlabel="labels", ylabel="test accuracy minus random (points)")
    for each in axes:
        each.grid(alpha=0.25)
