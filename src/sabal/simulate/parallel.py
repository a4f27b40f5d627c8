"""Runs side by side, each in a process of its own with one thread, heard of round by round."""

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

from sabal.simulate.curves import Point

Run = Callable[[], Iterable[Point]]
"""Something that can be sent to another process, and yields a point when a round is done."""

LISTEN_SECONDS = 0.2
"""How often to look whether a run has finished while none reports a round."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

_news: Any = None
_stop: Any = None
"""In a worker: where its rounds are reported, and whether nobody waits for them any more."""


def side_by_side(runs: Sequence[Run], jobs: int, on_round: Callable[[Point], None]) -> list[Point]:
    """The points of all runs, of which `jobs` go on at a time."""
    # A fresh interpreter for every worker: forked threads of BLAS libraries may hang.
    context = multiprocessing.get_context("spawn")
    news, stop = context.Queue(), context.Event()
    points: list[Point] = []
    hear = once(on_round)
    with ProcessPoolExecutor(jobs, context, _begin_worker, (news, stop)) as pool:
        with _not_interrupted():
            pending = {pool.submit(_work, run) for run in runs}
        try:
            while pending:
                _hear_news(news, hear)
                done, pending = wait(pending, timeout=0)
                for finished in done:
                    points += _result(finished, hear)
        except BaseException:
            # Runs under way stop after the round they are at; the next start goes on from there.
            stop.set()
            # Waiting also keeps `news` and `stop` for processes that are only starting.
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return points


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Processes that start here ignore Ctrl+C, which reaches all of a terminal: we tell them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def once(on_round: Callable[[Point], None]) -> Callable[[Point], None]:
    """`on_round` for points that may be reported twice."""
    heard: set[tuple[str, int, int]] = set()

    def hear(point: Point) -> None:
        key = (point.strategy, point.seed, point.round)
        if key not in heard:
            heard.add(key)
            on_round(point)

    return hear


def _hear_news(news: Any, hear: Callable[[Point], None]) -> None:
    """Pass on what is reported now, or soon."""
    try:
        hear(news.get(timeout=LISTEN_SECONDS))
        while True:
            hear(news.get_nowait())
    except queue.Empty:
        return


def _result(finished: Future[list[Point]], hear: Callable[[Point], None]) -> list[Point]:
    """The points of a run; what it reported may still be on its way, and counts once."""
    points = finished.result()
    for point in points:
        hear(point)
    return points


def _work(run: Run) -> list[Point]:
    points = []
    for point in run():
        points.append(point)
        _news.put(point)
        if _stop.is_set():
            break
    return points


def _begin_worker(news: Any, stop: Any) -> None:
    global _news, _stop
    _news, _stop = news, stop
    # A worker must not wait for reports to be read: its result repeats them.
    news.cancel_join_thread()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    one_thread()


def _end_with_parent() -> None:
    """A parent that was killed cannot tell its workers to stop; what they wrote is whole."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def one_thread() -> None:
    """As many workers as cores: more threads would only get in each other's way.

    Libraries that are loaded later, PyTorch among them, read the environment; those that are here
    already are told.
    """
    for name in THREADS:
        os.environ[name] = "1"
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
