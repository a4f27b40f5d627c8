"""Learning curves as a picture."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sabal.core.extras import import_optional
from sabal.core.files import write_whole
from sabal.simulate.curves import BASELINE, Point, curves_of, mean_curve, summarise


def draw_curves(points: Sequence[Point], title: str, path: Path) -> Path:
    """Draw mean accuracy over labels with a band of one standard deviation; random is dashed."""
    import_optional("matplotlib", "plot", "to draw learning curves").use("Agg")
    import matplotlib.pyplot as plt

    # Names are text, even if they look like a formula.
    with plt.rc_context({"text.parse_math": False}), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box, which the user cannot change.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
        try:
            _draw(axes, points, title)
            write_whole(path, lambda target: figure.savefig(target, dpi=130, format="png"))
        finally:
            plt.close(figure)
    return path


def _draw(axes: Any, points: Sequence[Point], title: str) -> None:
    curves = curves_of(points)
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
