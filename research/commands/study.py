"""`python -m research study`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from research.cli import app
from research.commands.study_shared import (
    interruptible,
    missing_datasets,
    named,
    origin_lines,
    say,
)
from sabal.errors import FileError, InputError

if TYPE_CHECKING:
    from research.study.definitions import StudyTask
    from research.study.findings import Findings
    from research.study.planning import SeedRule, StudyRun
    from research.study.run_records import StudyResults
    from research.study.runs import StudyOutcome


@dataclass(frozen=True)
class _Family:
    name: str


@app.command()
def study(
    tasks: Annotated[
        str | None,
        typer.Option(help="Names out of `--list`, with commas between; * stands for any [all]."),
    ] = None,
    configurations: Annotated[
        str | None, typer.Option(help="In the same way, what is compared [all].")
    ] = None,
    families: Annotated[
        str | None,
        typer.Option(help="In the same way: tabular, tfidf, frozen, networks, diagnostic [all]."),
    ] = None,
    seeds: Annotated[
        str,
        typer.Option(
            help="Number of paired runs of each; auto: 20 where a run takes less than 10 seconds, "
            "else 5."
        ),
    ] = "auto",
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="K/N",
            help="Only the K-th of N parts, so that N commands share the runs and the file.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Runs in parallel, with one thread each.")] = 1,
    minutes: Annotated[
        float | None, typer.Option(help="Start no further run after this many minutes.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the NAME.npz files of the data sets.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for study.md and study/.")
    ] = Path("docs/results"),
    fill: Annotated[
        list[Path] | None,
        typer.Option(help="A page whose blocks are written from the results. Repeatable."),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Run nothing; write the report of these again.")
    ] = False,
    show_list: Annotated[
        bool, typer.Option("--list", help="Print tasks and configurations, and the runs done.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Compare `sabal`, candidates for its defaults and the baselines over many tasks.

    Every finished run is a line of OUT/study/runs.csv: the same command continues where it stopped,
    and repeats nothing. The report OUT/study.md and its plots cover all runs in that file; with
    `--report`, those of the named tasks and configurations. A task whose data set is unavailable
    is left out, and reported. Pages with a block of the study (README.md, docs/strategies.md) are
    brought up to date with `--fill`.

    Example: `python -m research study --tasks "digits-*" --configurations margin,sabal --seeds 3`
    """
    from research.study.configurations import CONFIGURATIONS
    from research.study.filled_blocks import blocks_of, fill_blocks
    from research.study.planning import open_runs, parse_shard, planned, shard_of
    from research.study.report_page import FOLDER, ReportScope, write_report
    from research.study.run_records import RUNS_FILE, read_results
    from research.study.tasks import HELD_OUT, TASKS
    from research.study.terminal_tables import listed, print_listed

    if report and show_list:
        raise InputError("--report or --list", "both", "leave one of them out")
    chosen_tasks = _tasks_of(named(tasks, TASKS, "--tasks"), families)
    part = parse_shard(shard or "1/1")
    compared = named(configurations, CONFIGURATIONS, "--configurations")
    file = out / FOLDER / RUNS_FILE
    results = read_results(file, TASKS, CONFIGURATIONS)
    rule = _seed_rule(seeds, results)
    if show_list:
        lists = listed(chosen_tasks, compared, rule, results, HELD_OUT)
        print(json.dumps(lists)) if as_json else print_listed(lists)
        return
    outcome = None
    options: dict[str, object] = {"--tasks": tasks, "--families": families}
    options |= {"--configurations": configurations}
    if not report:
        todo = open_runs(shard_of(planned(chosen_tasks, compared, rule), *part), results)
        outcome = _run(todo, file.parent, data, jobs, minutes)
        results = read_results(file, TASKS, CONFIGURATIONS)
        chosen_tasks, compared = list(TASKS), list(CONFIGURATIONS)
        options |= {
            "--seeds": seeds,
            "--shard": shard,
            "--jobs": jobs,
            "--minutes": minutes,
            "--data": data,
        }
    if not results.runs:
        raise FileError(f"finished runs in {file}", "none", "run `python -m research study` first")
    origin = origin_lines("study", {**options, "--out": out}, ["--report"] * report)
    scope = ReportScope(
        tasks=chosen_tasks, configurations=compared, held_out=HELD_OUT, origin=origin
    )
    findings = write_report(results, scope, out)
    for page in fill or []:
        fill_blocks(page, blocks_of(findings))
    _print(findings, out / "study.md", as_json)
    if outcome is not None and outcome.failed:
        raise typer.Exit(1)


def _tasks_of(tasks: list[StudyTask], families: str | None) -> list[StudyTask]:
    """Return the tasks of the families that are named."""
    from research.study.definitions import FAMILIES

    kept = {each.name for each in named(families, list(map(_Family, FAMILIES)), "--families")}
    return [task for task in tasks if task.family in kept]


def _seed_rule(text: str, results: StudyResults) -> SeedRule:
    """Return the number of seeds that --seeds asks for."""
    from research.study.configurations import CONFIGURATIONS
    from research.study.planning import fixed_seeds, seeds_by_time
    from research.study.tasks import TASKS

    if text == "auto":
        return seeds_by_time(TASKS, CONFIGURATIONS, results)
    if not text.isdecimal():
        raise InputError("--seeds as a number or auto", repr(text), "give one of them")
    return fixed_seeds(int(text))


def _print(findings: Findings, page: Path, as_json: bool) -> None:
    """Print the findings, after a warning about lines that were not used."""
    from research.study.terminal_tables import print_findings

    if findings.stale or findings.bad:
        say(f"{sum(findings.stale.values())} stale and {findings.bad} bad lines are not used")
    if as_json:
        print(json.dumps({**findings.document(), "report": str(page)}))
    else:
        print_findings(findings)
        print(f"Written to {page}")


def _run(
    todo: Sequence[StudyRun], folder: Path, data: Path | None, jobs: int, minutes: float | None
) -> StudyOutcome:
    """Do the runs whose data is available, and report the others."""
    from research.study.runs import run_study
    from research.study.terminal_tables import study_progress

    missing = missing_datasets([run.task for run in todo], data)
    able = [run for run in todo if run.task.dataset not in missing]
    with interruptible(), study_progress(able) as on_round:
        outcome = run_study(able, folder, data=data, jobs=jobs, minutes=minutes, on_round=on_round)
    for name, reason in outcome.failed.items():
        say(f"failed: {name}: {reason}")
    if outcome.left:
        say(f"{outcome.left} runs are left: the same command goes on")
    return outcome
