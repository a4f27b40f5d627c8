"""Learning curves as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sabal.experiments.curves import BASELINE, Point, curves_of, mean_curve, summarise
from sabal.files import write_whole


def draw_curves(points: Sequence[Point], title: str, path: Path) -> Path:
    """Mean accuracy over labels with a band of one standard deviation; random dashed."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    curves = curves_of(points)
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for summary in summarise(points):
        labels, mean, std = mean_curve(curves[summary.strategy])
        plain = summary.strategy == BASELINE
        (line,) = axes.plot(
            labels,
            100 * mean,
            marker="o",
            markersize=3,
            linestyle="--" if plain else "-",
            color="black" if plain else None,
            label=f"{summary.strategy} ({summary.auc:.2f})",
        )
        axes.fill_between(
            labels, 100 * (mean - std), 100 * (mean + std), alpha=0.12, color=line.get_color()
        )
    axes.set(xlabel="labels", ylabel="test accuracy (%)", title=title)
    axes.grid(alpha=0.25)
    axes.legend(title="strategy (area under the curve)")
    write_whole(path, lambda target: figure.savefig(target, dpi=130, format="png"))
    plt.close(figure)
    return path
