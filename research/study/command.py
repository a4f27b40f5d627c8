"""`python -m research study`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

import typer

from research.cli import app
from sabal.cli.parse import parse_names
from sabal.core.checks import check_whole
from sabal.errors import FileError, InputError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from research.study.definitions import Task
    from research.study.runs import Outcome, Run


class _Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)


@app.command()
def study(
    tasks: Annotated[
        str | None,
        typer.Option(help="Names out of `--list`, with commas between; * stands for any [all]."),
    ] = None,
    configurations: Annotated[
        str | None, typer.Option(help="In the same way, what is compared [all].")
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many times each, with paired draws.")] = 5,
    jobs: Annotated[int, typer.Option(help="Runs side by side, with one thread each.")] = 1,
    minutes: Annotated[
        float | None, typer.Option(help="Begin no further run after so many minutes.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Where NAME.npz files of the data sets are.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for study.md and study/.")
    ] = Path("docs/results"),
    report: Annotated[
        bool, typer.Option("--report", help="Run nothing; write the report of these again.")
    ] = False,
    show_list: Annotated[
        bool, typer.Option("--list", help="Print tasks and configurations, and the runs done.")
    ] = False,
    corrections: Annotated[
        bool,
        typer.Option(
            "--corrections", help="Measure each correction of the paper's algorithms instead."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Compare `sabal`, candidates for its defaults and the baselines over many tasks.

    Every finished run is a line of OUT/study/runs.csv: the same command goes on where it stopped,
    and repeats nothing. The report OUT/study.md and its pictures are of all runs in that file; with
    `--report`, of the tasks and configurations that are named. A data set that cannot be had is
    left out, and said to be.

    With `--corrections` every correction of the paper's algorithms is added by itself, on states of
    these tasks: OUT/corrections.md, in the same way.

    Example: `python -m research study --tasks "digits-*" --configurations random,margin,sabal --seeds 3`
    """
    from research.study.configurations import CONFIGURATIONS
    from research.study.records import FILE, read_results
    from research.study.report import FOLDER, Scope, write_report
    from research.study.runs import open_runs, planned
    from research.study.show import listed, print_findings, print_listed
    from research.study.tasks import HELD_OUT, TASKS

    if report and show_list:
        raise InputError("--report or --list", "both", "leave one of them out")
    chosen_tasks = _chosen(tasks, TASKS, "--tasks")
    if corrections:
        unused = {"--configurations": configurations, "--minutes": minutes, "--list": show_list}
        for flag, value in unused.items():
            if value is not None and value is not False:
                raise InputError(f"--corrections without {flag}", "both", "leave one of them out")
        _correct(chosen_tasks, tasks, seeds, jobs, data, out, report, as_json)
        return
    compared = _chosen(configurations, CONFIGURATIONS, "--configurations")
    file = out / FOLDER / FILE
    results = read_results(file, TASKS, CONFIGURATIONS)
    if show_list:
        lists = listed(chosen_tasks, compared, seeds, results, HELD_OUT)
        print(json.dumps(lists)) if as_json else print_listed(lists)
        return
    outcome = None
    if not report:
        todo = open_runs(planned(chosen_tasks, compared, seeds), results)
        outcome = _run(todo, file.parent, data, jobs, minutes)
        results = read_results(file, TASKS, CONFIGURATIONS)
        chosen_tasks, compared = list(TASKS), list(CONFIGURATIONS)
    if not results.runs:
        raise FileError(f"finished runs in {file}", "none", "run `python -m research study` first")
    words: dict[str, object] = {"--tasks": tasks, "--configurations": configurations}
    if not report:
        words |= {"--seeds": seeds, "--jobs": jobs, "--minutes": minutes, "--data": data}
    told = _told({**words, "--out": out}, ["--report"] * report)
    scope = Scope(tasks=chosen_tasks, configurations=compared, held_out=HELD_OUT, told=told)
    findings = write_report(results, scope, out)
    if findings.stale or findings.bad:
        _say(f"{sum(findings.stale.values())} stale and {findings.bad} bad lines are not used")
    if as_json:
        print(json.dumps({**findings.document(), "report": str(out / "study.md")}))
    else:
        print_findings(findings)
        print(f"Written to {out / 'study.md'}")
    if outcome is not None and outcome.failed:
        raise typer.Exit(1)


