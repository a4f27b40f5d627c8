"""What of the paper was reproduced: a page of ten lines, written from the files of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path

import numpy as np

from research import PROGRAM
from research.reproduce.comparison_tables import change_text, write_table
from research.reproduce.paper_tables import SCALES, TABLES
from research.reproduce.preset import READING_ROWS, SABAL_ROWS
from research.reproduce.scaling import scaled
from research.reproduce.table_sections import TableSection, area_of, sections_of
from research.reproduce.variance_shares import (
    SHARES_FILE,
    SHARES_PAGE,
    VarianceShare,
    unchanged_text,
)
from research.study.csv_lines import read_lines
from sabal.core.files import write_text_whole

SUMMARY_PAGE = "paper.md"
PAIRS = [
    (table.name, preset.dataset)
    for table in TABLES.values()
    if table.name != "cut"
    for preset in table.presets
]
"""The ten tables and data sets of the paper."""

STANDARD_ERRORS = 2.0
"""A difference of more standard errors than these is one; with three seeds that is rough."""

SHORT_NAMES = {row: "IHT" if row.startswith("iht") else "greedy" for row in READING_ROWS}

Sections = Mapping[tuple[str, str], TableSection]


def read_sections(out: Path) -> dict[tuple[str, str], TableSection]:
    """Return the section of every table and data set that has runs, the paper's scale first."""
    found = {}
    for table in TABLES.values():
        for preset in table.presets:
            presets = {scale: scaled(preset, scale) for scale in SCALES}
            sections = sections_of(table, preset, out, presets)
            if sections:
                found[table.name, preset.dataset] = sections[0]
    return found


def paired(section: TableSection, row: str, other: str) -> list[float]:
    """Return the differences of the areas of two rows, seed by seed."""
    areas: dict[str, dict[int, float]] = {row: {}, other: {}}
    for record in section.records:
        if record.strategy in areas:
            areas[record.strategy][record.seed] = area_of(record)
    return [areas[row][seed] - areas[other][seed] for seed in areas[row] if seed in areas[other]]


def relation(differences: Sequence[float]) -> str:
    """Return "ahead", "behind" or "level" for paired differences, by their standard error."""
    mean = float(np.mean(differences))
    error = (
        float(np.std(differences, ddof=1)) / sqrt(len(differences)) if len(differences) > 1 else 0
    )
    if abs(mean) <= STANDARD_ERRORS * error or len(differences) < 2:
        return "level"
    return "ahead" if mean > 0 else "behind"


def write_summary(out: Path) -> Path:
    """Write OUT/paper.md, and the pages of tables without runs."""
    sections = read_sections(out)
    for table in TABLES.values():
        if not (out / f"{table.name}.md").exists():
            write_table(table, [], out)
    curves = {key: each for key, each in sections.items() if key[0] in ("table1", "table2")}
    lines = [
        "# What of the paper was reproduced",
        "",
        f"- {_scope(sections)}",
        *(f"- {line}" for line in _mnist(sections)),
        f"- As printed: {_standing(curves, READING_ROWS[:2])}",
        f"- Corrected, at the printed alpha: {_standing(curves, READING_ROWS[2:])}",
        f"- Sabal's defaults: {_standing(curves, SABAL_ROWS)}",
        f"- Times (Table 3): {_times(sections)}",
        f"- Ablation: {_ablation(sections)}",
        f"- The laptop scale: {_cut(sections)}",
        "- Not reproduced, and why: the printed figures of the data sets that are run at the "
        "laptop scale, whose networks, pools and labels are smaller; and what exactly the authors "
        f"ran, whose code was not available. {_alpha(out)}",
        "",
        f"Ahead and behind mean a paired difference of more than {STANDARD_ERRORS:g} standard "
        "errors over the seeds; with three seeds that is rough. The figures are areas under the "
        "learning curve, in points.",
        "",
        *_overview(sections),
        "",
        f"Written from the files of runs by `{PROGRAM} reproduce TABLE --report`. How it is run, "
        "and what was changed: [The paper's tables, run again](../reproduce.md).",
        "",
    ]
    return write_text_whole(out / SUMMARY_PAGE, "\n".join(lines))


