"""Growth of time: the exponent of a power law, with its standard error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from research.bench.suite.measurement import MeasurementIndex
from research.bench.suite.scales import PoolShape


@dataclass(frozen=True)
class PowerLaw:
    """Seconds = factor * size ** exponent.

    Attributes
    ----------
    exponent, factor : float
        The parameters.
    error : float or None
        Standard error of the exponent; None for a line through two points.
    """

    exponent: float
    error: float | None
    factor: float

    def __str__(self) -> str:
        error = "" if self.error is None else f" ± {self.error:.2f}"
        return f"{self.exponent:.2f}{error}"

    def at(self, size: float) -> float:
        """Return the seconds for `size`."""
        return float(self.factor * size**self.exponent)


def fit_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> PowerLaw | None:
    """Fit by least squares on the logarithms; None for fewer than two distinct sizes."""
    if len(set(sizes)) < 2:
        return None
    x, y = np.log(np.asarray(sizes, dtype=float)), np.log(np.asarray(seconds, dtype=float))
    centred = x - x.mean()
    dispersion = float(centred @ centred)
    slope = float(centred @ y) / dispersion
    residual = y - y.mean() - slope * centred
    freedom = len(x) - 2
    error = float(np.sqrt(residual @ residual / freedom / dispersion)) if freedom else None
    return PowerLaw(slope, error, float(np.exp(y.mean() - slope * x.mean())))


def growth_points(
    found: MeasurementIndex, part: str, method: str, axis: str, shapes: Sequence[PoolShape]
) -> tuple[list[int], list[float]]:
    """Return the sizes along `axis` at which `method` was measured, and its seconds."""
    rows = [row for shape in shapes if (row := found.ok(part, method, shape)) is not None]
    timed = [(getattr(row.shape, axis), row.seconds) for row in rows if row.seconds]
    return [size for size, _ in timed], [seconds for _, seconds in timed]
