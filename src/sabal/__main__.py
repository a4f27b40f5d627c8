"""The `sabal` command, also as `python -m sabal`."""

from __future__ import annotations

from sabal.core.interrupts import run_interruptible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> None:
    """Load the command line, and run it."""

    def load() -> Callable[[], None]:
        from sabal.cli import main as run

        return run

    run_interruptible(load, "sabal")


if __name__ == "__main__":
    main()
