"""The goals of speed and memory, each compared with what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from research.bench.suite.default_figures import default_verdicts
from research.bench.suite.figures import (
    fewer_passes,
    memory_share,
    objective_gap,
    pass_figures,
    times_as_fast,
)
from research.bench.suite.judging import GoalVerdict, judged
from research.bench.suite.measurement import MeasurementIndex, SuiteMeasurement
from research.bench.suite.methods import PER_PICK, PICKED, SABAL
from research.bench.suite.power_law import fit_exponent, growth_points
from research.bench.suite.scales import SuiteScale
from sabal.strategies.greedy_cover import KERNEL_BYTES

GAP = 0.01
FEWER_PASSES = 10.0
OVERHEAD = 1.3
MEMORY_SHARE = 0.25
RESIDENT_BYTES = 2 * 2**30
EXPONENT = 1.1
"""The largest exponent that counts as linear, given the noise of measurements."""
TRAFFIC = 1.1
"""The largest ratio of bytes per pass between pools that counts as no growth."""

RIVALS = {
    "badge": "BADGE by rejection sampling (ours)",
    f"badge{PER_PICK}": "BADGE with a pass per pick (the plain algorithm)",
}


def verdicts(rows: Sequence[SuiteMeasurement], scale: SuiteScale) -> list[GoalVerdict]:
    """Return the verdict on every goal, measured or not."""
    found = MeasurementIndex(rows)
    return [
        *default_verdicts(found, scale),
        *_objective(found, scale),
        *_speed(found, scale),
        _iht(found, scale),
        *_memory(found, scale),
        *_disk(found, scale),
        *_cluster(found, scale),
    ]


def _objective(found: MeasurementIndex, scale: SuiteScale) -> Iterator[GoalVerdict]:
    for method in PICKED:
        yield judged(
            f"{method}: objective short of that with a pass per pick",
            f"at most {100 * GAP:g} % of the latter's lead over a random batch, at all shapes",
            [objective_gap(found, shape, method) for shape in scale.per_pick or scale.shapes],
            lambda gap: gap <= GAP,
            lambda gap: f"{100 * gap:.2f} %",
            worst=max,
        )
    compared = scale.per_pick or scale.shapes
    shapes = [shape for shape in compared if shape.b == scale.few_passes]
    for method in PICKED:
        yield judged(
            f"{method}: passes at b = {scale.few_passes:,}",
            f"at least {FEWER_PASSES:g} times fewer than with a pass per pick",
            [fewer_passes(found, shape, method) for shape in shapes],
            lambda times: times >= FEWER_PASSES,
            lambda times: f"{times:.3g} times fewer",
            worst=min,
        )


def _speed(found: MeasurementIndex, scale: SuiteScale) -> Iterator[GoalVerdict]:
    rival = f"badge{PER_PICK}"
    for goal in scale.speed:
        ratio = times_as_fast(found, goal.shape, goal.method, rival)
        met = None
        if ratio is not None:
            met = ratio.value >= goal.times
            # A bound decides in one direction only.
            if (ratio.bound == "at least" and not met) or (ratio.bound == "at most" and met):
                met = None
        yield GoalVerdict(
            f"{goal.method} beside {RIVALS[rival]}, {goal.shape}",
            f"at least {goal.times:g} times as fast",
            "nothing" if ratio is None else f"{ratio} times",
            met,
        )


def _iht(found: MeasurementIndex, scale: SuiteScale) -> GoalVerdict:
    figures = [pass_figures(found.get("passes", "sabal-iht", shape)) for shape in scale.passes]
    return judged(
        "sabal-iht: time of a selection",
        f"at most {OVERHEAD:g} times that of its bare passes",
        [None if each is None else each.overhead for each in figures],
        lambda times: times <= OVERHEAD,
        lambda times: f"{times:.2f} times",
        worst=max,
    )


def _memory(found: MeasurementIndex, scale: SuiteScale) -> Iterator[GoalVerdict]:
    for method in SABAL:
        # The default keeps the kernel of its sample.
        floor = KERNEL_BYTES if method == "sabal" else 0
        rows = [found.ok("shapes", method, shape) for shape in scale.shapes]
        shares = [
            None
            if (share := memory_share(row)) is None or row is None
            else (share / max(MEMORY_SHARE, floor / row.facts["input_bytes"]), share)
            for row in rows
        ]
        yield judged(
            f"{method}: memory beyond the inputs",
            f"at most {100 * MEMORY_SHARE:g} % of the inputs"
            + (f" or {floor / 1e6:g} MB, on all shapes" if floor else ", on all shapes"),
            shares,
            lambda found: found[0] <= 1.0,
            lambda found: f"{100 * found[1]:.1f} %",
            worst=max,
        )


def _disk(found: MeasurementIndex, scale: SuiteScale) -> Iterator[GoalVerdict]:
    most = max(scale.disk.rows)
    for method in ("sabal-greedy", "sabal"):
        rows = [row for row in found.of("disk", method) if row.ok and row.fact("highest_bytes")]
        largest = max(rows, key=lambda row: row.shape.n, default=None)
        below = largest is not None and largest.facts["highest_bytes"] < RESIDENT_BYTES
        complete = largest is not None and largest.shape.n == most
        yield GoalVerdict(
            f"{method}: whole resident memory, {most:,} rows on disk",
            f"below {_gibibytes(RESIDENT_BYTES)}",
            "nothing"
            if largest is None
            else f"{_gibibytes(largest.facts['highest_bytes'])} at {largest.shape.n:,} rows",
            below if complete or (largest is not None and not below) else None,
        )
    shapes = [scale.disk.shape(n) for n in scale.disk.rows]
    for method in ("sabal-greedy", "sabal"):
        sizes, seconds = growth_points(found, "disk", method, "n", shapes)
        fit = fit_exponent(sizes, seconds) if len(sizes) == len(shapes) else None
        yield GoalVerdict(
            f"{method}: growth of its time with the rows on disk",
            f"linear: an exponent of at most {EXPONENT:g}",
            "nothing" if fit is None else f"an exponent of {fit}",
            None if fit is None else fit.exponent <= EXPONENT,
        )


def _cluster(found: MeasurementIndex, scale: SuiteScale) -> Iterator[GoalVerdict]:
    shapes = [scale.cluster.shape(n) for n in scale.cluster.rows]
    for method in scale.clustered:
        rows = [found.ok("cluster", method, shape) for shape in shapes]
        yield judged(
            f"{method} on Ray: the batch",
            "that of the same pool in memory and on disk",
            [
                None if row is None else row.facts["same_as_memory"] and row.facts["same_as_disk"]
                for row in rows
            ],
            bool,
            lambda same: "the same" if same else "another",
            worst=min,
        )
        traffic = [row.facts["bytes_per_pass"] for row in rows if row is not None]
        complete = len(traffic) == len(shapes)
        yield GoalVerdict(
            f"{method} on Ray: bytes that a pass brings to the driver",
            f"do not grow from n = {shapes[0].n:,} to {shapes[-1].n:,}",
            " and ".join(f"{nbytes:,}" for nbytes in traffic) or "nothing",
            traffic[-1] <= TRAFFIC * traffic[0] if complete else None,
        )


def _gibibytes(nbytes: float) -> str:
    return f"{nbytes / 2**30:.3g} GiB"
