"""The geometry of the learning curve, which a template draws as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sabal.errors import counted
from sabal.labeling.store.records import CurvePoint

WIDTH, HEIGHT = 640, 280
LEFT, RIGHT, TOP, BOTTOM = 48, 16, 14, 40


@dataclass(frozen=True)
class AxisMark:
    """A position on an axis and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class CurveDot:
    """A training: its position, the ends of its interval, and its description."""

    x: float
    y: float
    low: float
    high: float
    text: str


@dataclass(frozen=True)
class CurveChart:
    """The sizes and positions that the template needs."""

    dots: list[CurveDot]
    line: str
    band: str
    x_marks: list[AxisMark]
    y_marks: list[AxisMark]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def curve_chart(points: Sequence[CurvePoint]) -> CurveChart:
    """Return the chart of accuracy over labels; the y-axis runs from 0 to 100 %."""
    max_labels = max((point.labels for point in points), default=0)
    step = _step(max_labels)
    end = max(step * -(-max_labels // step), step)

    def x(labels: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * labels / end, 1)

    def y(share: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - share), 1)

    dots = [
        CurveDot(
            x(point.labels),
            y(point.accuracy),
            y(point.low),
            y(point.high),
            f"{counted(point.labels, 'label')}: {point.accuracy:.0%}, between {point.low:.0%} "
            f"and {point.high:.0%}, on {counted(point.checks, 'check')}",
        )
        for point in points
    ]
    upper = [(dot.x, dot.high) for dot in dots]
    lower = [(dot.x, dot.low) for dot in reversed(dots)]
    return CurveChart(
        dots=dots,
        line=_points([(dot.x, dot.y) for dot in dots]),
        band=_points(upper + lower),
        x_marks=[AxisMark(x(labels), str(labels)) for labels in range(0, end + 1, step)],
        y_marks=[AxisMark(y(quarter / 4), f"{25 * quarter} %") for quarter in range(5)],
    )


def _points(pairs: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in pairs)


def _step(end: int) -> int:
    """Return a round number that reaches `end` in at most six steps."""
    size = 1
    while True:
        for factor in (1, 2, 5):
            if size * factor * 6 >= end:
                return size * factor
        size *= 10
