"""The command line `python -m research`: the commands that this project is measured with."""

from __future__ import annotations

import typer

from research import PROGRAM
from sabal.cli.root import run

app = typer.Typer(
    name="research",
    help="Reproduce the paper, compare strategies, and measure time and memory.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line."""
    import research.commands  # noqa: F401

    run(app, name="research", prog_name=PROGRAM)
