"""Runs in parallel, each in a process with one thread, reported round by round."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from sabal.core.threads import limit_threads
from sabal.simulate.curves import Point

Run = Callable[[], Iterable[Point]]  # picklable; yields a point after every round
REPORT_SECONDS = 0.2  # how long to wait for a report before checking whether a run has finished
_reports: Any = None
_stop: Any = None
"""In a worker process: where it reports its rounds, and whether it should stop."""


def run_parallel(runs: Sequence[Run], jobs: int, on_round: Callable[[Point], None]) -> list[Point]:
    """Run everything (picklable) in `jobs` processes; call `on_round` here, once for a round."""
    # A fresh interpreter for every worker: forked threads of BLAS libraries may hang.
    context = multiprocessing.get_context("spawn")
    reports, stop = context.Queue(), context.Event()
    points: list[Point] = []
    report = call_once(on_round)
    with ProcessPoolExecutor(jobs, context, _start_worker, (reports, stop)) as pool:
        with _ignore_interrupts():
            pending = {pool.submit(_work, run) for run in runs}
        try:
            while pending:
                _pass_on(reports, report)
                done, pending = wait(pending, timeout=0)
                for finished in done:
                    points += _result(finished, report)
        except BaseException:
            # Active runs stop after their current round; the next start continues from there.
            stop.set()
            # Waiting also keeps `reports` and `stop` alive for processes that are just starting.
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return points


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Make processes that start here ignore Ctrl+C; the parent tells them to stop instead."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def call_once(on_round: Callable[[Point], None]) -> Callable[[Point], None]:
    """Return a function that calls `on_round` once for points that may be reported twice."""
    reported: set[tuple[str, int, int]] = set()

    def report(point: Point) -> None:
        key = (point.strategy, point.seed, point.round)
        if key not in reported:
            reported.add(key)
            on_round(point)

    return report


def _pass_on(reports: Any, report: Callable[[Point], None]) -> None:
    """Pass on what the workers report now or soon."""
    try:
        report(reports.get(timeout=REPORT_SECONDS))
        while True:
            report(reports.get_nowait())
    except queue.Empty:
        return


def _result(finished: Future[list[Point]], report: Callable[[Point], None]) -> list[Point]:
    """Return the points of a run, and report those whose own report is still on its way."""
    points = finished.result()
    for point in points:
        report(point)
    return points


def _work(run: Run) -> list[Point]:
    points = []
    for point in run():
        points.append(point)
        _reports.put(point)
        if _stop.is_set():
            break
    return points


def _start_worker(reports: Any, stop: Any) -> None:
    global _reports, _stop
    _reports, _stop = reports, stop
    # A worker must not wait until its reports are read: its result repeats them.
    reports.cancel_join_thread()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    limit_threads(1)


def _end_with_parent() -> None:
    """End this worker when its parent was killed; the files it wrote are complete."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
