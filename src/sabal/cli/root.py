"""The root of the command line: the app of all commands, and how errors are reported."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from typing import Annotated, Any

import typer

import sabal
from sabal.core.files import STANDARD_OUTPUT, STDOUT, cannot_write
from sabal.core.interrupts import INTERRUPTED
from sabal.errors import SabalError

CANNOT_PRINT = {errno.EPIPE, errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO}
"""Why printing fails: with one of these, and without the name of a file."""

app = typer.Typer(
    name="sabal",
    help="Sabal chooses what to label next.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; an error of the user is one line on stderr and exit code 2."""
    run(app)


def run(app: typer.Typer, *, name: str = "sabal", prog_name: str | None = None) -> None:
    """Run the commands of `app`, and end the process with an exit code.

    `name` begins a line on standard error; `prog_name` is the program as it is typed, for hints.
    """
    try:
        result = app(standalone_mode=False, prog_name=prog_name)
    except SabalError as error:
        _fail(str(error), name=name)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", INTERRUPTED, name=name)
    except OSError as error:
        if error.errno not in CANNOT_PRINT or error.filename is not None:
            raise
        _cannot_print(error, name)
    except Exception as error:
        # Usage errors of the parser, whichever package it lives in, carry their own message.
        if not hasattr(error, "format_message"):
            raise
        if not error.format_message():
            sys.exit(2)  # `sabal` alone: its help has been printed
        context = getattr(error, "ctx", None)
        command = context.command_path if context else name
        _fail(f"{error.format_message().rstrip('.')}; try `{command} --help`", name=name)
    else:
        if result == INTERRUPTED:
            # The parser turns an interrupt into this exit code without a message.
            _fail("interrupted", INTERRUPTED, name=name)
        _flush(name)
        sys.exit(result if isinstance(result, int) else 0)


@contextmanager
def resumable(how: str, *, name: str = "sabal") -> Iterator[None]:
    """Say how to continue a long command that is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        _fail(f"interrupted; every finished round is kept: {how}", INTERRUPTED, name=name)


def only_answers_on_stdout(engine: str) -> AbstractContextManager[Any]:
    """Keep the messages of Ray, which reports dying workers there, off standard output."""
    return redirect_stdout(sys.stderr) if engine == "ray" else nullcontext()


def _flush(name: str) -> None:
    """Write out what was printed while a failure can still be reported."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        _cannot_print(error, name)


def _cannot_print(error: OSError, name: str) -> None:
    # Python flushes once more when it ends: what is left in the buffer must not fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
    if error.errno == errno.EPIPE:
        sys.exit(1)  # the reader has gone, as with `sabal strategies | head`
    _fail(str(cannot_write(STANDARD_OUTPUT, error)), name=name)


def _fail(message: str, code: int = 2, *, name: str = "sabal") -> None:
    print(f"{name}: {' '.join(message.split())}", file=sys.stderr)
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
