"""Our figures and the paper's: a section for each data set, as JSON, Markdown and rich tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from research.reproduce.paper_tables import TABLES, PaperTable
from research.reproduce.preset import MeanAndStd, Preset
from research.reproduce.scaling import PresetChange, differences, expected_hours, scaled
from sabal.core.files import write_text_whole
from sabal.errors import FileError

SECTION = "section.json"
"""The file in the folder of a data set with its section of the table."""

HIGHLIGHTED = 2
"""The number of top scores in bold, as in the paper."""


@dataclass(frozen=True, kw_only=True)
class StrategyComparison:
    """Our figure of one strategy and the paper's.

    Attributes
    ----------
    strategy : str
        Name of the strategy.
    seeds : int
        Number of runs.
    ours, paper : MeanAndStd
        Our figure, and the printed one; None if the paper prints none.
    final_accuracy : float or None
        For areas, the mean test accuracy after the last round.
    selection : MeanAndStd or None
        For times, the selection alone, with all outputs of the model available.
    """

    strategy: str
    seeds: int
    ours: MeanAndStd
    paper: MeanAndStd | None
    final_accuracy: float | None = None
    selection: MeanAndStd | None = None

    @property
    def difference(self) -> float | None:
        """Our mean minus the paper's."""
        return None if self.paper is None else self.ours.mean - self.paper.mean


@dataclass(frozen=True, kw_only=True)
class TableSection:
    """The results of one data set.

    Attributes
    ----------
    dataset, title, model, scale, source : str
        The experiment, and where the paper prints its figures.
    rows : list of StrategyComparison
        The strategies.
    changes : list of PresetChange
        What differs from the paper.
    notes : list of str
        What the paper leaves open and how it was decided.
    command : str
        The command that produced it.
    wall_seconds : float
        Wall-clock time of the last start.
    work_seconds : float
        Time of training and selection over all starts and all runs, parallel ones included.
    picture : str or None
        The plot of its curves, relative to the folder of the tables.
    """

    dataset: str
    title: str
    model: str
    scale: str
    source: str
    rows: list[StrategyComparison]
    changes: list[PresetChange]
    notes: list[str]
    command: str
    wall_seconds: float
    work_seconds: float
    picture: str | None = None

    def save(self, folder: Path) -> None:
        """Write the section into the folder of the data set."""
        write_text_whole(folder / SECTION, json.dumps(_record(self), indent=1))


