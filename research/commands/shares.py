"""`python -m research shares`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from research.cli import app
from research.commands.study_shared import interruptible, say
from sabal.core.threads import limit_threads
from sabal.errors import SabalWarning


@app.command()
def shares(
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with the NAME.npz files of the data sets.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for variance-shares.md and .csv.")
    ] = Path("docs/results"),
    work: Annotated[
        Path, typer.Option(help="Folder for the first models, shared with `reproduce`.")
    ] = Path("runs/reproduce"),
) -> None:
    """Measure the share of the variance term in the objective at the printed alpha.

    The first model of every preset is trained at the laptop scale, unless `--work` holds it.
    """
    from research.reproduce.variance_shares import measure_shares, shares_table, write_shares

    # As `reproduce` trains them: rounding depends on the number of threads.
    limit_threads(1)
    with interruptible(), warnings.catch_warnings():
        warnings.simplefilter("ignore", SabalWarning)
        found = measure_shares(out, work, None if data_dir is None else str(data_dir), say)
    print("\n".join(shares_table(found)))
    print(f"Written to {write_shares(found, out)}")
