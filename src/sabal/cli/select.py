"""`sabal select` and `sabal strategies`."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from sabal.api import choose, select_pool
from sabal.cli.parse import parse_columns, parse_engine, parse_options, parse_out_or_url
from sabal.cli.root import app, only_answers_on_stdout
from sabal.core.arrays import to_numpy
from sabal.core.files import is_standard_output
from sabal.core.terminal import waiting
from sabal.errors import FileError, InputError, SabalWarning
from sabal.selection import check_destination
from sabal.strategies.registry import strategies as known_strategies


def complete_strategy(incomplete: str) -> list[str]:
    """Return the strategies whose names begin in this way, for the completion of a shell."""
    return [name for name in known_strategies() if name.startswith(incomplete)]


@app.command()
def select(
    pool: Annotated[
        str,
        typer.Argument(
            help=".npz, .parquet (file or folder) or a folder of .npy, at a path or a URL."
        ),
    ],
    budget: Annotated[int, typer.Option("--budget", "-b", help="How many items to choose.")],
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            "-s",
            help="A name out of `sabal strategies`.",
            autocompletion=complete_strategy,
        ),
    ] = "sabal",
    labeled: Annotated[
        str | None,
        typer.Option(help="A file like the pool with the `features` of what is labelled already."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            help="Write to .csv, .jsonl or .parquet, at a path or a URL; - is standard output.",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="The columns of an array in Parquet files, as features=embedding or "
            "probs=cat,dog. Repeatable."
        ),
    ] = None,
    loss: Annotated[
        str, typer.Option(help="softmax, sigmoid (several labels an item) or squared.")
    ] = "softmax",
    seed: Annotated[int, typer.Option(help="Decides every random draw.")] = 0,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the strategy, as name=value.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(help="What work on the pool may take, such as 1GiB: the rest stays on disk."),
    ] = None,
    scratch: Annotated[
        Path | None, typer.Option(help="Where to unpack what stays on disk [a temporary folder].")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="local, or ray for a pool that is spread over a cluster.")
    ] = "local",
    address: Annotated[
        str | None, typer.Option(help="Of the Ray cluster [a Ray on this machine].")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes on the cluster [one for every CPU].")
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
    from sabal.cli.tables import print_selection
    from sabal.pools import NAMES, read_contents

    options = parse_options(option or [])
    parse_engine(engine, address=address, workers=workers)
    ignored: tuple[str, ...] = ()
    target = None if out is None else parse_out_or_url(out)
    if target is not None:
        check_destination(target)
    to_stdout = target is not None and is_standard_output(target)
    if to_stdout and as_json:
        raise InputError("--json or --out on standard output", "both", "write the batch to a file")
    with warnings.catch_warnings():
        # Warnings are part of the evidence and printed with it.
        warnings.simplefilter("ignore", SabalWarning)
        if engine == "ray":
            what = f"choosing {budget:,} items on the cluster"
            with only_answers_on_stdout(engine), waiting(what):
                selection = select_pool(
                    pool,
                    budget,
                    columns=parse_columns(columns),
                    loss=loss,
                    strategy=strategy,
                    memory=memory,
                    scratch=scratch,
                    labeled_features=_features_in(labeled),
                    random_state=seed,
                    engine=engine,
                    address=address,
                    workers=workers,
                    **options,
                )
        else:
            with waiting(f"reading {pool}"):
                contents = read_contents(
                    pool, memory=memory, scratch=scratch, columns=parse_columns(columns), loss=loss
                )
                items = contents.pool.with_labeled(_features_in(labeled)).check()
                items.used_once = True
                ignored = contents.ignored
                del contents  # it would keep arrays that the pool releases
            with waiting(f"choosing {budget:,} of {items.size:,} items"):
                selection = choose(items, budget, strategy, seed, options)
    if target is not None:
        selection.save(target)
    if as_json:
        print(json.dumps({"items": selection.rows(), "evidence": selection.evidence}))
    else:
        print_selection(selection, target, on_stderr=to_stdout)
        if ignored:
            told = sys.stderr if to_stdout else sys.stdout
            print(f"Not used: {', '.join(ignored)} (a pool has {', '.join(NAMES)})", file=told)


def _features_in(labeled: str | None) -> np.ndarray | None:
    """Read the features from a file of labelled items."""
    from sabal.pools import read_contents

    if labeled is None:
        return None
    items = read_contents(labeled).pool
    if not items.has("features"):
        raise FileError(
            f"`features` in {labeled}",
            " and ".join(items.given()),
            "write the features of the labelled items, as the pool has them",
        )
    return to_numpy(items.features)


@app.command()
def strategies(
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """List the strategies: what each needs, where it comes from and what it costs.

    Example: `sabal strategies --json`
    """
    from sabal.cli.tables import print_strategies, strategy_rows

    if as_json:
        print(json.dumps(strategy_rows()))
    else:
        print_strategies()
