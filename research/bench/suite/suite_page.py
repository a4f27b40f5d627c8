"""The page and the tables of the suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from research.bench.process import FAILED, INCOMPLETE, MEMORY
from research.bench.suite.default_figures import default_sheets
from research.bench.suite.figures import (
    fewer_passes,
    memory_share,
    objective_gap,
    pass_figures,
    times_as_fast,
)
from research.bench.suite.measurement import MeasurementIndex, SuiteMeasurement
from research.bench.suite.methods import GROWING, PER_PICK, PICKED, SABAL
from research.bench.suite.power_law import fit_exponent, growth_points
from research.bench.suite.report_tables import ReportTable, megabytes, number, percent
from research.bench.suite.scales import AXES, SuiteScale
from research.bench.suite.verdicts import RIVALS, verdicts


def sheets(rows: Sequence[SuiteMeasurement], scale: SuiteScale) -> list[ReportTable]:
    """Return all tables that there are rows for, the verdict first."""
    found = MeasurementIndex(rows)
    made = {
        "shapes": (_times, _speed, _objective),
        "growth": (_growth,),
        "passes": (_passes,),
        "disk": (_disk,),
        "cluster": (_cluster,),
    }
    makers = [make for part, several in made.items() if found.of(part) for make in several]
    others = [make(found, scale) for make in makers]
    return [_verdict(rows, scale), *default_sheets(found), *others]


def page(
    rows: Sequence[SuiteMeasurement],
    scale: SuiteScale,
    machine: Mapping[str, Any],
    pictures: Mapping[str, str],
    limit: float,
) -> str:
    """Return the whole page; `pictures` are plots next to it, with the table of each."""
    memory = machine.get("memory_bytes")
    facts = [
        f"{machine.get('cores')} cores ({machine.get('processor')})",
        f"{memory / 2**30:.0f} GiB" if memory else "",
        f"Python {machine.get('python')}",
        *(f"{name} {version}" for name, version in machine.get("libraries", {}).items()),
    ]
    head = (
        "# Speed and memory of a selection\n\n"
        f"    {machine.get('command')}\n\n"
        f"{machine.get('date')}, scale `{scale.name}`, {limit:g} s for a selection at most. "
        f"{', '.join(filter(None, facts))}.\n"
    )
    parts = [head]
    for sheet in sheets(rows, scale):
        parts.append(sheet.markdown())
        parts += [
            f"![{sheet.title}]({file})\n" for file, at in pictures.items() if at == sheet.title
        ]
    return "\n".join(parts)


VERDICT = "Verdict"
TIMES = "Side by side"
SPEED = "Times as fast as BADGE"
OBJECTIVE = "Objective and passes, beside a pass per pick"
GROWTH = "How time grows"
PASSES = "Passes"
DISK = "From disk"
CLUSTER = "On a Ray cluster"


def _verdict(rows: Sequence[SuiteMeasurement], scale: SuiteScale) -> ReportTable:
    lines = [[v.what, v.goal, v.measured, v.answer] for v in verdicts(rows, scale)]
    columns = ("what", "goal", "measured", "verdict")
    notes = [] if scale.name == "full" else ["The goals are meant for the sizes of --scale full."]
    # A crash has no figures, and must not be overlooked.
    notes += [
        f"{row.part}, {row.shape}, {row.method}: {row.status}, {row.note}."
        for row in rows
        if row.status in (FAILED, INCOMPLETE, MEMORY)
    ]
    return ReportTable(VERDICT, columns, lines, columns, " ".join(notes))


def _times(found: MeasurementIndex, scale: SuiteScale) -> ReportTable:
    columns = (
        "n", "b", "method", "s", "MB beyond inputs", "inputs MB", "share %", "passes",
        "objective", "random batch's", "note",
    )  # fmt: skip
    lines = [
        [
            *_size(row),
            row.method,
            _seconds(row),
            megabytes(row.peak_bytes),
            megabytes(row.fact("input_bytes")),
            percent(memory_share(row)),
            number(row.fact("passes"), ",d"),
            number(row.fact("objective"), ".5g"),
            number(row.fact("random_objective"), ".5g"),
            row.note,
        ]
        for row in found.of("shapes")
    ]
    dimensions = sorted({(shape.dimensions, shape.classes) for shape in scale.shapes})
    sizes = " and ".join(f"D = {d}, C = {c}" for d, c in dimensions)
    note = (
        f"{sizes}, float32. Inputs: what the method was given. One process for each selection. "
        "Objective: of the method's own problem, to be compared with the random batch's beside it "
        "and with the same method's at a pass per pick; sabal's is the share of the pool's "
        "uncertainty that it leaves uncovered."
    )
    return ReportTable(TIMES, columns, lines, ("method", "note"), note)


def _speed(found: MeasurementIndex, scale: SuiteScale) -> ReportTable:
    lines = []
    for shape in scale.shapes:
        for method in SABAL:
            ratios = [times_as_fast(found, shape, method, rival) for rival in RIVALS]
            cells = ["" if ratio is None else str(ratio) for ratio in ratios]
            lines.append([f"{shape.n:,}", f"{shape.b:,}", method, *cells])
    columns = ("n", "b", "method", *RIVALS.values())
    note = "A bound (> or <): one of the two was killed at the limit."
    return ReportTable(SPEED, columns, lines, ("method",), note)


def _objective(found: MeasurementIndex, scale: SuiteScale) -> ReportTable:
    lines = []
    for shape in scale.per_pick or scale.shapes:
        for method in PICKED:
            blocks = found.ok("shapes", method, shape)
            each = found.get("shapes", f"{method}{PER_PICK}", shape)
            lines.append(
                [
                    f"{shape.n:,}",
                    f"{shape.b:,}",
                    method,
                    percent(objective_gap(found, shape, method), 2),
                    number(None if blocks is None else blocks.fact("passes"), ",d"),
                    number(None if each is None else each.fact("passes"), ",d"),
                    number(fewer_passes(found, shape, method)),
                    "" if each is None else each.note,
                ]
            )
    columns = (
        "n", "b", "method", "gap %", "passes", "with a pass per pick", "times fewer", "note",
    )  # fmt: skip
    note = "Gap: (f - f of a pass per pick) / (f of a random batch - f of a pass per pick)."
    return ReportTable(OBJECTIVE, columns, lines, ("method", "note"), note)


def _growth(found: MeasurementIndex, scale: SuiteScale) -> ReportTable:
    def fitted(method: str, axis: str) -> str:
        shapes = scale.growth.along(axis)
        fit = fit_exponent(*growth_points(found, "growth", method, axis, shapes))
        return "" if fit is None else str(fit)

    lines = [[method, *(fitted(method, axis) for axis in AXES)] for method in GROWING]
    base = scale.growth.base
    note = (
        f"Exponents (and their standard errors) around {base}, D = {base.dimensions}, "
        f"C = {base.classes}."
    )
    return ReportTable(GROWTH, ("method", *AXES.values()), lines, ("method",), note)


def _passes(found: MeasurementIndex, scale: SuiteScale) -> ReportTable:
    lines = []
    for row in found.of("passes"):
        figures = pass_figures(row)
        rate = row.fact("stream_rate")
        lines.append(
            [
                *_size(row),
                row.method,
                _seconds(row),
                number(row.fact("passes"), ",d"),
                number(row.fact("bare_seconds")),
                megabytes(row.fact("pass_bytes")),
                number(rate and rate / 1e9),
                percent(None if figures is None else figures.share),
                percent(None if figures is None else figures.of_rate),
                number(None if figures is None else figures.overhead),
                row.note,
            ]
        )
    columns = (
        "n", "b", "method", "s", "passes", "bare pass s", "MB a pass", "memory GB/s",
        "in passes %", "of memory's rate %", "time / passes alone", "note",
    )  # fmt: skip
    note = (
        "A bare pass is the selection's first one, made again as often as the selection makes any, "
        "on average. "
        "Memory: a sum over a large array, on all cores."
    )
    return ReportTable(PASSES, columns, lines, ("method", "note"), note)


def _disk(found: MeasurementIndex, scale: SuiteScale) -> ReportTable:
    lines = [
        [
            f"{row.shape.n:,}",
            f"{row.shape.b:,}",
            row.method,
            _seconds(row),
            number(row.fact("reading_seconds")),
            number(row.fact("selecting_seconds")),
            number(row.fact("passes"), ",d"),
            megabytes(row.fact("input_bytes")),
            megabytes(row.fact("highest_bytes")),
            row.note,
        ]
        for row in found.of("disk")
    ]
    columns = (
        "n", "b", "method", "s", "reading s", "selecting s", "passes", "pool MB",
        "whole resident MB", "note",
    )  # fmt: skip
    files = scale.disk
    note = (
        f"A Parquet folder, D = {files.dimensions}, C = {files.classes}, float32, "
        f"with memory={files.memory!r}."
    )
    return ReportTable(DISK, columns, lines, ("method", "note"), note)


def _cluster(found: MeasurementIndex, scale: SuiteScale) -> ReportTable:
    def same(row: SuiteMeasurement) -> Iterator[str]:
        for where in ("same_as_memory", "same_as_disk"):
            yield {True: "yes", False: "no", None: ""}[row.fact(where)]

    lines = [
        [
            *_size(row),
            row.method,
            *same(row),
            number(row.fact("bytes_per_pass"), ",d"),
            megabytes(row.fact("bytes")),
            number(row.fact("memory_seconds")),
            number(row.fact("disk_seconds")),
            _seconds(row),
            number(row.fact("selecting_seconds")),
            row.note,
        ]
        for row in found.of("cluster")
    ]
    columns = (
        "n", "b", "method", "same as in memory", "same as on disk", "bytes a pass", "MB in all",
        "in memory s", "on disk s", "on Ray s", "of it selecting s", "note",
    )  # fmt: skip
    note = (
        f"{scale.workers} workers on this machine; starting Ray is part of its time. "
        "Bytes: of answers to the driver."
    )
    return ReportTable(CLUSTER, columns, lines, ("method", "note"), note)


def _size(row: SuiteMeasurement) -> tuple[str, str]:
    return f"{row.shape.n:,}", f"{row.shape.b:,}"


def _seconds(row: SuiteMeasurement) -> str:
    return row.status if row.seconds is None else f"{row.seconds:.3g}"
