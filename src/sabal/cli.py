"""The command line: parse, call, print."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

import sabal
from sabal.api import choose
from sabal.errors import InputError, SabalError, SabalWarning

app = typer.Typer(
    name="sabal",
    help="Sabal chooses what to label next.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; a user's mistake is one line on stderr and exit code 2."""
    try:
        result = app(standalone_mode=False)
    except SabalError as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", code=130)
    except Exception as error:
        # Usage errors of the parser, whichever package it lives in, carry their own message.
        if not hasattr(error, "format_message"):
            raise
        _fail(f"{error.format_message()} Try `sabal --help`.")
    else:
        sys.exit(result if isinstance(result, int) else 0)


def _fail(message: str, code: int = 2) -> None:
    print(f"sabal: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


def _version(asked: bool) -> None:
    if asked:
        print(f"sabal {sabal.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Sabal chooses what to label next: batch active learning by sparse approximation."""


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
    from sabal.pools import read_pool
    from sabal.show import print_selection

    options = dict(_parse_option(text) for text in option or [])
    with warnings.catch_warnings():
        # Warnings are part of the evidence and printed with it.
        warnings.simplefilter("ignore", SabalWarning)
        outputs = read_pool(pool).check()
        selection = choose(outputs, budget, strategy, seed, options)
    if out is not None:
        selection.save(out)
    if as_json:
        print(json.dumps({"items": selection.rows(), "evidence": selection.evidence}))
    else:
        print_selection(selection, out)


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


def _parse_option(text: str) -> tuple[str, Any]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise InputError("--option as name=value", repr(text), "write for instance alpha=2.0")
    try:
        return name.replace("-", "_"), json.loads(value)
    except json.JSONDecodeError:
        # Words need no quotes: uncertainty=entropy.
        return name.replace("-", "_"), value
