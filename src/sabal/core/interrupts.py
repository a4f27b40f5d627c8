"""Interrupts of a command line, from its first moment to its last, never end in a traceback.

This module imports almost nothing: importing NumPy and the command line takes long enough to be
interrupted.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Importing these takes time, too.
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, NoReturn

INTERRUPTED = 130  # the exit code of an interrupted command, as in shells


class Interrupts:
    """Handler of Ctrl+C: it interrupts a running command once; otherwise it ends the process.

    Ending the process loses nothing. Before a command runs there is nothing to lose, and every file
    is complete or absent at any moment.
    """

    def __init__(self, name: str = "sabal") -> None:
        self.name = name
        self.command_runs = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal."""
        if not self.command_runs:
            end(self.name)
        self.command_runs = False
        raise KeyboardInterrupt


def end(name: str = "sabal") -> NoReturn:
    """End the process immediately."""
    os.write(2, f"{name}: interrupted\n".encode())
    os._exit(INTERRUPTED)


def run_interruptible(load: Callable[[], Callable[[], None]], name: str) -> None:
    """Run a command line so that an interrupt at any moment ends it without a traceback.

    `load` imports the command line and returns the function that runs it; `name` begins a line on
    standard error.
    """
    interrupts = Interrupts(name)
    # A command in the background of a script is started with interrupts ignored: keep it so.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupts)
        sys.unraisablehook = _unraisable
    run = load()
    try:
        interrupts.command_runs = True
        run()
    except KeyboardInterrupt:
        end(name)
    finally:
        interrupts.command_runs = False


def _unraisable(told: Any) -> None:
    """Treat an interrupt during the clean-up of objects as any other interrupt."""
    if issubclass(told.exc_type, KeyboardInterrupt):
        end()
    sys.__unraisablehook__(told)
