"""The measurements of the suite, their order, and which of them can be skipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from research.bench.process import MEMORY, NOT_INSTALLED, NOT_TRIED, OVER, JobOutcome
from research.bench.suite.measurement import MeasurementIndex
from research.bench.suite.methods import (
    BASELINES,
    DEFAULT,
    FORMATS,
    GROWING,
    PER_PICK,
    SHAPED,
    SOLVED,
)
from research.bench.suite.scales import PARTS, PoolShape, SuiteScale
from sabal.core.extras import install_command
from sabal.errors import UnknownNameError, did_you_mean

_SCRIPTS = Path(__file__).parent / "scripts"

SCRIPTS = {
    "kernel": _SCRIPTS / "kernel_job.py",
    "command": _SCRIPTS / "command_job.py",
    "baselines": _SCRIPTS / "memory_job.py",
    "sample": _SCRIPTS / "sample_job.py",
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
    """

    part: str
    method: str
    shape: PoolShape

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
    if part == "shapes":
        for shape in scale.shapes:
            slow = scale.per_pick is None or shape in scale.per_pick
            for method in SHAPED:
                if slow or method == f"badge{PER_PICK}" or not method.endswith(PER_PICK):
                    yield PlannedMeasurement(part, method, shape)
        return
    shapes, methods = {
        "kernel": ((*scale.kernel, *scale.interactive), DEFAULT),
        "command": (scale.command, FORMATS),
        "baselines": (scale.baselines, BASELINES),
        "sample": (scale.sample, DEFAULT[:1]),
        "disk": (tuple(map(scale.disk.shape, scale.disk.rows)), ("sabal-greedy", "sabal")),
        "growth": (tuple(scale.growth.shapes()), GROWING),
        "passes": (scale.passes, SOLVED),
        "cluster": (tuple(map(scale.cluster.shape, scale.cluster.rows)), scale.clustered),
    }[part]
    yield from (PlannedMeasurement(part, method, shape) for shape in shapes for method in methods)


def known_outcome(task: PlannedMeasurement, found: MeasurementIndex) -> JobOutcome | None:
    """Return the outcome to record without a run, if it is known."""
    if task.part == "cluster" and find_spec("ray") is None:
        return JobOutcome(NOT_INSTALLED, f"ray is not installed: {install_command('ray')}")
    for row in found.of(task.part, task.method):
        if row.status in (OVER, MEMORY) and task.shape.covers(row.shape):
            return JobOutcome(NOT_TRIED, f"not tried: {row.status} at {row.shape}")
    return None
