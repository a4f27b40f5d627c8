"""Blocks of docs/scale.md: what was measured from disk, and what a billion items would cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from research.bench.suite.measurement import MeasurementIndex, SuiteMeasurement
from sabal.errors import FileError
from sabal.pools.pool import BYTES_PER_ITEM

METHODS = ("sabal", "sabal-greedy")
BILLION = 1_000_000_000
WORKERS = 32


def scale_blocks(results: Path) -> dict[str, list[str]]:
    """Return the blocks by name, from the results of a run of the suite."""
    try:
        document = json.loads(results.read_text(encoding="utf-8"))
        rows = [SuiteMeasurement.from_dict(row) for row in document["rows"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise FileError(
            f"results of the suite in {results}", "none that can be read", "run the suite first"
        ) from None
    found = MeasurementIndex([row for row in rows if row.part == "disk" and row.ok])
    by_method = {name: sorted(found.of("disk", name), key=_rows) for name in METHODS}
    short = [name for name, measured in by_method.items() if len(measured) < 2]
    if short:
        raise FileError(
            f"pools on disk of two sizes for {' and '.join(METHODS)} in {results}",
            f"fewer for {' and '.join(short)}",
            "run the part `disk` of the suite",
        )
    return {"disk": _disk(by_method), "billion": _billion(by_method, document["machine"])}


def _rows(row: SuiteMeasurement) -> int:
    return row.shape.n


def _disk(by_method: dict[str, list[SuiteMeasurement]]) -> list[str]:
    shape = by_method["sabal"][0].shape
    head = f"D = {shape.dimensions}, C = {shape.classes}, b = {shape.b:,}"
    lines = [f"| rows ({head}) | strategy | s | of these selecting | peak of the process |"]
    lines.append("|---:|---|---:|---:|---:|")
    for name, rows in by_method.items():
        lines += [
            f"| {row.shape.n:,} | `{name}` | {row.seconds:.3g} "
            f"| {row.facts['selecting_seconds']:.3g} "
            f"| {row.facts['highest_bytes'] / 1e6:,.0f} MB |"
            for row in rows
        ]
    return lines


def _billion(by_method: dict[str, list[SuiteMeasurement]], machine: dict[str, Any]) -> list[str]:
    """Return the calculation: a time that does not depend on the rows, and a time per row."""
    cells: dict[str, list[str]] = {}
    for rows in by_method.values():
        fewest, most = rows[0], rows[-1]
        assert fewest.seconds is not None  # noqa: S101  # both were measured
        assert most.seconds is not None  # noqa: S101
        per_row = (most.seconds - fewest.seconds) / (most.shape.n - fewest.shape.n)
        fixed = max(0.0, most.seconds - per_row * most.shape.n)
        pool = most.facts["input_bytes"] / most.shape.n * BILLION
        kept = BYTES_PER_ITEM * BILLION
        for what, cell in {
            "measured": f"{fewest.seconds:.3g} s for {fewest.shape.n:,} rows, "
            f"{most.seconds:.3g} s for {most.shape.n:,}: {1e6 * per_row:.2g} microseconds a row "
            f"and {fixed:.2g} s",
            "passes over the pool": f"{most.facts['passes']}",
            f"a billion rows on {machine['cores']} cores": _time(fixed + per_row * BILLION),
            f"on {WORKERS} such workers": _time(fixed + per_row * BILLION / WORKERS),
            "the pool (float32)": f"{pool / 1e9:,.0f} GB",
            f"kept of the items, {BYTES_PER_ITEM} bytes each": f"{kept / 1e9:,.0f} GB in all, "
            f"{kept / WORKERS / 1e9:.2g} GB a worker",
        }.items():
            cells.setdefault(what, []).append(cell)
    head = ["", *(f"`{name}`" for name in by_method)]
    table = [head, ["---"] * len(head), *([what, *row] for what, row in cells.items())]
    return ["| " + " | ".join(line) + " |" for line in table]


def _time(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    minutes, rest = divmod(rest, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
