"""The program `python -m research`."""

from __future__ import annotations

from collections.abc import Callable

from sabal.core.interrupts import run_interruptible


def load() -> Callable[[], None]:
    """Import the command line, which takes long enough to be interrupted."""
    from research.cli import main

    return main


if __name__ == "__main__":
    run_interruptible(load, "research")
