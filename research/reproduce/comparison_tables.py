"""Our figures and the paper's: a section for each data set, as JSON, Markdown and rich tables."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from research import PROGRAM
from research.reproduce.curve_plots import draw_section
from research.reproduce.paper_tables import SCALES, TABLES, PaperTable, presets_of
from research.reproduce.preset import MeanAndStd, Preset, title_of
from research.reproduce.result_files import RUNS_FILE, digest_of
from research.reproduce.scaling import PresetChange, differences, expected_hours, scaled
from research.reproduce.table_sections import TableSection
from sabal.core.files import write_text_whole

HIGHLIGHTED = 2
"""The number of top scores in bold, as in the paper."""


def write_table(table: PaperTable, sections: Sequence[TableSection], out: Path) -> None:
    """Write TABLE.md, TABLE.json and the plots of the curves."""
    document = {
        "table": table.name,
        "title": table.title,
        "figures": table.figure,
        "sections": [section.document() for section in sections],
    }
    write_text_whole(out / f"{table.name}.json", json.dumps(document, indent=1) + "\n")
    if not table.timed:
        for section in sections:
            points = [point for record in section.records for point in record.points()]
            title = f"{section.title}, {section.model}, scale {section.scale}"
            draw_section(points, title, out / picture_of(table, section))
    write_text_whole(out / f"{table.name}.md", markdown(table, sections))


def picture_of(table: PaperTable, section: TableSection) -> str:
    """Return the path of the plot of the curves, from the folder of the tables."""
    return f"{table.name}/{section.dataset}/curves-{section.scale}.png"


def header(table: PaperTable) -> list[str]:
    """Return the columns of a table."""
    ours, paper = f"{table.figure} (ours)", f"{table.figure} (paper)"
    if table.timed:
        return ["strategy", ours, "choosing alone, seconds", paper, "seeds"]
    return [
        *("strategy", ours, "ours - random", "final accuracy"),
        *(paper, "paper - random", "ours - paper", "seeds"),
    ]


def cells(table: PaperTable, section: TableSection, *, bold: tuple[str, str]) -> list[list[str]]:
    """Return the rows of a table as text, with `bold` around the top two areas of each column.

    Our figures are subtracted from the paper's only at its scale.
    """
    rows = section.rows
    best_ours = set() if table.timed else _top([row.ours for row in rows])
    best_paper = set() if table.timed else _top([row.paper for row in rows])
    chance = section.row("random")
    lines = []
    for row in rows:
        several = row.seeds > 1
        ours, paper = _text_of(row.ours, several=several), _text_of(row.paper)
        ours = ours.join(bold) if row.ours.mean in best_ours else ours
        paper = paper.join(bold) if row.paper and row.paper.mean in best_paper else paper
        if table.timed:
            selection = _text_of(row.selection, several=several, digits=3)
            lines.append([row.title, ours, selection, paper, str(row.seeds)])
            continue
        minus = _text_of(row.minus_random, several=several, signed=True)
        final = "" if row.final_accuracy is None else f"{row.final_accuracy:.1%}"
        printed = ""
        if row is not chance and row.paper and chance and chance.paper:
            printed = f"{row.paper.mean - chance.paper.mean:+.2f}"
        at_paper_scale = section.scale == "paper" and row.difference is not None
        difference = f"{row.difference:+.2f}" if at_paper_scale else ""
        lines.append([row.title, ours, minus, final, paper, printed, difference, str(row.seeds)])
    return lines


def _top(figures: Sequence[MeanAndStd | None]) -> set[float]:
    """Return the highest means; a figure that stands beside two rows counts once."""
    means = {figure.mean for figure in figures if figure is not None}
    return set(sorted(means, reverse=True)[:HIGHLIGHTED])


def _text_of(
    figure: MeanAndStd | None, *, several: bool = True, digits: int = 2, signed: bool = False
) -> str:
    """Format mean ± standard deviation, or the mean alone for one seed."""
    if figure is None:
        return ""
    mean = f"{figure.mean:{'+' if signed else ''}.{digits}f}"
    return f"{mean} ± {figure.std:.{digits}f}" if several else mean


def markdown(table: PaperTable, sections: Sequence[TableSection]) -> str:
    """Return the whole table as a Markdown page."""
    parts = [f"# {table.title}", ""]
    if not table.timed:
        parts += ["Area under the learning curve: trapezoid over labels, over their range.", ""]
    for section in sections:
        parts += _section_lines(table, section)
    if not sections:
        parts.append("Not run yet.")
    return "\n".join(parts).rstrip() + "\n"


def _section_lines(table: PaperTable, section: TableSection) -> list[str]:
    columns = header(table)
    rows = cells(table, section, bold=("**", "**"))
    lines = [
        f"## {section.title}: {section.model}, scale {section.scale}",
        "",
        f"| {' | '.join(columns)} |",
        f"|---|{'---:|' * (len(columns) - 1)}",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        f"The paper's figures are from {section.source}. Mean ± standard deviation over seeds"
        f"{'.' if table.timed else '; the top two are in bold.'}",
        "",
    ]
    if not table.timed:
        lines += [f"![Learning curves on {section.title}]({picture_of(table, section)})", ""]
    if section.missing:
        unfinished = ", ".join(title_of(row) for row in section.missing)
        lines += [f"Not finished, with fewer seeds or none: {unfinished}.", ""]
    lines += [*changes_lines(section.changes), "", "To know:", ""]
    lines += [f"- {note}" for note in section.notes]
    lines += ["", f"    {command_of(table.name, section.dataset, section.scale)}", ""]
    machines = ", ".join(dict.fromkeys(record.machine for record in section.records))
    took = duration(section.seconds)
    return [
        *lines,
        f"Training and choosing took {took} on one core of {machines}. All runs, with their "
        f"options: `{table.name}/{section.dataset}/{RUNS_FILE}`.",
        "",
    ]


def command_of(table: str, dataset: str, scale: str) -> str:
    """Return the command line that runs a section of a table."""
    words = [*PROGRAM.split(), "reproduce", table, "--dataset", dataset]
    return shlex.join([*words, *(["--scale", scale] if scale != "laptop" else [])])


def changes_lines(changes: Sequence[PresetChange]) -> list[str]:
    """Return a line for each difference from the paper."""
    if not changes:
        return ["Nothing is changed from the paper."]
    return [
        "Changed from the paper:",
        "",
        *(f"- {change_text(change)}" for change in changes),
    ]


def change_text(change: PresetChange) -> str:
    """Format a change as `field: paper -> here`."""
    nothing = {"pool": "all", "test": "all", "image": "as it is"}.get(change.field, "none")
    before, now = (_text(value, nothing) for value in (change.paper, change.here))
    return f"{change.field}: {before} -> {now}"


def _text(value: Any, nothing: str) -> str:
    if value is None:
        return nothing
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def duration(seconds: float) -> str:
    """Format a time in a suitable unit."""
    for unit, length, digits in (("days", 86_400, 0), ("h", 3_600, 1), ("min", 60, 0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.{digits}f} {unit}"
    return f"{seconds:.1f} s"


def plan_lines(table: PaperTable, here: Preset, scale: str, paper: Preset) -> list[str]:
    """Return lines that announce a run: its changes and its expected time."""
    hours = expected_hours(here, timed=table.timed, shared=shared_rows(table, here))
    cores = "one core" if table.timed else "two cores"
    expected = "" if hours is None else f", at most about {duration(3600 * hours)} on {cores}"
    return [
        f"{here.title}, {here.model}, scale {scale}{expected}, without selections",
        *changes_lines(differences(paper, here)),
    ]


def shared_rows(table: PaperTable, here: Preset) -> list[str]:
    """Return the rows of the ablation that are runs of Table 1."""
    if table.name != "ablation":
        return []
    (other,) = presets_of(TABLES["table1"], here.dataset)
    others = [scaled(other, scale) for scale in SCALES]
    digests = {digest_of(preset, row) for preset in others for row in preset.strategies}
    return [row for row in here.strategies if digest_of(here, row) in digests]


def scales_markdown() -> str:
    """Return a Markdown table of all presets with the changes and times of both scales."""
    lines = [
        "| table | data set | `--scale laptop` changes | laptop | paper |",
        "|---|---|---|--:|--:|",
    ]
    for table in TABLES.values():
        for preset in table.presets:
            small = scaled(preset, "laptop")
            changes = "; ".join(change_text(each) for each in differences(preset, small))
            hours = [
                expected_hours(each, timed=table.timed, shared=shared_rows(table, each)) or 0.0
                for each in (small, preset)
            ]
            times = [duration(3600 * each) for each in hours]
            row = [table.name, preset.dataset, changes or "nothing", *times]
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def print_sections(table: PaperTable, sections: Sequence[TableSection]) -> None:
    """Print the table in a terminal."""
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    from sabal.core.terminal import print_table

    console = Console()
    for section in sections:
        grid = Grid(title=f"{section.title}: {section.model}, scale {section.scale}")
        for name in header(table):
            grid.add_column(name, justify="left" if name == "strategy" else "right")
        for row in cells(table, section, bold=("[bold]", "[/bold]")):
            grid.add_row(*(Text.from_markup(cell) for cell in row))
        print_table(grid)
        text = [
            f"Figures of the paper: {section.source}",
            *changes_lines(section.changes),
            *(f"To know: {note}" for note in section.notes),
            f"Training and choosing took {duration(section.seconds)} on one core",
        ]
        for line in filter(None, text):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
