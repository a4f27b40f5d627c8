"""`python -m research reproduce`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from research.cli import app
from research.commands.study_shared import interruptible, say
from sabal.cli.parse import parse_names

if TYPE_CHECKING:
    from research.reproduce.table_runs import RunOutcome, TableRun
    from sabal.simulate.curves import Point


@app.command()
def reproduce(
    table: Annotated[str, typer.Argument(help="table1, table2, table3, ablation or cut.")],
    scale: Annotated[
        str, typer.Option(help="paper, or laptop: what two cores can do overnight.")
    ] = "laptop",
    dataset: Annotated[
        str | None, typer.Option(help="One data set of the table [all of them].")
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="Rows to run, with commas between [all of them].")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Number of seeds [that of the paper, or of the scale].")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Runs in parallel, with one thread each.")] = 1,
    minutes: Annotated[
        float | None, typer.Option(help="Start no further run after this many minutes.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with the NAME.npz files of the data sets.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")] = Path(
        "docs/results"
    ),
    work: Annotated[
        Path, typer.Option(help="Folder for runs in progress and the models they share.")
    ] = Path("runs/reproduce"),
    report: Annotated[
        bool, typer.Option("--report", help="Run nothing; write the page again.")
    ] = False,
) -> None:
    """Run the experiments of the paper, and compare our figures with the printed ones.

    Every finished run is a line of OUT/TABLE/DATASET/runs.csv: the same command continues where it
    stopped, on any machine, and repeats nothing. A run in progress continues after its last
    complete round. `--scale laptop` makes the experiments smaller, and reports field by field what
    it changed. OUT/TABLE.md is written from the files of runs alone.

    Example: `python -m research reproduce table2 --dataset mnist --jobs 2`
    """
    from research.reproduce.comparison_tables import print_sections
    from research.reproduce.paper_tables import table_of
    from research.reproduce.reproduction import ReproductionRequest
    from research.reproduce.reproduction import report as write
    from research.reproduce.reproduction import reproduce as run

    request = ReproductionRequest(
        table=table,
        scale=scale,
        dataset=dataset,
        rows=None if rows is None else tuple(parse_names(rows, "--rows")),
        seeds=seeds,
        jobs=jobs,
        minutes=minutes,
        data_dir=data_dir,
        out=out,
        work=work,
    )
    outcome = None
    if report:
        sections = write(request)
    else:
        with interruptible():
            sections, outcome = run(request, watch=_progress, say=say)
    print_sections(table_of(table), sections)
    print(f"Written to {out / table}.md and {out / table}.json")
    if outcome is not None:
        _say_outcome(outcome)
        if outcome.failed:
            raise typer.Exit(1)


def _say_outcome(outcome: RunOutcome) -> None:
    for name, reason in outcome.failed.items():
        say(f"failed: {name}: {reason}")
    if outcome.left:
        say(f"{outcome.left} runs are left: the same command goes on")


@contextmanager
def _progress(runs: Sequence[TableRun]) -> Iterator[Callable[[Point], None]]:
    """Show a bar over all rounds of all runs."""
    from sabal.simulate.terminal_report import progress_bar

    total = sum(1 if run.timed else run.preset.rounds + 1 for run in runs)
    with progress_bar("reproduce", total) as advance:
        yield lambda point: advance(f"{point.strategy}, seed {point.seed}")
