"""Progress: a bar on the terminal, or the caller's own function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = bool | Callable[[int, int], None]
"""True for a bar on the terminal, or a function of (steps done, all steps)."""


@contextmanager
def ticking(progress: Progress, total: int, what: str) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of steps just done."""
    if callable(progress):
        done = 0

        def tick(steps: int) -> None:
            nonlocal done
            done += steps
            progress(done, total)

        yield tick
    elif progress:
        from rich.console import Console
        from rich.progress import Progress as Bar

        with Bar(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda steps: bar.advance(task, steps)
    else:
        yield lambda steps: None