def load_section(path: Path) -> TableSection:
    """Read what `TableSection.save` wrote."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        rows = [_row(row) for row in record["rows"]]
        changes = [PresetChange(**change) for change in record["changes"]]
        return TableSection(**{**record, "rows": rows, "changes": changes})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise FileError(
            f"a section of a table in {path}",
            str(error),
            "run the same `python -m research reproduce` again with --resume",
        ) from None


def _record(section: TableSection) -> dict[str, Any]:
    rows = [{**asdict(row), "difference": row.difference} for row in section.rows]
    return {**asdict(section), "rows": rows}


def _row(record: dict[str, Any]) -> StrategyComparison:
    figures = {
        name: None if record[name] is None else MeanAndStd(**record[name])
        for name in ("ours", "paper", "selection")
    }
    return StrategyComparison(
        **{name: v for name, v in record.items() if name != "difference"} | figures
    )


def write_table(table: PaperTable, out: Path) -> list[TableSection]:
    """Write TABLE.md and TABLE.json from all finished data sets; return their sections."""
    paths = [out / table.name / preset.dataset / SECTION for preset in table.presets]
    sections = [load_section(path) for path in paths if path.is_file()]
    document = {
        "table": table.name,
        "title": table.title,
        "figures": table.figure,
        "sections": [_record(section) for section in sections],
    }
    write_text_whole(out / f"{table.name}.json", json.dumps(document, indent=1))
    write_text_whole(out / f"{table.name}.md", markdown(table, sections))
    return sections


def header(table: PaperTable) -> list[str]:
    """Return the columns of a table."""
    ours, paper = f"{table.figure} (ours)", f"{table.figure} (paper)"
    last = "choosing alone, seconds" if table.timed else "final accuracy"
    return ["strategy", ours, paper, "ours - paper", "seeds", last]


def cells(
    table: PaperTable, rows: Sequence[StrategyComparison], *, bold: tuple[str, str]
) -> list[list[str]]:
    """Return the rows of a table as text, with `bold` around the top two areas of each column."""
    best_ours = set() if table.timed else _top([row.ours for row in rows])
    best_paper = set() if table.timed else _top([row.paper for row in rows])
    lines = []
    for k, row in enumerate(rows):
        several = row.seeds > 1
        last = "" if row.final_accuracy is None else f"{row.final_accuracy:.1%}"
        ours, paper = _text_of(row.ours, several=several), _text_of(row.paper)
        lines.append(
            [
                row.strategy,
                ours.join(bold) if k in best_ours else ours,
                paper.join(bold) if k in best_paper else paper,
                "" if row.difference is None else f"{row.difference:+.2f}",
                str(row.seeds),
                _text_of(row.selection, several=several, digits=3) if table.timed else last,
            ]
        )
    return lines


def _top(figures: Sequence[MeanAndStd | None]) -> set[int]:
    means = {k: figure.mean for k, figure in enumerate(figures) if figure is not None}
    return set(sorted(means, key=lambda k: -means[k])[:HIGHLIGHTED])


def _text_of(figure: MeanAndStd | None, *, several: bool = True, digits: int = 2) -> str:
    """Format mean ± standard deviation, or the mean alone for one seed."""
    if figure is None:
        return ""
    mean = f"{figure.mean:.{digits}f}"
    return f"{mean} ± {figure.std:.{digits}f}" if several else mean


def markdown(table: PaperTable, sections: Sequence[TableSection]) -> str:
    """Return the whole table as a Markdown page."""
    parts = [f"# {table.title}", ""]
    if not table.timed:
        parts += ["Area under the learning curve: trapezoid over labels, over their range.", ""]
    for section in sections:
        parts += _section_lines(table, section)
    return "\n".join(parts).rstrip() + "\n"


def _section_lines(table: PaperTable, section: TableSection) -> list[str]:
    names = header(table)
    rows = cells(table, section.rows, bold=("**", "**"))
    lines = [
        f"## {section.title}: {section.model}, scale {section.scale}",
        "",
        f"| {' | '.join(names)} |",
        f"|---|{'---:|' * (len(names) - 1)}",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        f"The paper's figures are from {section.source}. Mean ± standard deviation over seeds"
        f"{'.' if table.timed else '; the top two are in bold.'}",
        "",
    ]
    if section.picture is not None:
        lines += [f"![Learning curves on {section.title}]({section.picture})", ""]
    lines += [*changes_lines(section.changes), "", "To know:", ""]
    lines += [f"- {note}" for note in section.notes]
    wall, work = duration(section.wall_seconds), duration(section.work_seconds)
    lines += ["", f"    {section.command}", ""]
    return [*lines, f"The last start took {wall}; training and choosing in all runs {work}.", ""]


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
    nothing = "all" if change.field == "pool" else "none"
    before, now = (_text(value, nothing) for value in (change.paper, change.here))
    return f"{change.field}: {before} -> {now}"


def _text(value: Any, nothing: str) -> str:
    if value is None:
        return nothing
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def duration(seconds: float) -> str:
    """Format a time in a suitable unit."""
    for unit, length, digits in (("days", 86_400, 0), ("h", 3_600, 1), ("min", 60, 0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.{digits}f} {unit}"
    return f"{seconds:.1f} s"


def plan_lines(
    table: PaperTable, preset: Preset, scale: str, changes: Sequence[PresetChange]
) -> list[str]:
    """Return lines that announce a run: its changes and its expected time."""
    hours = expected_hours(preset, timed=table.timed)
    expected = "" if hours is None else f", about {duration(3600 * hours)} on two cores"
    return [f"{preset.title}, {preset.model}, scale {scale}{expected}", *changes_lines(changes)]


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
                duration(3600 * (expected_hours(each, timed=table.timed) or 0.0))
                for each in (small, preset)
            ]
            row = [table.name, preset.dataset, changes or "nothing", *hours]
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
        for row in cells(table, section.rows, bold=("[bold]", "[/bold]")):
            grid.add_row(*(Text.from_markup(cell) for cell in row))
        print_table(grid)
        wall, work = duration(section.wall_seconds), duration(section.work_seconds)
        text = [
            f"Figures of the paper: {section.source}",
            *changes_lines(section.changes),
            *(f"To know: {note}" for note in section.notes),
            f"The last start took {wall}; training and choosing in all runs {work}: "
            f"{section.command}",
        ]
        for line in filter(None, text):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
