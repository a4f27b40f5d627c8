"""The number of threads that numerical libraries use."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

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

    count = 1
    if len(pieces) > 1:
        libraries = ThreadpoolController().select(user_api="blas")
        count = max((library["num_threads"] for library in libraries.info()), default=1)
    if count == 1:
        for piece in pieces:
            work(piece)
        return
    with libraries.limit(limits=1), ThreadPoolExecutor(count) as threads:
        # An error in a thread is raised here.
        list(threads.map(work, pieces))