def _correct(
    tasks: Sequence[Task],
    named: str | None,
    seeds: int,
    jobs: int,
    data: Path | None,
    out: Path,
    report: bool,
    as_json: bool,
) -> None:
    """The same for the corrections: measure what is open, and write their page."""
    from research.corrections.measure import FILE, measure, open_states, read_current
    from research.corrections.page import rung_rows, write_page
    from research.corrections.show import print_rungs, progress
    from research.study.report import FOLDER

    check_whole(jobs, "jobs")
    file = out / FOLDER / FILE
    failed: dict[str, str] = {}
    words: dict[str, object] = {"--tasks": named}
    if not report:
        states = open_states(tasks, seeds, read_current(file, tasks))
        missing = _missing([task for task, _, _ in states], data)
        able = [state for state in states if state[0].dataset not in missing]
        with _kept(), progress(len(able)) as on_step:
            failed = measure(able, file.parent, data=data, jobs=jobs, on_step=on_step)
        for name, reason in failed.items():
            _say(f"failed: {name}: {reason}")
        words |= {"--seeds": seeds, "--jobs": jobs, "--data": data}
    lines = read_current(file, tasks)
    if not lines:
        raise FileError(
            f"lines in {file}", "none", "run `python -m research study --corrections` first"
        )
    flags = ["--corrections", *["--report"] * report]
    write_page(lines, _told({**words, "--out": out}, flags), out)
    if as_json:
        rungs = {n: [asdict(row) for row in rows] for n, rows in rung_rows(lines).items()}
        print(json.dumps({"algorithms": rungs, "report": str(out / "corrections.md")}))
    else:
        print_rungs(lines)
        print(f"Written to {out / 'corrections.md'}")
    if failed:
        raise typer.Exit(1)


def _run(
    todo: Sequence[Run], folder: Path, data: Path | None, jobs: int, minutes: float | None
) -> Outcome:
    """Do what can be done, and say what cannot."""
    from research.study.runs import run_study
    from research.study.show import progress

    missing = _missing([run.task for run in todo], data)
    able = [run for run in todo if run.task.dataset not in missing]
    with _kept(), progress(able) as on_round:
        outcome = run_study(able, folder, data=data, jobs=jobs, minutes=minutes, on_round=on_round)
    for name, reason in outcome.failed.items():
        _say(f"failed: {name}: {reason}")
    if outcome.left:
        _say(f"{outcome.left} runs are left: the same command goes on")
    return outcome


def _missing(tasks: Sequence[Task], data: Path | None) -> dict[str, str]:
    """Data sets of these tasks that cannot be had, which is said; refuses when there are none."""
    from research.study.data import missing_data

    missing = missing_data([task.dataset for task in tasks], data)
    if tasks and all(task.dataset in missing for task in tasks):
        raise FileError(
            "the data of any of these tasks",
            "; ".join(f"none for {name} ({reason})" for name, reason in missing.items()),
            "name a folder that has them with --data",
        )
    for name, reason in missing.items():
        left_out = dict.fromkeys(task.name for task in tasks if task.dataset == name)
        _say(f"left out, without {name}: {', '.join(left_out)} ({reason})")
    return missing


@contextmanager
def _kept() -> Iterator[None]:
    """Ctrl+C loses nothing that is finished."""
    try:
        yield
    except KeyboardInterrupt:
        _say("interrupted; every finished run is kept: the same command goes on")
        raise typer.Exit(130) from None


def _chosen(text: str | None, known: Sequence[N], flag: str) -> list[N]:
    """Those that are named, or meant by a pattern, in the order that they are in."""
    if text is None:
        return list(known)
    names = [each.name for each in known]
    meant: set[str] = set()
    for pattern in parse_names(text, flag):
        found = [name for name in names if fnmatchcase(name, pattern)]
        if not found:
            raise UnknownNameError(
                f"{flag} out of {', '.join(names)}", repr(pattern), did_you_mean(pattern, names)
            )
        meant.update(found)
    return [each for each in known if each.name in meant]


def _told(words: dict[str, object], flags: list[str]) -> tuple[str, ...]:
    """The command, and when and with what it was given."""
    from research.bench.machine import machine_facts

    given = ["python", "-m", "research", "study", *flags]
    for flag, value in words.items():
        given += [] if value is None else [flag, str(value)]
    facts = machine_facts()
    libraries = ", ".join(f"{name} {found}" for name, found in facts["libraries"].items())
    return (
        shlex.join(given),
        f"Written on {facts['date']} with Python {facts['python']}, {libraries}, on "
        f"{facts['cores']} cores of {facts['processor'] or 'an unnamed processor'}.",
    )


def _say(line: str) -> None:
    print(f"sabal: {' '.join(line.split())}", file=sys.stderr)
