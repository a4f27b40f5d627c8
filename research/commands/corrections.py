"""`python -m research corrections`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
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
from sabal.core.checks import check_whole
from sabal.errors import FileError

if TYPE_CHECKING:
    from research.study.definitions import StudyTask


@app.command()
def corrections(
    tasks: Annotated[
        str | None,
        typer.Option(help="Names out of `study --list`, with commas between; * stands for any."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of paired runs of each.")] = 5,
    jobs: Annotated[int, typer.Option(help="Runs in parallel, with one thread each.")] = 1,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the NAME.npz files of the data sets.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for corrections.md and study/.")
    ] = Path("docs/results"),
    report: Annotated[
        bool, typer.Option("--report", help="Run nothing; write the page again.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Measure each correction of the paper's algorithms, added one after another.

    Every variant selects a batch from the same states of the study's tasks. Each result is a line
    of OUT/study/corrections.csv: the same command continues where it stopped, and repeats nothing.
    OUT/corrections.md is written from all lines in that file.

    Example: `python -m research corrections --tasks "digits-*" --seeds 3`
    """
    from research.corrections.corrections_page import variant_rows, write_page
    from research.corrections.corrections_terminal import print_variants
    from research.corrections.variant_measurements import CORRECTIONS_FILE, read_current
    from research.study.report_page import FOLDER
    from research.study.tasks import TASKS

    chosen = named(tasks, TASKS, "--tasks")
    check_whole(jobs, "jobs")
    file = out / FOLDER / CORRECTIONS_FILE
    options: dict[str, object] = {"--tasks": tasks}
    failed = {}
    if not report:
        failed = _measure(chosen, file, seeds=seeds, jobs=jobs, data=data)
        options |= {"--seeds": seeds, "--jobs": jobs, "--data": data}
    records = read_current(file, chosen)
    if not records:
        raise FileError(f"lines in {file}", "none", "run `python -m research corrections` first")
    origin = origin_lines("corrections", {**options, "--out": out}, ["--report"] * report)
    write_page(records, origin, out)
    if as_json:
        rows = {n: [asdict(row) for row in each] for n, each in variant_rows(records).items()}
        print(json.dumps({"algorithms": rows, "report": str(out / "corrections.md")}))
    else:
        print_variants(records)
        print(f"Written to {out / 'corrections.md'}")
    if failed:
        raise typer.Exit(1)


def _measure(
    tasks: Sequence[StudyTask], file: Path, *, seeds: int, jobs: int, data: Path | None
) -> dict[str, str]:
    """Measure the states that `file` does not hold yet; return those that failed."""
    from research.corrections.corrections_terminal import variants_progress
    from research.corrections.variant_measurements import measure, open_states, read_current

    states = open_states(tasks, seeds, read_current(file, tasks))
    missing = missing_datasets([task for task, _, _ in states], data)
    available = [state for state in states if state[0].dataset not in missing]
    with interruptible(), variants_progress(len(available)) as on_point:
        failed = measure(available, file.parent, data=data, jobs=jobs, on_point=on_point)
    for name, reason in failed.items():
        say(f"failed: {name}: {reason}")
    return failed
