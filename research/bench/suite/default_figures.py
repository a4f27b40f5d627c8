"""The default beside what limits it: one kernel matrix, one read of the pool, exact greedy.

Also two baselines and the memory of `sabal select`, whose goals were set with those of the default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from research.bench.suite.judging import GoalVerdict, judged
from research.bench.suite.measurement import MeasurementIndex, SuiteMeasurement
from research.bench.suite.methods import BASELINES, DEFAULT, FORMATS
from research.bench.suite.report_tables import ReportTable, megabytes, number, percent
from research.bench.suite.scales import PoolShape, SuiteScale

KERNELS = 2.0
BADGES = 5.0
WAIT_SECONDS = 0.3
COMMAND_BYTES = 450e6
SHORTFALL = 0.005
BASELINE_SECONDS = {"typiclust": 2.4, "kcenter": 2.55}
"""Half of what they took before."""


def ratio(row: SuiteMeasurement | None, to: str) -> float | None:
    """Return the time of a selection in multiples of another time measured in turn with it."""
    if row is None or not row.ok or not row.seconds or not row.fact(to):
        return None
    return float(row.seconds / row.fact(to))


def shortfall(row: SuiteMeasurement | None) -> float | None:
    """Return by which share the batch from a sample covers less than greedy picks from all."""
    if row is None or not row.ok or not row.fact("exactly_covered"):
        return None
    return float(1.0 - row.facts["covered"] / row.facts["exactly_covered"])


def default_verdicts(found: MeasurementIndex, scale: SuiteScale) -> Iterator[GoalVerdict]:
    """Yield the verdicts on the parts kernel, command, baselines and sample."""

    def values(
        part: str,
        method: str,
        shapes: tuple[PoolShape, ...],
        of: Callable[[SuiteMeasurement], float | None],
    ) -> list[float | None]:
        rows = [found.ok(part, method, shape) for shape in shapes]
        return [None if row is None else of(row) for row in rows]

    def at_most(
        what: str, goal: str, given: list[float | None], limit: float, show: str
    ) -> Iterator[GoalVerdict]:
        if given:
            yield judged(
                what, goal, given, lambda x: x <= limit, lambda x: show.format(x), worst=max
            )

    for method in DEFAULT:
        kernels = values("kernel", method, scale.kernel, lambda row: ratio(row, "kernel_seconds"))
        goal = f"at most {KERNELS:g} times one kernel matrix of its sample, on all shapes"
        yield from at_most(f"{method}: time of a selection", goal, kernels, KERNELS, "{:.2f} times")
    badges = values("kernel", DEFAULT[0], scale.kernel, lambda row: ratio(row, "badge_seconds"))
    goal = f"at most {BADGES:g} times `badge`, on all shapes"
    yield from at_most("sabal: time beside BADGE", goal, badges, BADGES, "{:.2f} times")
    waits = values("kernel", DEFAULT[0], scale.interactive, lambda row: row.seconds)
    sizes = " and ".join(map(str, scale.interactive))
    goal = f"at most {WAIT_SECONDS:g} s"
    yield from at_most(f"sabal: wait for a batch, {sizes}", goal, waits, WAIT_SECONDS, "{:.3f} s")
    for method in BASELINES:
        taken = values("baselines", method, scale.baselines, lambda row: row.seconds)
        limit = BASELINE_SECONDS[method]
        goal = f"at most {limit:g} s, half of what it took"
        what = f"{method}: time, {' and '.join(map(str, scale.baselines))}"
        yield from at_most(what, goal, taken, limit, "{:.2f} s")
    for kind in FORMATS:
        peaks = values("command", kind, scale.command, lambda row: row.fact("command_bytes"))
        what = f"`sabal select` of a pool as {kind}: peak of memory"
        goal = f"at most {COMMAND_BYTES / 1e6:g} MB"
        in_megabytes = [None if peak is None else peak / 1e6 for peak in peaks]
        yield from at_most(what, goal, in_megabytes, COMMAND_BYTES / 1e6, "{:.0f} MB")
    short = values("sample", DEFAULT[0], scale.sample, shortfall)
    in_percent = [None if share is None else 100 * share for share in short]
    goal = f"at most {100 * SHORTFALL:g} % less than greedy picks from all items"
    what = "sabal: covered share with a sample"
    yield from at_most(what, goal, in_percent, 100 * SHORTFALL, "{:.2f} %")


def default_sheets(found: MeasurementIndex) -> list[ReportTable]:
    """Return the tables of these parts that there are rows for."""
    made = {"kernel": _kernel, "baselines": _baselines, "command": _command, "sample": _sample}
    return [make(found) for part, make in made.items() if found.of(part)]


def _size(row: SuiteMeasurement) -> tuple[str, ...]:
    shape = row.shape
    return f"{shape.n:,}", f"{shape.dimensions:,}", f"{shape.classes:,}", f"{shape.b:,}"


SIZE = ("n", "D", "C", "b")


def _kernel(found: MeasurementIndex) -> ReportTable:
    lines = [
        [
            *_size(row),
            row.method,
            number(row.seconds),
            number(row.fact("sampled"), ",d"),
            number(row.fact("kernel_seconds")),
            number(ratio(row, "kernel_seconds"), ".2f"),
            number(ratio(row, "badge_seconds"), ".2f"),
            number(ratio(row, "read_seconds"), ".1f"),
            row.note,
        ]
        for row in found.of("kernel")
    ]
    columns = (
        *SIZE, "method", "s", "sampled", "one kernel matrix s", "/ kernel matrix", "/ badge",
        "/ one read of the pool", "note",
    )  # fmt: skip
    note = (
        "The fastest of three, measured in turn in one process. One kernel matrix: that of the "
        "sample with its exponentials, all rows, without using its symmetry. One read: a sum over "
        "the features on all cores, at the bandwidth of the memory."
    )
    return ReportTable(
        "The default and one kernel matrix", columns, lines, ("method", "note"), note
    )


def _baselines(found: MeasurementIndex) -> ReportTable:
    lines = [
        [*_size(row), row.method, number(row.seconds), megabytes(row.peak_bytes), row.note]
        for row in found.of("baselines")
    ]
    columns = (*SIZE, "method", "s", "MB beyond inputs", "note")
    return ReportTable("Two baselines", columns, lines, ("method", "note"))


def _command(found: MeasurementIndex) -> ReportTable:
    lines = [
        [
            *_size(row),
            row.method,
            number(row.seconds),
            megabytes(row.fact("input_bytes")),
            megabytes(row.fact("command_bytes")),
            row.note,
        ]
        for row in found.of("command")
    ]
    columns = (*SIZE, "format", "s", "pool MB", "peak MB", "note")
    note = (
        "`sabal select` as a command, from its start to its end; the peak is of the whole process."
    )
    return ReportTable("The command", columns, lines, ("format", "note"), note)


def _sample(found: MeasurementIndex) -> ReportTable:
    lines = [
        [
            *_size(row),
            percent(row.fact("covered"), 2),
            percent(row.fact("exactly_covered"), 2),
            percent(shortfall(row), 2),
            row.note,
        ]
        for row in found.of("sample")
    ]
    columns = (*SIZE, "covered %", "by greedy picks from all %", "short by %", "note")
    note = "The share of the pool's uncertainty that is covered; the mean of three seeds."
    return ReportTable("What a sample costs", columns, lines, ("note",), note)
