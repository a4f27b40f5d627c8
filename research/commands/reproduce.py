"""`python -m research reproduce`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from research.cli import app
from sabal.cli.root import resumable
from sabal.errors import SabalWarning


@app.command()
def reproduce(
    table: Annotated[str, typer.Argument(help="table1, table2, table3 or ablation.")],
    scale: Annotated[
        str, typer.Option(help="paper, or laptop: what two cores can do overnight.")
    ] = "paper",
    dataset: Annotated[
        str | None, typer.Option(help="One data set of the table [all of them].")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue with what the folder holds.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(help="Number of seeds [that of the paper, or of the scale].")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Runs in parallel.")] = 1,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with the NAME.npz files of the data sets.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")] = Path(
        "reproduced"
    ),
) -> None:
    """Run the experiments of the paper, and compare our figures with the printed ones.

    `--scale laptop` makes them smaller, and reports field by field what it changed. With `--resume`
    a run that was stopped continues; nothing is done twice.

    Example: `python -m research reproduce table2 --dataset mnist --jobs 2 --out reproduced`
    """
    from research.reproduce.comparison_tables import print_sections
    from research.reproduce.paper_tables import table_of
    from research.reproduce.reproduction import ReproductionRequest
    from research.reproduce.reproduction import reproduce as run
    from sabal.simulate.terminal_report import progress

    request = ReproductionRequest(
        table=table,
        scale=scale,
        dataset=dataset,
        seeds=seeds,
        jobs=jobs,
        data_dir=data_dir,
        out=out,
        resume=resume,
    )
    with (
        resumable("the same command with --resume goes on", name="research"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", SabalWarning)
        sections = run(request, watch=progress, say=print)
    print_sections(table_of(table), sections)
    print(f"Written to {out / table}.md and {out / table}.json")
