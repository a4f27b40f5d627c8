"""`sabal bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sabal.cli.parse import parse_numbers
from sabal.cli.root import app

bench_app = typer.Typer(
    help="Measure how fast Sabal is, and how much memory it takes.", no_args_is_help=True
)
app.add_typer(bench_app, name="bench")


@bench_app.command("strategies")
def bench_strategies(
    sizes: Annotated[str, typer.Option(help="Pool sizes.")] = "10000,50000,200000",
    budgets: Annotated[str, typer.Option(help="Batch sizes.")] = "100,1000,3000",
    dimensions: Annotated[int, typer.Option(help="Width of the features.")] = 512,
    classes: Annotated[int, typer.Option(help="Number of classes.")] = 10,
    strategies: Annotated[
        str | None, typer.Option(help="Names out of `sabal strategies`; all if left out.")
    ] = None,
    peers: Annotated[
        str | None, typer.Option(help="Other libraries to measure, or `none`; all if left out.")
    ] = None,
    limit: Annotated[float, typer.Option(help="Seconds after which a selection is killed.")] = 600,
    envs: Annotated[
        Path | None, typer.Option(help="Where to install other libraries [~/.cache/sabal/bench].")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")] = Path(
        "bench"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Time and peak memory of every strategy, beside the same job in other libraries.

    One selection after another, each in a process of its own. Other libraries are installed into
    environments of their own on first use.

    Example: `sabal bench strategies --sizes 10000 --budgets 100 --peers none`
    """
    from sabal.bench import document, results_table, run_strategies
    from sabal.show import print_table

    rows = run_strategies(
        sizes=parse_numbers(sizes, "--sizes"),
        budgets=parse_numbers(budgets, "--budgets"),
        dimensions=dimensions,
        classes=classes,
        strategies=None if strategies is None else strategies.split(","),
        peers=[] if peers == "none" else None if peers is None else peers.split(","),
        limit=limit,
        envs=envs,
        out=out,
    )
    if as_json:
        print(json.dumps(document(rows)))
    else:
        print_table(results_table(rows))
        print(f"Results and picture in {out}")
