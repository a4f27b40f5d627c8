"""Plots of the suite: times, growth, and memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from research.bench.suite.figures import memory_share
from research.bench.suite.measurement import MeasurementIndex, SuiteMeasurement
from research.bench.suite.methods import GROWING, METHODS, PER_PICK
from research.bench.suite.power_law import fit_exponent, growth_points
from research.bench.suite.scales import AXES, SuiteScale
from research.bench.suite.suite_page import GROWTH, TIMES
from research.bench.suite.verdicts import MEMORY_SHARE
from sabal.core.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

PICTURES = ("suite-times.png", "suite-memory.png", "suite-growth.png")

OURS, OURS_SLOWLY, THEIRS, GOAL = "#1f5fa8", "#8fb3d9", "#b8b8b8", "#d1495b"
COLOURS = {
    "sabal-greedy": "#1f5fa8",
    "sabal": "#d1495b",
    "sabal-iht": "#2e8b57",
    "badge": "#555555",
}
MARKERS = {"sabal-greedy": "o", "sabal": "s", "sabal-iht": "^", "badge": "D"}


def draw_pictures(
    rows: Sequence[SuiteMeasurement], scale: SuiteScale, folder: Path
) -> dict[str, str]:
    """Write the plots that there are rows for; return their files with the table of each."""
    found = MeasurementIndex(rows)
    figures: dict[str, tuple[str, Figure]] = {}
    if found.of("shapes"):
        figures["suite-times.png"] = (TIMES, _times(found, scale))
        figures["suite-memory.png"] = (TIMES, _memory(found, scale))
    if any(row.ok for row in found.of("growth")):
        figures["suite-growth.png"] = (GROWTH, _growth(found, scale))
    for name in PICTURES:
        # A plot of an earlier run must not pass for one of this run.
        (folder / name).unlink(missing_ok=True)
    for name, (_, figure) in figures.items():
        save = partial(figure.savefig, dpi=120, format="png")
        write_whole(folder / name, save)
    return {name: table for name, (table, _) in figures.items()}


def _figure(width: float, height: float) -> Figure:
    # Not pyplot, which needs a window system and leaves state behind.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _times(found: MeasurementIndex, scale: SuiteScale) -> Figure:
    """Plot a panel for every shape, with a bar for every method."""
    columns = min(2, len(scale.shapes))
    lines = -(-len(scale.shapes) // columns)
    figure = _figure(1.6 + 4.6 * columns, 0.7 + 3.2 * lines)
    panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
    known = [seconds for row in found.of("shapes") if (seconds := row.seconds or row.limit)]
    # Room to the right for the figures at the ends of the bars.
    ends = min(known, default=1.0) / 2, max(known, default=1.0) * 5
    for axes, shape in zip(panels, scale.shapes, strict=False):
        axes.set_title(str(shape), fontsize=10)
        _bars(axes, [found.get("shapes", label, shape) for label in METHODS], ends)
    for axes in panels[len(scale.shapes) :]:
        axes.set_visible(False)
    panels[0].set_yticks(range(len(METHODS)), labels=list(METHODS))
    panels[0].invert_yaxis()
    figure.suptitle("Seconds for a selection (logarithmic; hatched: killed at the limit)")
    return figure


def _bars(axes: Axes, rows: Sequence[SuiteMeasurement | None], ends: tuple[float, float]) -> None:
    lowest, highest = ends
    axes.set_xscale("log")
    axes.set_xlim(lowest, highest)
    axes.grid(visible=True, axis="x", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    _plain(axes.xaxis)
    _open(axes)
    for place, row in enumerate(rows):
        seconds = None if row is None else row.seconds or row.limit
        if row is None or seconds is None:
            words = "not measured" if row is None else row.status
            axes.text(lowest, place, f" {words}", va="center", fontsize=8, color="#777777")
            continue
        killed = row.seconds is None
        axes.barh(
            place,
            seconds - lowest,
            left=lowest,
            height=0.7,
            color=_colour(row.method),
            hatch="///" if killed else None,
            edgecolor="white",
        )
        words = f" {'> ' if killed else ''}{seconds:.3g}"
        axes.text(seconds, place, words, va="center", fontsize=8)


def _colour(label: str) -> str:
    if not label.startswith("sabal"):
        return THEIRS
    return OURS_SLOWLY if label.endswith(PER_PICK) else OURS


def _open(axes: Axes) -> None:
    """Remove the frame and ticks, which labelled bars do not need."""
    axes.tick_params(labelsize=9)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _plain(axis: Axis) -> None:
    """Label 0.01, 0.1, 1, 10 rather than powers of ten."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _growth(found: MeasurementIndex, scale: SuiteScale) -> Figure:
    """Plot a panel for each size that grows: points, and the power laws fitted to them."""
    figure = _figure(10.5, 8.6)
    panels = figure.subplots(2, 2, sharey=True).ravel()
    for axes, (axis, name) in zip(panels, AXES.items(), strict=True):
        shapes = scale.growth.along(axis)
        for method in GROWING:
            sizes, seconds = growth_points(found, "growth", method, axis, shapes)
            fit = fit_exponent(sizes, seconds)
            look: dict[str, Any] = {"color": COLOURS[method], "marker": MARKERS[method]}
            label = method if fit is None else f"{method}: {fit}"
            axes.plot(sizes, seconds, linestyle="none", markersize=5, label=label, **look)
            if fit is not None:
                ends = [min(sizes), max(sizes)]
                axes.plot(ends, [fit.at(end) for end in ends], color=COLOURS[method], linewidth=1.2)
        _growth_axes(axes, name, list(scale.growth.points[axis]))
    for axes in (panels[0], panels[2]):
        axes.set_ylabel("seconds")
    base = scale.growth.base
    figure.suptitle(
        "Time of a selection, and its exponent with standard error\n"
        f"around {base}, D = {base.dimensions}, C = {base.classes}"
    )
    return figure


