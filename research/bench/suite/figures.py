"""Figures that follow from two or more measurements of one run."""

from __future__ import annotations

from dataclasses import dataclass

from research.bench.suite.measurement import Found, Measurement
from research.bench.suite.methods import PER_PICK
from research.bench.suite.scales import Shape


@dataclass(frozen=True)
class Ratio:
    """How many times as fast a method is as a rival.

    bound: "at least" if the rival was killed, "at most" if the method was; "" if both ended.
    """

    value: float
    bound: str = ""

    def __str__(self) -> str:
        signs = {"at least": "> ", "at most": "< ", "": ""}
        return f"{signs[self.bound]}{self.value:.3g}"


def times_as_fast(found: Found, shape: Shape, method: str, rival: str) -> Ratio | None:
    """How many times as fast as `rival` the `method` is at `shape`."""
    ours, theirs = found.get("shapes", method, shape), found.get("shapes", rival, shape)
    if ours is None or theirs is None:
        return None
    mine, other = _seconds(ours), _seconds(theirs)
    if mine is None or other is None or (ours.limit and theirs.limit):
        return None
    bound = "at least" if theirs.limit else "at most" if ours.limit else ""
    return Ratio(other / mine, bound)


def _seconds(row: Measurement) -> float | None:
    """What it took, or the limit that it went over."""
    return row.seconds if row.ok else row.limit


def objective_gap(found: Found, shape: Shape, method: str) -> float | None:
    """How far f is from what a pass per pick reaches, as a share of what separates the latter
    from a random batch.
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


def fewer_passes(found: Found, shape: Shape, method: str) -> float | None:
    """How many times fewer passes `method` makes than with a pass per pick."""
    blocks = found.ok("shapes", method, shape)
    each = found.ok("shapes", f"{method}{PER_PICK}", shape)
    if blocks is None or each is None or not blocks.fact("passes"):
        return None
    return float(each.fact("passes") / blocks.fact("passes"))


def memory_share(row: Measurement | None) -> float | None:
    """What a selection took beyond its inputs, as a share of these."""
    if row is None or not row.ok or row.peak_bytes is None or not row.fact("input_bytes"):
        return None
    return float(row.peak_bytes / row.fact("input_bytes"))


@dataclass(frozen=True)
class PassFigures:
    """What the passes of a selection cost.

    share: of its time, in passes. of_rate: the bytes of a pass in a second, next to the rate at
    which this machine reads memory. overhead: its time in multiples of its passes alone.
    """

    share: float
    of_rate: float
    overhead: float


def pass_figures(row: Measurement | None) -> PassFigures | None:
    """The figures of a measurement of passes."""
    if row is None or not row.ok or not row.seconds or not row.fact("passes"):
        return None
    bare = row.facts["bare_seconds"]
    passes = row.facts["passes"] * bare
    return PassFigures(
        share=passes / row.seconds,
        of_rate=row.facts["pass_bytes"] / (bare * row.facts["stream_rate"]),
        overhead=row.seconds / passes,
    )
