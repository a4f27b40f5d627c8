"""`python -m research stopping`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from research.cli import app


@app.command()
def stopping(
    runs: Annotated[Path, typer.Option(help="The runs.csv of a study.")] = Path(
        "docs/results/study/runs.csv"
    ),
    every: Annotated[int, typer.Option(help="Use one run in so many.", min=1)] = 1,
) -> None:
    """Say how often the advice when to stop would have been right, on the curves of the study.

    Example: `python -m research stopping`
    """
    from research.study.stop_advice import advice_record, record_lines

    for line in record_lines(advice_record(runs, every)):
        print(line)
