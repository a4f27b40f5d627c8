"""Progress, shown as a bar on the terminal or passed to a function of the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = bool | Callable[[int, int], None]  # True for a bar, or a function of (done, all)


@contextmanager
def report_progress(progress: Progress, total: int, what: str) -> Iterator[Callable[[int], None]]:
    """Report the progress of `total` steps; yield a function to call with the steps just done."""
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
