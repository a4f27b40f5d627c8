"""How time grows: the exponent of a power law, with its standard error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from research.bench.suite.measurement import Found
from research.bench.suite.scales import Shape


@dataclass(frozen=True)
class Fit:
    """Seconds = factor * size ** exponent; `error` is the exponent's standard error.

    None for the error of a line through two points: it has none to speak of.
    """

    exponent: float
    error: float | None
    factor: float

    def __str__(self) -> str:
        error = "" if self.error is None else f" ± {self.error:.2f}"
        return f"{self.exponent:.2f}{error}"

    def at(self, size: float) -> float:
        """The seconds that the law has for `size`."""
        return float(self.factor * size**self.exponent)


def fit_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> Fit | None:
    """Least squares on the logarithms; None for less than two different sizes."""
    if len(set(sizes)) < 2:
        return None
    x, y = np.log(np.asarray(sizes, dtype=float)), np.log(np.asarray(seconds, dtype=float))
    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = float(centred @ y) / spread
    residual = y - y.mean() - slope * centred
    freedom = len(x) - 2
    error = float(np.sqrt(residual @ residual / freedom / spread)) if freedom else None
    return Fit(slope, error, float(np.exp(y.mean() - slope * x.mean())))


def growth_points(
    found: Found, part: str, method: str, axis: str, shapes: Sequence[Shape]
) -> tuple[list[int], list[float]]:
    """The sizes along `axis` at which `method` was measured, and its seconds."""
    rows = [row for shape in shapes if (row := found.ok(part, method, shape)) is not None]
    timed = [(getattr(row.shape, axis), row.seconds) for row in rows if row.seconds]
    return [size for size, _ in timed], [seconds for _, seconds in timed]
