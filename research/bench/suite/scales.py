"""How large the measurements of the suite are, and at which sizes how fast Sabal has to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sabal.core.checks import check_choice

PARTS = ("shapes", "growth", "passes", "disk", "cluster")

AXES = {"n": "items n", "b": "batch b", "dimensions": "features D", "classes": "classes C"}
"""What grows, by the name of the field."""


@dataclass(frozen=True)
class Shape:
    """A pool of `n` items with so many features and classes, out of which `b` are chosen."""

    n: int
    dimensions: int
    classes: int
    b: int

    def __str__(self) -> str:
        return f"n = {self.n:,}, b = {self.b:,}"

    def covers(self, other: Shape) -> bool:
        """Whether this is no smaller in anything."""
        return all(getattr(self, axis) >= getattr(other, axis) for axis in AXES)


@dataclass(frozen=True)
class Growth:
    """Sizes around `base`: one thing varies at a time, over `points`."""

    base: Shape
    points: Mapping[str, tuple[int, ...]]

    def along(self, axis: str) -> list[Shape]:
        """The shapes that differ in `axis` alone."""
        return [replace(self.base, **{axis: value}) for value in self.points[axis]]

    def shapes(self) -> list[Shape]:
        """All of them, each once."""
        return list(dict.fromkeys(shape for axis in self.points for shape in self.along(axis)))


@dataclass(frozen=True)
class Files:
    """Pools in a Parquet folder: of so many `rows` each, in files of `file_rows`.

    memory: what a selection is granted, less than the pool takes.
    """

    rows: tuple[int, ...]
    dimensions: int
    classes: int
    b: int
    file_rows: int
    memory: str

    def shape(self, rows: int) -> Shape:
        """The shape of the pool with `rows`."""
        return Shape(rows, self.dimensions, self.classes, self.b)

    @property
    def row_bytes(self) -> int:
        """What an item takes: features, probs and label_probs."""
        return 4 * (self.dimensions + 2 * self.classes)

    @property
    def temporary_bytes(self) -> int:
        """What is on disk at most: the folder, and the same once more, unpacked."""
        return 2 * max(self.rows) * self.row_bytes


@dataclass(frozen=True)
class SpeedGoal:
    """At `shape`, `method` has to be so many `times` as fast as BADGE."""

    shape: Shape
    method: str
    times: float


@dataclass(frozen=True)
class Scale:
    """The sizes of all parts.

    passes: shapes at which single passes are looked at. few_passes: the batch for which passes are
        counted. workers, clustered: processes on the cluster, and what is selected there.
    """

    name: str
    shapes: tuple[Shape, ...]
    growth: Growth
    passes: tuple[Shape, ...]
    few_passes: int
    disk: Files
    cluster: Files
    clustered: tuple[str, ...]
    workers: int
    speed: tuple[SpeedGoal, ...]

    def as_dict(self) -> dict[str, Any]:
        """The sizes as JSON has them."""
        return asdict(self)

    def temporary_bytes(self, parts: tuple[str, ...]) -> int:
        """What the inputs of the largest measurement take on disk."""
        arrays = {
            "shapes": self.shapes,
            "growth": tuple(self.growth.shapes()),
            "passes": self.passes,
        }
        needed = [
            4 * shape.n * (shape.dimensions + 3 * shape.classes)
            for part in parts
            for shape in arrays.get(part, ())
        ]
        files = {"disk": self.disk, "cluster": self.cluster}
        needed += [files[part].temporary_bytes for part in parts if part in files]
        return max(needed, default=0)


_SHAPES = tuple(
    Shape(n, 512, 10, b)
    for n, b in ((47_000, 3_000), (72_000, 1_000), (200_000, 1_000), (1_000_000, 1_000))
)
_SMALL = (Shape(3_000, 32, 5, 80), Shape(6_000, 32, 5, 40))

SCALES = {
    "full": Scale(
        name="full",
        shapes=_SHAPES,
        growth=Growth(
            Shape(50_000, 256, 10, 1_000),
            {
                "n": (25_000, 50_000, 100_000, 200_000),
                "b": (250, 500, 1_000, 2_000),
                "dimensions": (64, 128, 256, 512),
                "classes": (5, 10, 20, 40),
            },
        ),
        passes=_SHAPES[:3],
        few_passes=1_000,
        disk=Files(
            (2_500_000, 5_000_000, 10_000_000), 64, 10, 10_000, file_rows=250_000, memory="1GiB"
        ),
        cluster=Files((300_000, 900_000), 64, 10, 1_000, file_rows=100_000, memory="64MiB"),
        clustered=("sabal-greedy", "sabal", "sabal-iht"),
        workers=2,
        speed=(
            SpeedGoal(_SHAPES[0], "sabal-greedy", 8.0),
            SpeedGoal(_SHAPES[0], "sabal", 4.0),
            SpeedGoal(_SHAPES[-1], "sabal-greedy", 15.0),
            SpeedGoal(_SHAPES[-1], "sabal", 15.0),
        ),
    ),
    "small": Scale(
        name="small",
        shapes=_SMALL,
        growth=Growth(
            Shape(4_000, 32, 5, 100),
            {
                "n": (4_000, 8_000, 16_000),
                "b": (100, 200),
                "dimensions": (32, 64),
                "classes": (5, 10),
            },
        ),
        passes=_SMALL[1:],
        few_passes=40,
        disk=Files((8_000, 16_000, 32_000), 16, 5, 200, file_rows=4_000, memory="2MiB"),
        cluster=Files((12_000, 24_000), 16, 5, 500, file_rows=6_000, memory="2MiB"),
        clustered=("sabal-greedy",),
        workers=2,
        speed=(
            SpeedGoal(_SMALL[0], "sabal-greedy", 8.0),
            SpeedGoal(_SMALL[0], "sabal", 4.0),
            SpeedGoal(_SMALL[-1], "sabal-greedy", 15.0),
            SpeedGoal(_SMALL[-1], "sabal", 15.0),
        ),
    ),
}


def scale_of(scale: str | Scale) -> Scale:
    """The scale by name; a Scale is taken as it is."""
    if isinstance(scale, Scale):
        return scale
    return SCALES[check_choice(scale, "scale", tuple(SCALES))]
