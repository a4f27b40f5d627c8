"""The number of threads that numerical libraries use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Piece = TypeVar("Piece")

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def limit_threads(count: int) -> None:
    """Limit the threads of numerical libraries in this process and in those that it starts.

    With as many worker processes as cores, more threads only compete with each other. Libraries
    that are loaded later, such as PyTorch, read the environment; those already loaded are told.
    """
    for name in THREAD_VARIABLES:
        os.environ[name] = str(count)
    from threadpoolctl import threadpool_limits

    threadpool_limits(count)


def in_threads(work: Callable[[Piece], object], pieces: Sequence[Piece]) -> None:
    """Do the work on every piece, in as many threads as BLAS has, with one BLAS thread in each.

    Threads of BLAS spin while they wait for each other, which takes long if other processes need
    the cores; these do not wait for each other. And the last digits of a product do not depend on
    the number of threads.
    """
    from threadpoolctl import ThreadpoolController

    if len(pieces) == 1:
        work(pieces[0])
        return
    libraries = ThreadpoolController().select(user_api="blas")
    threads = _most_threads(libraries.info())
    with libraries.limit(limits=1):
        share_out(work, pieces, threads)


def share_out(work: Callable[[Piece], object], pieces: Sequence[Piece], threads: int) -> None:
    """Do work that does not call BLAS on every piece, in this many threads."""
    if threads == 1 or len(pieces) == 1:
        for piece in pieces:
            work(piece)
        return
    with ThreadPoolExecutor(threads) as executor:
        # An error in a thread is raised here.
        list(executor.map(work, pieces))


def blas_threads() -> int:
    """Return the number of threads that BLAS has. Finding it out takes milliseconds."""
    from threadpoolctl import threadpool_info

    return _most_threads(each for each in threadpool_info() if each["user_api"] == "blas")


def _most_threads(libraries: Iterable[dict[str, Any]]) -> int:
    return max((library["num_threads"] for library in libraries), default=1)
