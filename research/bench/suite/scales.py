"""The sizes of the suite's measurements, and the goals of speed at these sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sabal.core.checks import check_choice

PARTS = (
    "kernel", "command", "baselines", "sample", "shapes", "growth", "passes", "disk", "cluster",
)  # fmt: skip

AXES = {"n": "items n", "b": "batch b", "dimensions": "features D", "classes": "classes C"}
"""Names of the sizes that grow, by field."""


@dataclass(frozen=True)
class PoolShape:
    """The size of a pool of `n` items, of which `b` are selected."""

    n: int
    dimensions: int
    classes: int
    b: int

    def __str__(self) -> str:
        return f"n = {self.n:,}, b = {self.b:,}"

    def covers(self, other: PoolShape) -> bool:
        """Return whether this shape is at least as large in every size."""
        return all(getattr(self, axis) >= getattr(other, axis) for axis in AXES)


@dataclass(frozen=True)
class GrowthSizes:
    """Sizes around `base`, of which one at a time varies over `points`."""

    base: PoolShape
    points: Mapping[str, tuple[int, ...]]

    def along(self, axis: str) -> list[PoolShape]:
        """Return the shapes that differ in `axis` only."""
        return [replace(self.base, **{axis: value}) for value in self.points[axis]]

    def shapes(self) -> list[PoolShape]:
        """Return all shapes without duplicates."""
        return list(dict.fromkeys(shape for axis in self.points for shape in self.along(axis)))


@dataclass(frozen=True)
class ParquetSizes:
    """The sizes of pools in a Parquet folder.

    Parameters
    ----------
    rows : tuple of int
        Sizes of the pools.
    dimensions, classes, b : int
        Features, classes and size of the batch.
    file_rows : int
        Rows in each file.
    memory : str
        Memory that a selection may use, less than the pool takes.
    """

    rows: tuple[int, ...]
    dimensions: int
    classes: int
    b: int
    file_rows: int
    memory: str

    def shape(self, rows: int) -> PoolShape:
        """Return the shape of the pool with `rows`."""
        return PoolShape(rows, self.dimensions, self.classes, self.b)

    @property
    def row_bytes(self) -> int:
        """Size of an item: features, probs and label_probs."""
        return 4 * (self.dimensions + 2 * self.classes)

    @property
    def temporary_bytes(self) -> int:
        """Peak disk usage: the folder and an unpacked copy."""
        return 2 * max(self.rows) * self.row_bytes


@dataclass(frozen=True)
class SpeedGoal:
    """The goal that `method` is `times` as fast as BADGE at `shape`."""

    shape: PoolShape
    method: str
    times: float


@dataclass(frozen=True)
class SuiteScale:
    """The sizes of all parts.

    Parameters
    ----------
    name : str
        Name of the scale.
    shapes, growth : tuple of PoolShape, GrowthSizes
        Shapes at which methods are compared, and over which time is fitted.
    passes : tuple of PoolShape
        Shapes at which single passes are measured.
    few_passes : int
        The batch for which passes are counted.
    disk, cluster : ParquetSizes
        Pools on disk and on the cluster.
    clustered : tuple of str
        Methods measured on the cluster.
    workers : int
        Processes on the cluster.
    speed : tuple of SpeedGoal
        Goals of speed.
    per_pick : tuple of PoolShape or None
        The shapes at which the methods of `PICKED` also make a pass per pick; None for all.
    kernel, interactive : tuple of PoolShape
        Shapes at which the default is compared with one kernel matrix, and those at which a person
        waits for the batch.
    baselines, command, sample : tuple of PoolShape
        Shapes of two baselines, of `sabal select`, and of the comparison with exact greedy.
    """

    name: str
    shapes: tuple[PoolShape, ...]
    growth: GrowthSizes
    passes: tuple[PoolShape, ...]
    few_passes: int
    disk: ParquetSizes
    cluster: ParquetSizes
    clustered: tuple[str, ...]
    workers: int
    speed: tuple[SpeedGoal, ...]
    per_pick: tuple[PoolShape, ...] | None = None
    kernel: tuple[PoolShape, ...] = ()
    interactive: tuple[PoolShape, ...] = ()
    baselines: tuple[PoolShape, ...] = ()
    command: tuple[PoolShape, ...] = ()
    sample: tuple[PoolShape, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the sizes in a form that JSON can represent."""
        return asdict(self)

    def temporary_bytes(self, parts: tuple[str, ...]) -> int:
        """Return the disk space of the inputs of the largest measurement."""
        arrays = {
            "shapes": self.shapes,
            "growth": tuple(self.growth.shapes()),
            "passes": self.passes,
            "kernel": (*self.kernel, *self.interactive),
            "baselines": self.baselines,
            # In three formats.
            "command": 3 * self.command,
            "sample": self.sample,
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
    PoolShape(n, 512, 10, b)
    for n, b in ((47_000, 3_000), (72_000, 1_000), (200_000, 1_000), (1_000_000, 1_000))
)
_SMALL = (PoolShape(3_000, 32, 5, 80), PoolShape(6_000, 32, 5, 40))

