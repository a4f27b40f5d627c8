"""`sabal select` and `sabal strategies`."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Annotated

import typer

from sabal.api import choose
from sabal.cli.parse import parse_options
from sabal.cli.root import app
from sabal.errors import SabalWarning
from sabal.selection import check_destination


@app.command()
def select(
    pool: Annotated[
        Path, typer.Argument(help=".npz, .parquet (file or folder) or a folder of .npy.")
    ],
    budget: Annotated[int, typer.Option("--budget", "-b", help="How many items to choose.")],
    strategy: Annotated[
        str, typer.Option("--strategy", "-s", help="A name out of `sabal strategies`.")
    ] = "sabal",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write to .csv, .jsonl or .parquet.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides every random draw.")] = 0,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the strategy, as name=value.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the batch and its evidence as JSON.")
    ] = False,
) -> None:
    """Choose the next batch to label from a pool file.

    The pool has an array or column `features` and one of `logits`, `probs` or `log_probs`; `id` and
    `label_probs` if you have them.

    Example: `sabal select pool.npz --budget 100 --out batch.csv`
    """
    from sabal.pools import NAMES, read_pool
    from sabal.show import print_selection

    options = parse_options(option or [])
    if out is not None:
        check_destination(out)
    with warnings.catch_warnings():
        # Warnings are part of the evidence and printed with it.
        warnings.simplefilter("ignore", SabalWarning)
        contents = read_pool(pool)
        selection = choose(contents.outputs.check(), budget, strategy, seed, options)
    if out is not None:
        selection.save(out)
    if as_json:
        print(json.dumps({"items": selection.rows(), "evidence": selection.evidence}))
    else:
        print_selection(selection, out)
        if contents.ignored:
            print(f"Not used: {', '.join(contents.ignored)} (a pool has {', '.join(NAMES)})")


@app.command()
def strategies(
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """List the strategies: what each needs, where it comes from and what it costs.

    Example: `sabal strategies --json`
    """
    from sabal.show import print_strategies, strategy_rows

    if as_json:
        print(json.dumps(strategy_rows()))
    else:
        print_strategies()
