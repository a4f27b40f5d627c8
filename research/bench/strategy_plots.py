"""A plot of the strategies: time and memory against the size of the pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from research.bench.strategy_rows import MEGABYTE, OURS, StrategyMeasurement
from sabal.core.files import write_whole
from sabal.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES = ("-", "--", ":")
"""Line styles of a library's first, second and third method for the same job."""

Value = Callable[[StrategyMeasurement], float | None]


def draw(rows: Sequence[StrategyMeasurement], path: str | Path) -> Path:
    """Write a PNG with a row of panels for each job: seconds by budget, then megabytes by budget.

    Both axes are logarithmic, and all panels of a kind share them. An upward triangle marks a
    selection that was killed at the time limit.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not rows:
        raise InputError("rows of a benchmark", "none", "measure something first")
    jobs = list(dict.fromkeys(row.job for row in rows))
    budgets = sorted({row.b for row in rows})
    tools = _colours(rows)
    # Not pyplot: no window system, no state left behind in the caller's process.
    figure = Figure(figsize=(1.0 + 4.6 * len(budgets), 1.4 + 1.9 * len(jobs)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(jobs), 2 * len(budgets), sharex=True, squeeze=False)
    for kind, (value_of, unit) in enumerate(((_seconds, "s"), (_megabytes, "MB"))):
        for column, budget in enumerate(budgets, start=kind * len(budgets)):
            for j, job in enumerate(jobs):
                axes = panels[j, column]
                mine = [row for row in rows if row.job == job and row.b == budget]
                _panel(axes, mine, value_of, tools)
                axes.set_title(f"{job}, b = {budget:,}: {unit}", fontsize=8)
                axes.sharey(panels[0, kind * len(budgets)])
    for axes in panels[-1]:
        _size_axis(axes, sorted({row.n for row in rows}))
    # About an inch and a half for a name.
    fit = max(1, int(figure.get_figwidth() / 1.5))
    figure.legend(*_legend(tools), loc="outside lower center", ncols=fit, fontsize=8)
    return write_whole(path, lambda target: figure.savefig(target, dpi=110, format="png"))


def _panel(
    axes: Axes, rows: Sequence[StrategyMeasurement], value_of: Value, colours: dict[str, Any]
) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.tick_params(labelsize=7)
    axes.grid(visible=True, linewidth=0.3)
    for tool, colour in colours.items():
        methods = dict.fromkeys(row.method for row in rows if row.tool == tool)
        for k, method in enumerate(methods):
            line = [row for row in rows if row.tool == tool and row.method == method]
            points = sorted((row.n, value) for row in line if (value := value_of(row)) is not None)
            style = LINES[k % len(LINES)]
            # Ours last and on top.
            order = 3 if tool == OURS else 2
            axes.plot(
                [n for n, _ in points],
                [value for _, value in points],
                f"o{style}",
                markersize=3,
                linewidth=1.2,
                color=colour,
                zorder=order,
            )
            killed = [(row.n, row.limit) for row in line if row.limit is not None]
            if value_of is _seconds:
                axes.plot(
                    [n for n, _ in killed],
                    [limit for _, limit in killed],
                    "^",
                    markersize=5,
                    color=colour,
                    zorder=order,
                )


def _size_axis(axes: Axes, sizes: Sequence[int]) -> None:
    from matplotlib.ticker import NullFormatter

    axes.set_xlabel("items n", fontsize=8)
    axes.set_xticks(sizes, labels=[f"{n:,}" for n in sizes], fontsize=7, rotation=30)
    axes.xaxis.set_minor_formatter(NullFormatter())


def _seconds(row: StrategyMeasurement) -> float | None:
    return row.seconds


def _megabytes(row: StrategyMeasurement) -> float | None:
    # A logarithmic axis has no zero; a tenth of a megabyte is below what can be told apart.
    return None if row.peak_bytes is None else max(row.peak_bytes / MEGABYTE, 0.1)


def _colours(rows: Sequence[StrategyMeasurement]) -> dict[str, Any]:
    """Return black for Sabal and a colour for each other library, the same in every panel."""
    from matplotlib import colormaps

    palette = colormaps["tab10"].colors  # type: ignore[attr-defined]  # a ListedColormap
    tools = list(dict.fromkeys(row.tool for row in rows if row.tool != OURS))
    return {OURS: "black"} | {tool: palette[k % len(palette)] for k, tool in enumerate(tools)}


def _legend(colours: dict[str, Any]) -> tuple[list[Any], list[str]]:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=colour, marker="o", markersize=3) for colour in colours.values()]
    return lines, list(colours)
