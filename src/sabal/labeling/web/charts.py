"""The learning curve as a picture: numbers to places, for a template that draws them as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sabal.labeling.store import CurvePoint

WIDTH, HEIGHT = 640, 280
LEFT, RIGHT, TOP, BOTTOM = 48, 16, 14, 40


@dataclass(frozen=True)
class Mark:
    """A place on an axis and what is written there."""

    at: float
    text: str


@dataclass(frozen=True)
class Dot:
    """A training: its place, the ends of its interval, and what it is."""

    x: float
    y: float
    low: float
    high: float
    text: str


@dataclass(frozen=True)
class CurveChart:
    """Everything the template needs to draw."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    dots: list[Dot]
    line: str
    band: str
    x_marks: list[Mark]
    y_marks: list[Mark]


def curve_chart(points: Sequence[CurvePoint]) -> CurveChart:
    """Accuracy over labels, with the band of the intervals; the y-axis runs from 0 to 100 %."""
    most = max((point.labels for point in points), default=0)
    step = _step(most)
    end = max(step * -(-most // step), step)

    def x(labels: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * labels / end, 1)

    def y(share: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - share), 1)

    dots = [
        Dot(
            x(point.labels),
            y(point.accuracy),
            y(point.low),
            y(point.high),
            f"{point.labels} labels: {point.accuracy:.0%}, between {point.low:.0%} "
            f"and {point.high:.0%}, on {point.checks} checks",
        )
        for point in points
    ]
    upper = [(dot.x, dot.high) for dot in dots]
    lower = [(dot.x, dot.low) for dot in reversed(dots)]
    return CurveChart(
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        right=WIDTH - RIGHT,
        top=TOP,
        bottom=HEIGHT - BOTTOM,
        dots=dots,
        line=_places([(dot.x, dot.y) for dot in dots]),
        band=_places(upper + lower),
        x_marks=[Mark(x(labels), str(labels)) for labels in range(0, end + 1, step)],
        y_marks=[Mark(y(quarter / 4), f"{25 * quarter} %") for quarter in range(5)],
    )


def _places(pairs: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in pairs)


def _step(most: int) -> int:
    """A round number that leads to `most` in at most six steps."""
    size = 1
    while True:
        for factor in (1, 2, 5):
            if size * factor * 6 >= most:
                return size * factor
        size *= 10
