"""The report of a study, made from its runs alone: study.md, study/tasks.md and their plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from research.study.analysis import ConfigurationRanking, TaskTable
from research.study.configurations import CHANCE, DEFAULT
from research.study.definitions import FAMILIES, HARNESS, Configuration, StudyTask
from research.study.findings import Findings, find
from research.study.report_lines import (
    as_table,
    batch_lines,
    difference_text,
    effect_lines,
    verdict_lines,
)
from research.study.run_records import RUNS_FILE, StudyResults
from research.study.scope_lines import (
    behind_lines,
    goal_lines,
    lead_lines,
    oracle_lines,
    rank_lines,
    saved_lines,
)
from research.study.study_plots import draw_ranks, draw_saved, draw_small_curves, draw_wins
from sabal.core.files import make_folder, write_text_whole

FOLDER = "study"
"""The folder next to study.md with the runs, the tables of the tasks and the plots."""

CURVES = ("baseline", "sabal", "oracle")
"""Roles whose learning curves are drawn."""


@dataclass(frozen=True, kw_only=True)
class ReportScope:
    """The scope of a report.

    Parameters
    ----------
    tasks, configurations : sequence
        What is reported.
    held_out : sequence of str
        Names of tasks that are reported but not ranked.
    origin : sequence of str
        The command, then lines that say when and on which machine it was run.
    """

    tasks: Sequence[StudyTask]
    configurations: Sequence[Configuration]
    held_out: Sequence[str]
    origin: Sequence[str] = field(default_factory=tuple)


def write_report(results: StudyResults, scope: ReportScope, out: Path) -> Findings:
    """Write OUT/study.md, OUT/study/tasks.md and the plots; return the findings."""
    findings = find(results, scope.tasks, scope.configurations, scope.held_out)
    folder = out / FOLDER
    make_folder(folder)
    plots = _draw(results, findings, scope, folder)
    write_text_whole(folder / "tasks.md", _tasks_page(findings, scope))
    write_text_whole(out / "study.md", _page(findings, scope, plots))
    return findings


def _draw(results: StudyResults, findings: Findings, scope: ReportScope, folder: Path) -> set[str]:
    """Draw the plots that there is data for; return their names."""
    drawn = set()
    for name, ranking, title in (
        ("ranks", findings.known, "Baselines and sabal"),
        ("candidates", findings.candidates, "With the candidates"),
    ):
        if ranking.places:
            draw_ranks(ranking, title, folder / f"{name}.png")
            drawn.add(name)
    if findings.names:
        title = f"Tasks (of {len(findings.ranked)}) on which the row beats the column"
        draw_wins(findings.names, findings.wins, title, folder / "wins.png")
        drawn.add("wins")
    run = {table.task for table in findings.tables}
    tasks = [task for task in scope.tasks if task.name in run]
    known = [each for each in scope.configurations if each.role in CURVES]
    for family in FAMILIES:
        shown = [task for task in tasks if task.family == family]
        if shown:
            name = f"curves-{family}"
            draw_small_curves(results, shown, known, scope.held_out, folder / f"{name}.png")
            drawn.add(name)
    if findings.scopes:
        draw_saved(findings.scopes, folder / "saved.png")
        drawn.add("saved")
    return drawn


def _page(findings: Findings, scope: ReportScope, plots: set[str]) -> str:
    lines = [
        "# A study of strategies over many tasks",
        "",
        *_code(scope.origin[:1]),
        *scope.origin[1:],
        "",
        f"{findings.runs:,} runs of [{RUNS_FILE}]({FOLDER}/{RUNS_FILE}), harness {HARNESS}. Areas "
        "under the learning curve, in percent; differences are paired by seed, with a 95 % "
        "interval (Student's t). A difference is significant, and bold, if its interval excludes "
        "zero; only what says so allows for several comparisons. Task by task: "
        f"[tasks.md]({FOLDER}/tasks.md).",
        "",
        *_unused_lines(findings),
        "## In short",
        "",
        *verdict_lines(findings),
        "## Labels saved",
        "",
        *saved_lines(findings.scopes),
        *_plot("saved", "Share of labels needed, by strategy", plots),
        *_scope_sections(findings),
        "## Mean ranks",
        "",
        *_ranking_lines(findings.known, findings),
        *_plot("ranks", "Mean ranks as bars", plots),
        *batch_lines(findings),
        "## The paper's method, printed and corrected",
        "",
        "With the settings printed in the paper for LeNet-5 on MNIST, on the tasks where it was "
        "run. In every row exactly b items are labelled: as printed, the algorithms sometimes "
        "request fewer. Correction by correction: `python -m research corrections`.",
        "",
        *_ranking_lines(findings.paper, findings),
        *effect_lines(findings),
        "## Candidates for the defaults",
        "",
        *_ranking_lines(findings.candidates, findings),
        *_plot("candidates", "Mean ranks with the candidates", plots),
        "## Pairwise wins",
        "",
        "Number of tasks on which the row is significantly better than the column. Configurations "
        "that need a posterior, small batches or much time were not run on every task.",
        "",
        *_wins_lines(findings, scope),
        *_plot("wins", "Pairwise wins, the candidates included", plots),
        "## Where choosing helps",
        "",
        *_helped_lines(findings, findings.ranked),
        *_aside_lines(findings),
        "## Learning curves",
        "",
        *(
            line
            for family, title in FAMILIES.items()
            for line in _plot(f"curves-{family}", f"Learning curves: {title}", plots)
        ),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _scope_sections(findings: Findings) -> list[str]:
    """Return goals, ranks, leads and the oracle, for all tasks and parts of them."""
    scopes = findings.scopes
    if not scopes:
        return []
    return [
        "## Goals",
        "",
        f"What `{DEFAULT}` with no options should reach, and what was measured.",
        "",
        *goal_lines(findings.goals),
        "## By family of tasks",
        "",
        *rank_lines(scopes),
        *lead_lines(scopes),
        *behind_lines(scopes),
        *oracle_lines(scopes),
    ]


def _aside_lines(findings: Findings) -> list[str]:
    """Return the tasks that are reported and not ranked."""
    return [
        "## Held-out tasks",
        "",
        "Their data sets are not part of any ranking or count above.",
        "",
        *_helped_lines(findings, findings.held_out),
        *(line for table in findings.held_out for line in _task_lines(table, "###")),
        "## Diagnostic tasks",
        "",
        "Made-up data of Werner et al. (2024), which show how a strategy fails. They are not part "
        "of any ranking or count above.",
        "",
        *(line for table in findings.diagnostic for line in _task_lines(table, "###")),
    ]


def _tasks_page(findings: Findings, scope: ReportScope) -> str:
    run = {table.task for table in findings.tables}
    header = [
        "task",
        "family",
        "data",
        "learner",
        "first",
        "batch",
        "rounds",
        "variant",
        "held out",
    ]
    rows = [
        [
            task.name,
            task.family,
            task.dataset,
            task.model,
            f"{task.initial}{' per class' if task.first == 'per-class' else ''}",
            str(task.batch),
            str(task.rounds),
            task.variant,
            "yes" if task.name in scope.held_out else "",
        ]
        for task in scope.tasks
        if task.name in run
    ]
    lines = [
        "# The tasks of the study, one by one",
        "",
        *_code(scope.origin[:1]),
        "Mean areas in percent. The best baseline is the one with the largest mean area on the "
        "task; as it is chosen after the fact, the comparison favours the baselines.",
        "",
        *as_table([*header, "held out"], rows),
        *(line for table in findings.tables for line in _task_lines(table, "##")),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _task_lines(table: TaskTable, heading: str) -> list[str]:
    header = [
        "configuration",
        "seeds",
        "area",
        "final",
        f"to {DEFAULT}",
        f"to {table.best or 'the best baseline'}",
        "seconds to choose",
    ]
    rows = [
        [
            row.configuration,
            str(row.seeds),
            f"{row.auc:.2f}",
            f"{row.final:.1f} %",
            difference_text(row.to_default),
            difference_text(row.to_best),
            f"{row.select_seconds:.2f}",
        ]
        for row in table.rows
    ]
    return [f"{heading} {table.task}", "", *as_table(header, rows)]


def _ranking_lines(ranking: ConfigurationRanking, findings: Findings) -> list[str]:
    if not ranking.places:
        return ["Nothing to rank yet: no task has a seed that all of them share.", ""]
    seeds = sorted(set(ranking.tasks.values()))
    many = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    header = ["configuration", "mean rank", "95 % interval", f"area to {DEFAULT}", "seconds"]
    rows = [
        [
            place.configuration,
            f"{place.rank:.2f}",
            "" if place.low is None else f"{place.low:.2f} to {place.high:.2f}",
            difference_text(place.to_default),
            f"{_seconds(place.configuration, findings):.2f}",
        ]
        for place in ranking.places
    ]
    return [
        f"By mean area over the seeds that all of them have, on {len(ranking.tasks)} tasks with "
        f"{many} seed{'' if many == '1' else 's'} each; 1 is best. Intervals are over tasks; "
        "seconds are of choosing, in a whole run.",
        "",
        *as_table(header, rows),
    ]


def _seconds(configuration: str, findings: Findings) -> float:
    rows = [table.row(configuration) for table in findings.ranked]
    found = [row.select_seconds for row in rows if row is not None]
    return sum(found) / len(found) if found else 0.0


def _wins_lines(findings: Findings, scope: ReportScope) -> list[str]:
    candidates = {each.name for each in scope.configurations if each.role == "candidate"}
    shown = [k for k, name in enumerate(findings.names) if name not in candidates]
    header = ["", *(findings.names[k] for k in shown)]
    rows = [
        [findings.names[i], *("" if i == j else str(findings.wins[i, j]) for j in shown)]
        for i in shown
    ]
    return as_table(header, rows) if rows else ["Nothing to compare yet.", ""]


def _helped_lines(findings: Findings, tables: Sequence[TaskTable]) -> list[str]:
    """Return the lines on which tasks anything beats random, and whether `sabal` does."""
    helped = findings.helped(tables)
    own = [table for table in helped if DEFAULT in table.winners]
    rows = []
    for table in tables:
        row = table.row(DEFAULT)
        rows.append(
            [
                table.task,
                ", ".join(table.winners) or "none",
                "yes" if DEFAULT in table.winners else "no",
                difference_text(None if row is None else row.to_chance),
            ]
        )
    return [
        f"Something is significantly better than random on {len(helped)} of {len(tables)} tasks, "
        f"`{DEFAULT}` on {len(own)} of these. The candidates are left aside.",
        "",
        *as_table(["task", f"better than {CHANCE}", DEFAULT, f"{DEFAULT} to {CHANCE}"], rows),
    ]


def _unused_lines(findings: Findings) -> list[str]:
    lines = []
    if findings.unranked:
        lines += [f"Run on too few tasks to be ranked: {', '.join(findings.unranked)}."]
    if findings.stale:
        count = sum(findings.stale.values())
        names = ", ".join(f"{name} ({many})" for name, many in sorted(findings.stale.items()))
        lines += [f"Not used, since their definition or data has changed: {count} runs: {names}."]
    if findings.bad:
        lines += [f"Not used, since they cannot be read: {findings.bad} lines."]
    return [*lines, ""] if lines else []


def _plot(name: str, text: str, plots: set[str]) -> list[str]:
    return [f"![{text}]({FOLDER}/{name}.png)", ""] if name in plots else []


def _code(lines: Sequence[str]) -> list[str]:
    return [*(f"    {line}" for line in lines), ""] if lines else []