def _scope(sections: Sections) -> str:
    run = [sections[pair] for pair in PAIRS if pair in sections]
    complete = [section for section in run if not section.missing]
    whole = [section.title for section in run if section.scale == "paper"]
    names = f" ({', '.join(whole)})" if whole else ""
    return (
        f"Of the paper's {len(PAIRS)} tables by data set, {len(complete)} are complete, "
        f"{len(run) - len(complete)} partly run and {len(PAIRS) - len(run)} not yet; {len(whole)} "
        f"at the paper's scale{names}, the others at the laptop scale."
    )


def _mnist(sections: Sections) -> list[str]:
    """Compare the figures of the one section at the paper's scale with the printed ones."""
    section = sections.get(("table2", "mnist"))
    if section is None:
        return []
    rows = [row for row in section.rows if row.paper and row.strategy not in READING_ROWS]
    lines = []
    if rows:
        text = ", ".join(
            f"{r.title} {r.ours.mean:.2f} ({r.paper.mean:.2f})" for r in rows if r.paper
        )
        far = max(abs(row.difference or 0.0) for row in rows)
        lines.append(
            f"The baselines on MNIST, ours (printed): {text}; at most {far:.1f} points away. "
            f"{_order(section)}"
        )
    texts = []
    for solver, name in (("greedy", "greedy"), ("iht", "IHT")):
        readings = [section.row(f"{solver}-{reading}") for reading in ("as-printed", "corrected")]
        if all(readings):
            printed, corrected = (row.ours.mean for row in readings if row)
            paper = readings[0].paper.mean if readings[0] and readings[0].paper else float("nan")
            texts.append(
                f"{name} {printed:.2f} as printed and {corrected:.2f} corrected (paper {paper:.2f})"
            )
    if texts:
        lines.append(
            f"The solvers on MNIST: {'; '.join(texts)}. Two readings of each were tried, so that "
            "one of them being close is weak evidence."
        )
    return lines


def _order(section: TableSection) -> str:
    names = ("random", "entropy", "badge")
    found = [row for row in (section.row(name) for name in names) if row]
    if len(found) < len(names):
        return ""
    means = [row.ours.mean for row in found]
    holds = means == sorted(means)
    return f"The order random < entropy < badge {'holds' if holds else 'does not hold'}."


def _standing(sections: Sections, rows: Sequence[str]) -> str:
    """Say on how many data sets each row is ahead of random, and of the best baseline."""
    return "; ".join(_standing_of(sections, row) for row in rows) + "."


def _standing_of(sections: Sections, row: str) -> str:
    random, best = [], []
    for section in sections.values():
        if differences := paired(section, row, "random"):
            random.append((relation(differences), float(np.mean(differences))))
        baseline = _best_baseline(section)
        if baseline and (differences := paired(section, row, baseline)):
            best.append((relation(differences), float(np.mean(differences))))
    name = SHORT_NAMES.get(row, row)
    if not random:
        return f"{name} is not run yet"
    counts = [sum(each == kind for each, _ in random) for kind in ("ahead", "level", "behind")]
    mean, to_best = (float(np.mean([value for _, value in each])) for each in (random, best))
    return (
        f"{name} is ahead of random on {counts[0]}, level on {counts[1]} and behind on {counts[2]} "
        f"of {len(random)} data sets (mean {mean:+.2f}; {to_best:+.2f} to the best baseline)"
    )


def _best_baseline(section: TableSection) -> str | None:
    """Return the best of the baselines that the paper has, by our areas."""
    rows = [row for row in section.rows if row.paper and row.strategy not in READING_ROWS]
    return max(rows, key=lambda row: row.ours.mean).strategy if rows else None


