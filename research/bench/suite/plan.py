"""The measurements of the suite, their order, and which of them can be skipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from research.bench.process import MEMORY, NOT_INSTALLED, NOT_TRIED, OVER, JobOutcome
from research.bench.suite.measurement import MeasurementIndex
from research.bench.suite.methods import GROWING, METHODS, SOLVED
from research.bench.suite.scales import PARTS, PoolShape, SuiteScale
from sabal.core.extras import install_command
from sabal.errors import UnknownNameError, did_you_mean

_SCRIPTS = Path(__file__).parent / "scripts"

SCRIPTS = {
    "shapes": _SCRIPTS / "memory_job.py",
    "growth": _SCRIPTS / "memory_job.py",
    "passes": _SCRIPTS / "passes_job.py",
    "disk": _SCRIPTS / "disk_job.py",
    "cluster": _SCRIPTS / "cluster_job.py",
}


@dataclass(frozen=True)
class PlannedMeasurement:
    """A measurement to make.

    Attributes
    ----------
    part, method, shape
        The identity of the measurement.
    instead : bool
        Whether it is made only if the same method did not finish at a larger shape.
    """

    part: str
    method: str
    shape: PoolShape
    instead: bool = False

    @property
    def key(self) -> tuple[str, str, PoolShape]:
        """The key of its SuiteMeasurement."""
        return self.part, self.method, self.shape

    def __str__(self) -> str:
        return f"{self.part}: {self.shape}, {self.method}"


def chosen_parts(parts: Sequence[str] | None) -> tuple[str, ...]:
    """Return the named parts in the order of the suite, without duplicates; all for None."""
    if parts is None:
        return PARTS
    for part in parts:
        if part not in PARTS:
            raise UnknownNameError(
                f"parts out of {', '.join(PARTS)}",
                repr(part),
                did_you_mean(part, PARTS, otherwise="pick some of these"),
            )
    return tuple(part for part in PARTS if part in parts)


def tasks_of(parts: Sequence[str], scale: SuiteScale) -> list[PlannedMeasurement]:
    """Return the measurements of `parts`, smallest shapes first."""
    return [task for part in parts for task in _tasks(part, scale)]


def _tasks(part: str, scale: SuiteScale) -> Iterator[PlannedMeasurement]:
    if part == "disk":
        yield from (
            PlannedMeasurement(part, "sabal-greedy", scale.disk.shape(n)) for n in scale.disk.rows
        )
        yield PlannedMeasurement(part, "sabal", scale.disk.shape(max(scale.disk.rows)))
        yield PlannedMeasurement(
            part, "sabal", scale.disk.shape(min(scale.disk.rows)), instead=True
        )
        return
    shapes, methods = {
        "shapes": (scale.shapes, tuple(METHODS)),
        "growth": (tuple(scale.growth.shapes()), GROWING),
        "passes": (scale.passes, SOLVED),
        "cluster": (tuple(map(scale.cluster.shape, scale.cluster.rows)), scale.clustered),
    }[part]
    yield from (PlannedMeasurement(part, method, shape) for shape in shapes for method in methods)


def is_superfluous(task: PlannedMeasurement, found: MeasurementIndex) -> bool:
    """Return whether a larger measurement has made this one unnecessary."""
    return task.instead and any(
        row.ok and row.shape != task.shape and row.shape.covers(task.shape)
        for row in found.of(task.part, task.method)
    )


def known_outcome(task: PlannedMeasurement, found: MeasurementIndex) -> JobOutcome | None:
    """Return the outcome to record without a run, if it is known."""
    if task.part == "cluster" and find_spec("ray") is None:
        return JobOutcome(NOT_INSTALLED, f"ray is not installed: {install_command('ray')}")
    for row in found.of(task.part, task.method):
        if row.status in (OVER, MEMORY) and task.shape.covers(row.shape):
            return JobOutcome(NOT_TRIED, f"not tried: {row.status} at {row.shape}")
    return None
