"""Make the same selection from memory, from disk and on Ray, with one BLAS thread."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from research.bench.suite import methods
from research.bench.suite.pool_inputs import described
from sabal.api import select_pool
from sabal.selection import Selection

PACKAGE = "sabal"
open_inputs = described


def prepare(
    strategy: str, pool: Mapping[str, Any]
) -> Callable[[int, int], tuple[np.ndarray, str, dict[str, Any]]]:
    """Return a function that selects from the pool with `strategy` in all three places."""

    def run(budget: int, seed: int) -> tuple[np.ndarray, str, dict[str, Any]]:
        same: dict[str, Any] = {"strategy": strategy, "random_state": seed}
        path = pool["path"]
        stored = {"memory": pool["memory"], "scratch": pool["scratch"]}
        workers = pool["workers"]
        # Ray's workers have one BLAS thread each, and rounding depends on the number of threads.
        with threadpool_limits(1):
            in_memory, memory_seconds = timed(lambda: select_pool(path, budget, **same))
            on_disk, disk_seconds = timed(lambda: select_pool(path, budget, **stored, **same))
            on_ray, seconds = timed(
                lambda: select_pool(path, budget, engine="ray", workers=workers, **same)
            )
        facts = {
            "seconds": seconds,
            "memory_seconds": memory_seconds,
            "disk_seconds": disk_seconds,
            "selecting_seconds": on_ray.evidence["seconds"],
            "same_as_memory": bool(np.array_equal(on_ray.indices, in_memory.indices)),
            "same_as_disk": bool(np.array_equal(on_ray.indices, on_disk.indices)),
            "workers": on_ray.evidence["cluster"]["workers"],
            "bytes_per_pass": on_ray.evidence["cluster"]["bytes_per_pass"],
            "bytes": on_ray.evidence["cluster"]["bytes"],
        }
        return on_ray.indices, "", facts | methods.evidence_of(on_ray)

    return run


def timed(function: Callable[[], Selection]) -> tuple[Selection, float]:
    """Return the result of `function` and its time in seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        selection = function()
        return selection, time.perf_counter() - started


METHODS = {name: partial(prepare, name) for name in methods.SABAL}
