"""Figures derived from the measurements of one run."""

from __future__ import annotations

from dataclasses import dataclass

from research.bench.suite.measurement import MeasurementIndex, SuiteMeasurement
from research.bench.suite.methods import PER_PICK
from research.bench.suite.scales import PoolShape


@dataclass(frozen=True)
class SpeedRatio:
    """The speed of a method as a multiple of a rival's.

    Attributes
    ----------
    value : float
        The ratio.
    bound : {"at least", "at most", ""}
        "at least" if the rival was killed, "at most" if the method was; "" if both finished.
    """

    value: float
    bound: str = ""

    def __str__(self) -> str:
        signs = {"at least": "> ", "at most": "< ", "": ""}
        return f"{signs[self.bound]}{self.value:.3g}"


def times_as_fast(
    found: MeasurementIndex, shape: PoolShape, method: str, rival: str
) -> SpeedRatio | None:
    """Return the speed of `method` as a multiple of that of `rival` at `shape`."""
    ours, theirs = found.get("shapes", method, shape), found.get("shapes", rival, shape)
    if ours is None or theirs is None:
        return None
    mine, other = _seconds(ours), _seconds(theirs)
    if mine is None or other is None or (ours.limit and theirs.limit):
        return None
    bound = "at least" if theirs.limit else "at most" if ours.limit else ""
    return SpeedRatio(other / mine, bound)


def _seconds(row: SuiteMeasurement) -> float | None:
    """Return the time of a selection, or the limit that it exceeded."""
    return row.seconds if row.ok else row.limit


def objective_gap(found: MeasurementIndex, shape: PoolShape, method: str) -> float | None:
    """Return the gap between f and its value with a pass per pick.

    The gap is a share of the difference between the latter and a random batch.
    """
    blocks = found.ok("shapes", method, shape)
    each = found.ok("shapes", f"{method}{PER_PICK}", shape)
    if blocks is None or each is None:
        return None
    reached, best = blocks.fact("objective"), each.fact("objective")
    random = blocks.fact("random_objective")
    if reached is None or best is None or random is None or random == best:
        return None
    return float((reached - best) / (random - best))


def fewer_passes(found: MeasurementIndex, shape: PoolShape, method: str) -> float | None:
    """Return how many times fewer passes `method` makes than with a pass per pick."""
    blocks = found.ok("shapes", method, shape)
    each = found.ok("shapes", f"{method}{PER_PICK}", shape)
    if blocks is None or each is None or not blocks.fact("passes"):
        return None
    return float(each.fact("passes") / blocks.fact("passes"))


def memory_share(row: SuiteMeasurement | None) -> float | None:
    """Return the memory of a selection beyond its inputs, as a share of the inputs."""
    if row is None or not row.ok or row.peak_bytes is None or not row.fact("input_bytes"):
        return None
    return float(row.peak_bytes / row.fact("input_bytes"))


@dataclass(frozen=True)
class PassFigures:
    """The cost of the passes of a selection.

    Attributes
    ----------
    share : float
        Share of the time spent in passes.
    of_rate : float
        Bytes per second of a pass, as a share of the memory bandwidth of this machine.
    overhead : float
        Time of the selection as a multiple of its passes alone.
    """

    share: float
    of_rate: float
    overhead: float


def pass_figures(row: SuiteMeasurement | None) -> PassFigures | None:
    """Return the figures of a measurement of passes, or None if there are none."""
    if row is None or not row.ok or not row.seconds or not row.fact("passes"):
        return None
    bare = row.facts["bare_seconds"]
    passes = row.facts["passes"] * bare
    return PassFigures(
        share=passes / row.seconds,
        of_rate=row.facts["pass_bytes"] / (bare * row.facts["stream_rate"]),
        overhead=row.seconds / passes,
    )
