"""A suite that is over in seconds, and rows of its results."""

from __future__ import annotations

from dataclasses import replace

from research.bench.suite import SCALES
from research.bench.suite.measurement import SuiteMeasurement
from research.bench.suite.scales import GrowthSizes, ParquetSizes, PoolShape, SpeedGoal

SHAPE = PoolShape(2_500, 8, 3, 20)
LARGER = replace(SHAPE, n=10_000)
DISK = ParquetSizes((2_000, 4_000), 8, 3, 20, file_rows=1_000, memory="256KiB")
TINY = replace(
    SCALES["small"],
    name="tiny",
    shapes=(SHAPE,),
    growth=GrowthSizes(
        SHAPE, {"n": (2_500, 3_000), "b": (20,), "dimensions": (8,), "classes": (3,)}
    ),
    passes=(SHAPE,),
    few_passes=20,
    disk=DISK,
    cluster=DISK,
    speed=(SpeedGoal(SHAPE, "sabal-greedy", 8.0), SpeedGoal(SHAPE, "sabal", 4.0)),
)
SLOW = ", a pass per pick"
KERNEL = "sabal, kernel atoms"


def made_row(part="shapes", method="sabal", shape=SHAPE, status="ok", **kwargs):
    return SuiteMeasurement(part, method, shape, status, **kwargs)