def _times(sections: Sections) -> str:
    """Compare the time of BADGE with those of the solvers, and the same in the paper."""
    texts = []
    for key, section in sections.items():
        badge = section.row("badge")
        rows = [row for row in (section.row(name) for name in READING_ROWS) if row]
        if key[0] != "table3" or badge is None or len(rows) < len(READING_ROWS):
            continue
        ours = [f"{badge.ours.mean / row.ours.mean:.1f}" for row in rows]
        paper = [
            f"{badge.paper.mean / row.paper.mean:.1f}"
            for row in rows[:2]
            if badge.paper and row.paper
        ]
        texts.append(
            f"on {section.title} badge takes {' and '.join(ours[:2])} times as long as greedy and "
            f"IHT as printed, {' and '.join(ours[2:])} times as long as corrected (paper: "
            f"{' and '.join(paper)})"
        )
    return ("; ".join(texts) + ".") if texts else "not run yet."


def _ablation(sections: Sections) -> str:
    texts = []
    for key, section in sections.items():
        if key[0] == "ablation":
            arms = (
                ("as printed", "as-printed"),
                ("corrected", "corrected"),
                ("scale-free", "free"),
            )
            found = [text for name, arm in arms if (text := _arm(section, name, arm))]
            texts += [f"on {section.title} {'; '.join(found)}"] if found else []
    if not texts:
        return "not run yet."
    return f"both terms, by greedy and by IHT: {'; '.join(texts)}."


def _arm(section: TableSection, name: str, arm: str) -> str | None:
    """Compare both terms with the bias only and with the variance only, by either solver."""
    to_bias, to_variance = [], []
    for solver in ("greedy", "iht"):
        bias_only = f"{solver}-{arm.removeprefix('as-')}-bias-only"
        to_bias.append(paired(section, f"{solver}-{arm}", bias_only))
        to_variance.append(paired(section, f"{solver}-{arm}", "variance-only"))
    if not all((*to_bias, *to_variance)):
        return None
    bias, variance = (
        " and ".join(f"{np.mean(each):+.2f}" for each in values)
        for values in (to_bias, to_variance)
    )
    return f"{name} {bias} to the bias alone, {variance} to the variance alone"


def _alpha(out: Path) -> str:
    shares, _ = read_lines(out / SHARES_FILE, VarianceShare)
    if not shares:
        return "What the printed alpha weighs is not measured yet."
    text = unchanged_text(shares)
    return f"{text[0].upper()}{text[1:]} ([what alpha weighs]({SHARES_PAGE}))."


def _cut(sections: Sections) -> str:
    section = sections.get(("cut", "mnist"))
    if section is None:
        return "whether it keeps the order of random, entropy and badge is not run yet."
    figures = ", ".join(f"{row.title} {row.ours.mean:.2f}" for row in section.rows)
    changes = "; ".join(change_text(change) for change in section.changes)
    return f"MNIST cut in the same way ({changes}) has {figures}. {_order(section)}"


def _overview(sections: Sections) -> list[str]:
    """Return a table with a line for each of the paper's tables and data sets."""
    lines = [
        "| table | data set | scale | seeds | best row | greedy, as printed / corrected / paper | "
        "IHT, as printed / corrected / paper |",
        "|---|---|---|--:|---|--:|--:|",
    ]
    for table, dataset in PAIRS:
        section = sections.get((table, dataset))
        if section is None:
            lines.append(f"| {table} | {dataset} | not run yet | | | | |")
            continue
        seeds = max(row.seeds for row in section.rows)
        pick = min if TABLES[table].timed else max
        best = pick(section.rows, key=lambda row: row.ours.mean)
        readings = [_reading_cells(section, solver) for solver in ("greedy", "iht")]
        link = f"[{table}]({table}.md)"
        cells = (link, section.title, section.scale, str(seeds), best.title, *readings)
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _reading_cells(section: TableSection, solver: str) -> str:
    rows = [section.row(f"{solver}-{reading}") for reading in ("as-printed", "corrected")]
    ours = [f"{row.ours.mean:.2f}" if row else "-" for row in rows]
    paper = next((f"{row.paper.mean:.2f}" for row in rows if row and row.paper), "-")
    return " / ".join([*ours, paper])
