"""`python -m research bench`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from research.cli import app
from sabal.cli.parse import parse_names
from sabal.errors import InputError

bench_app = typer.Typer()
app.add_typer(bench_app, name="bench")


@bench_app.callback(invoke_without_command=True)
def bench(
    context: typer.Context,
    parts: Annotated[
        str, typer.Option(help="What to measure.")
    ] = "kernel,command,baselines,sample,shapes,growth,passes,disk,cluster",
    limit: Annotated[float, typer.Option(help="Seconds after which a selection is killed.")] = 600,
    scale: Annotated[
        str, typer.Option(help="`full`, or `small`: sizes that end within about a minute.")
    ] = "full",
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")] = Path(
        "bench"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Measure the time and memory of selections, and compare them with their goals.

    Everything is measured in one run, each selection in its own process: the default compared with
    one kernel matrix (kernel) and with greedy picks from all items (sample), the memory of `sabal
    select` (command), two baselines (baselines), time, memory and objective compared with BADGE and
    with a pass per pick (shapes), the growth of time (growth), the cost of a pass (passes), a pool
    on disk (disk) and one on a Ray cluster (cluster). Synthetic inputs are kept in the folder for
    the results while they are needed: up to 7 GB.

    A run that was interrupted continues when it is started again with the same settings, code and
    machine; otherwise the contents of the folder are replaced.

    Example: `python -m research bench --scale small`
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    from research.bench.suite import run_suite, sheets
    from sabal.core.terminal import print_table

    try:
        records = run_suite(parts=parse_names(parts, "--parts"), limit=limit, scale=scale, out=out)
    except KeyboardInterrupt:
        print(
            "research: interrupted; every finished measurement is kept: start it again to go on",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    if as_json:
        print(json.dumps(records.document()))
        return
    # The verdict last, where it is visible.
    for sheet in reversed(sheets(records.rows, records.scale)):
        print_table(sheet.table())
    print(f"Results and pictures in {out}")


def _refuse_options(context: typer.Context) -> None:
    """Refuse options of the suite before a subcommand, which would be ignored silently."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            command = context.invoked_subcommand
            raise InputError(
                f"options of `python -m research bench {command}` after its name",
                f"{parameter.opts[0]} before it",
                f"write `python -m research bench {command} {parameter.opts[0]} ...`",
            )


@bench_app.command("fill")
def bench_fill(
    page: Annotated[Path, typer.Argument(help="A page with blocks to fill, docs/scale.md.")],
    results: Annotated[Path, typer.Option(help="The results of the suite.")] = Path(
        "docs/results/suite.json"
    ),
) -> None:
    """Write figures of the suite into a page, between comments with the names of the blocks.

    Example: `python -m research bench fill docs/scale.md`
    """
    from research.bench.suite.scale_blocks import scale_blocks
    from research.study.filled_blocks import fill_blocks

    filled = fill_blocks(page, scale_blocks(results), source="bench")
    print(f"{page}: {', '.join(filled)}")


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
    """Measure time and peak memory of every strategy and of the same jobs in other libraries.

    Selections run one after another, each in its own process. Other libraries are installed into
    separate environments on first use.

    Example: `python -m research bench strategies --sizes 10000 --budgets 100 --peers none`
    """
    from research.bench import document, results_table, run_strategies
    from sabal.core.terminal import print_table

    rows = run_strategies(
        sizes=_parse_numbers(sizes, "--sizes"),
        budgets=_parse_numbers(budgets, "--budgets"),
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


def _parse_numbers(text: str, name: str) -> list[int]:
    """Return the whole numbers in a comma-separated text; `name` is for messages."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"{name} as whole numbers with commas between",
            repr(text),
            "write for instance 100,1000",
        ) from None