SCALES = {
    "full": SuiteScale(
        name="full",
        shapes=_SHAPES,
        growth=GrowthSizes(
            PoolShape(50_000, 256, 10, 1_000),
            {
                "n": (25_000, 50_000, 100_000, 200_000),
                "b": (250, 500, 1_000, 2_000),
                "dimensions": (64, 128, 256, 512),
                "classes": (5, 10, 20, 40),
            },
        ),
        passes=_SHAPES[:2],
        few_passes=1_000,
        disk=ParquetSizes(
            (2_500_000, 5_000_000, 10_000_000), 64, 10, 10_000, file_rows=250_000, memory="1GiB"
        ),
        cluster=ParquetSizes((300_000, 900_000), 64, 10, 1_000, file_rows=100_000, memory="64MiB"),
        clustered=("sabal-greedy", "sabal"),
        workers=2,
        speed=(
            SpeedGoal(_SHAPES[0], "sabal-greedy", 8.0),
            SpeedGoal(_SHAPES[0], "sabal", 15.0),
            SpeedGoal(_SHAPES[-1], "sabal-greedy", 15.0),
            SpeedGoal(_SHAPES[-1], "sabal", 40.0),
        ),
        per_pick=_SHAPES[1:2],
        kernel=_SHAPES,
        interactive=(PoolShape(20_000, 512, 10, 100), PoolShape(20_000, 32, 30, 40)),
        baselines=(PoolShape(200_000, 512, 10, 100),),
        command=(PoolShape(200_000, 256, 10, 100),),
        sample=(PoolShape(20_000, 512, 10, 100), PoolShape(20_000, 512, 10, 1_000)),
    ),
    "small": SuiteScale(
        name="small",
        shapes=_SMALL,
        growth=GrowthSizes(
            PoolShape(4_000, 32, 5, 100),
            {
                "n": (4_000, 8_000, 16_000),
                "b": (100, 200),
                "dimensions": (32, 64),
                "classes": (5, 10),
            },
        ),
        passes=_SMALL[1:],
        few_passes=40,
        disk=ParquetSizes((8_000, 16_000, 32_000), 16, 5, 200, file_rows=4_000, memory="2MiB"),
        cluster=ParquetSizes((12_000, 24_000), 16, 5, 500, file_rows=6_000, memory="2MiB"),
        clustered=("sabal-greedy",),
        workers=2,
        speed=(
            SpeedGoal(_SMALL[0], "sabal-greedy", 8.0),
            SpeedGoal(_SMALL[0], "sabal", 4.0),
            SpeedGoal(_SMALL[-1], "sabal-greedy", 15.0),
            SpeedGoal(_SMALL[-1], "sabal", 15.0),
        ),
        kernel=_SMALL[:1],
        interactive=_SMALL[1:],
        baselines=_SMALL[:1],
        command=_SMALL[:1],
        sample=(PoolShape(8_000, 32, 5, 40),),
    ),
}


def scale_of(scale: str | SuiteScale) -> SuiteScale:
    """Return the scale by name; a SuiteScale is kept as it is."""
    if isinstance(scale, SuiteScale):
        return scale
    return SCALES[check_choice(scale, "scale", tuple(SCALES))]
