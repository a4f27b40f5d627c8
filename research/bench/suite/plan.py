"""Which measurements the suite makes, in which order, and which are not worth trying."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from research.bench.process import MEMORY, NOT_INSTALLED, NOT_TRIED, OVER, Outcome
from research.bench.suite.measurement import Found
from research.bench.suite.methods import GROWING, METHODS, SOLVED
from research.bench.suite.scales import PARTS, Scale, Shape
from sabal.errors import UnknownNameError, did_you_mean

_SCRIPTS = Path(__file__).parent / "scripts"

SCRIPTS = {
    "shapes": _SCRIPTS / "selection.py",
    "growth": _SCRIPTS / "selection.py",
    "passes": _SCRIPTS / "passes.py",
    "disk": _SCRIPTS / "disk.py",
    "cluster": _SCRIPTS / "cluster.py",
}


@dataclass(frozen=True)
class Task:
    """A measurement to make.

    instead: only if the same method did not come to an end at a larger shape.
    """

    part: str
    method: str
    shape: Shape
    instead: bool = False

    @property
    def key(self) -> tuple[str, str, Shape]:
        """As that of its Measurement."""
        return self.part, self.method, self.shape

    def __str__(self) -> str:
        return f"{self.part}: {self.shape}, {self.method}"


def chosen_parts(parts: Sequence[str] | None) -> tuple[str, ...]:
    """The parts by name, in the suite's order, each once; None for all."""
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


def tasks_of(parts: Sequence[str], scale: Scale) -> list[Task]:
    """Every measurement of `parts`, smallest shapes first."""
    return [task for part in parts for task in _tasks(part, scale)]


def _tasks(part: str, scale: Scale) -> Iterator[Task]:
    if part == "disk":
        yield from (Task(part, "sabal-greedy", scale.disk.shape(n)) for n in scale.disk.rows)
        yield Task(part, "sabal", scale.disk.shape(max(scale.disk.rows)))
        yield Task(part, "sabal", scale.disk.shape(min(scale.disk.rows)), instead=True)
        return
    shapes, methods = {
        "shapes": (scale.shapes, tuple(METHODS)),
        "growth": (tuple(scale.growth.shapes()), GROWING),
        "passes": (scale.passes, SOLVED),
        "cluster": (tuple(map(scale.cluster.shape, scale.cluster.rows)), scale.clustered),
    }[part]
    yield from (Task(part, method, shape) for shape in shapes for method in methods)


def superfluous(task: Task, found: Found) -> bool:
    """Whether a larger measurement has made this one unnecessary."""
    return task.instead and any(
        row.ok and row.shape != task.shape and row.shape.covers(task.shape)
        for row in found.of(task.part, task.method)
    )


def foregone(task: Task, found: Found) -> Outcome | None:
    """What to record without trying."""
    if task.part == "cluster" and find_spec("ray") is None:
        return Outcome(NOT_INSTALLED, 'ray is not installed: pip install "sabal[ray]"')
    for row in found.of(task.part, task.method):
        if row.status in (OVER, MEMORY) and task.shape.covers(row.shape):
            return Outcome(NOT_TRIED, f"not tried: {row.status} at {row.shape}")
    return None