def _growth_axes(axes: Axes, name: str, sizes: list[int]) -> None:
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(name)
    # A panel may be empty, and has no limits of its own then.
    axes.set_xlim(min(sizes) / 1.15, max(sizes) * 1.15)
    axes.set_xticks(sizes, labels=[f"{size:,}" for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    _plain(axes.yaxis)
    axes.grid(visible=True, linewidth=0.4, alpha=0.6)
    axes.legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)


def _memory(found: MeasurementIndex, scale: SuiteScale) -> Figure:
    """Plot a group of bars for every method that is given features, a bar for every shape."""
    from matplotlib import colormaps

    labels = [label for label, method in METHODS.items() if "features" in method.given]
    figure = _figure(9.0, 1.2 + 0.17 * len(labels) * (len(scale.shapes) + 1))
    axes = figure.subplots()
    height = 0.8 / len(scale.shapes)
    for k, shape in enumerate(scale.shapes):
        shares = [memory_share(found.get("shapes", label, shape)) for label in labels]
        places = [j - 0.4 + (k + 0.5) * height for j in range(len(labels))]
        shade = colormaps["Blues"](0.35 + 0.6 * k / max(1, len(scale.shapes) - 1))
        known = [(p, 100 * s) for p, s in zip(places, shares, strict=True) if s is not None]
        axes.barh(
            [place for place, _ in known],
            [share for _, share in known],
            height=0.9 * height,
            color=shade,
            label=str(shape),
        )
        for place, share in known:
            # On white, since the line of the goal may cross it.
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
            axes.annotate(
                f"{share:.1f}",
                (share, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
                bbox=box,
            )
    goal = 100 * MEMORY_SHARE
    axes.axvline(goal, color=GOAL, linestyle="--", linewidth=1.2, label=f"goal: {goal:g} %")
    axes.set_yticks(range(len(labels)), labels=labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.margins(x=0.08)
    _open(axes)
    axes.set_xlabel("memory beyond the inputs, in % of the inputs")
    figure.legend(fontsize=9, loc="outside upper center", ncols=3, frameon=False)
    return figure
