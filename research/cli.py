"""`python -m research`: the commands that this project is measured with."""

from __future__ import annotations

import typer

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
    import research.bench.command
    import research.reproduce.command
    import research.study.command  # noqa: F401

    run(app)
