"""Our figures beside the paper's: one section for each data set, as JSON, markdown and rich."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from research.reproduce.presets import TABLES, Figure, Preset, Table
from research.reproduce.scale import Change, differences, expected_hours, scaled
from sabal.core.files import write_text_whole
from sabal.errors import FileError

SECTION = "section.json"
"""In the folder of a data set: what its section of the table says."""

HIGHLIGHTED = 2
"""As the paper has it: the top two scores are in bold."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One strategy: ours and the paper's (None where it prints none).

    final_accuracy: of areas, the mean test accuracy after the last round.
    selection: of times, the choosing alone, with all outputs of the model at hand.
    """

    strategy: str
    seeds: int
    ours: Figure
    paper: Figure | None
    final_accuracy: float | None = None
    selection: Figure | None = None

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return None if self.paper is None else self.ours.mean - self.paper.mean


@dataclass(frozen=True, kw_only=True)
class Section:
    """What came of one data set.

    command: what to type to get it; picture: its curves, from the folder of the tables.
    wall_seconds: of the last start alone; work_seconds: of training and choosing, over all starts
        and all runs, also of those that went side by side.
    """

    dataset: str
    title: str
    model: str
    scale: str
    source: str
    rows: list[Row]
    changes: list[Change]
    notes: list[str]
    command: str
    wall_seconds: float
    work_seconds: float
    picture: str | None = None

    def save(self, folder: Path) -> None:
        """Into the folder of the data set."""
        write_text_whole(folder / SECTION, json.dumps(_record(self), indent=1))


def load_section(path: Path) -> Section:
    """What `save` wrote."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        rows = [_row(row) for row in record["rows"]]
        changes = [Change(**change) for change in record["changes"]]
        return Section(**{**record, "rows": rows, "changes": changes})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise FileError(
            f"a section of a table in {path}",
            str(error),
            "run the same `python -m research reproduce` again with --resume",
        ) from None


def _record(section: Section) -> dict[str, Any]:
    rows = [{**asdict(row), "difference": row.difference} for row in section.rows]
    return {**asdict(section), "rows": rows}


def _row(record: dict[str, Any]) -> Row:
    figures = {
        name: None if record[name] is None else Figure(**record[name])
        for name in ("ours", "paper", "selection")
    }
    return Row(**{name: v for name, v in record.items() if name != "difference"} | figures)


def write_table(table: Table, out: Path) -> list[Section]:
    """TABLE.md and TABLE.json from every data set that is finished; what they say."""
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


def header(table: Table) -> list[str]:
    """The columns of a table."""
    ours, paper = f"{table.figure} (ours)", f"{table.figure} (paper)"
    last = "choosing alone, seconds" if table.timed else "final accuracy"
    return ["strategy", ours, paper, "ours - paper", "seeds", last]


def cells(table: Table, rows: Sequence[Row], *, bold: tuple[str, str]) -> list[list[str]]:
    """The rows of a table as text; `bold` is put around the top two areas, ours and printed."""
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


def _top(figures: Sequence[Figure | None]) -> set[int]:
    means = {k: figure.mean for k, figure in enumerate(figures) if figure is not None}
    return set(sorted(means, key=lambda k: -means[k])[:HIGHLIGHTED])


def _text_of(figure: Figure | None, *, several: bool = True, digits: int = 2) -> str:
    """Mean ± standard deviation; one seed has none."""
    if figure is None:
        return ""
    mean = f"{figure.mean:.{digits}f}"
    return f"{mean} ± {figure.std:.{digits}f}" if several else mean


def markdown(table: Table, sections: Sequence[Section]) -> str:
    """The whole table as a page."""
    parts = [f"# {table.title}", ""]
    if not table.timed:
        parts += ["Area under the learning curve: trapezoid over labels, over their range.", ""]
    for section in sections:
        parts += _section_lines(table, section)
    return "\n".join(parts).rstrip() + "\n"


def _section_lines(table: Table, section: Section) -> list[str]:
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


def changes_lines(changes: Sequence[Change]) -> list[str]:
    """What is not as in the paper: a line each."""
    if not changes:
        return ["Nothing is changed from the paper."]
    return [
        "Changed from the paper:",
        "",
        *(f"- {change_text(change)}" for change in changes),
    ]


def change_text(change: Change) -> str:
    """One change: field: paper -> here."""
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
    """A length of time in the unit that suits it."""
    for unit, length, digits in (("days", 86_400, 0), ("h", 3_600, 1), ("min", 60, 0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.{digits}f} {unit}"
    return f"{seconds:.1f} s"


def plan_lines(table: Table, preset: Preset, scale: str, changes: Sequence[Change]) -> list[str]:
    """What is about to be run: what is changed, and how long it should take."""
    hours = expected_hours(preset, timed=table.timed)
    expected = "" if hours is None else f", about {duration(3600 * hours)} on two cores"
    return [f"{preset.title}, {preset.model}, scale {scale}{expected}", *changes_lines(changes)]


def scales_markdown() -> str:
    """Every preset: what scale laptop changes, and how long either scale takes on two cores."""
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


def print_sections(table: Table, sections: Sequence[Section]) -> None:
    """The table in a terminal."""
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
