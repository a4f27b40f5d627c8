"""The number of threads that numerical libraries use."""

from __future__ import annotations

import os

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
