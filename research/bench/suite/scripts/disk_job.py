"""Select from a Parquet folder that is larger than the memory allowed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from research.bench.suite import methods
from research.bench.suite.pool_inputs import described
from sabal.api import select_pool

PACKAGE = "sabal"
open_inputs = described


def prepare(
    strategy: str, pool: Mapping[str, Any]
) -> Callable[[int, int], tuple[np.ndarray, str, dict[str, Any]]]:
    """Return a function that selects from the pool with `strategy`."""

    def run(budget: int, seed: int) -> tuple[np.ndarray, str, dict[str, Any]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            started = time.perf_counter()
            selection = select_pool(
                pool["path"],
                budget,
                strategy=strategy,
                memory=pool["memory"],
                scratch=pool["scratch"],
                random_state=seed,
            )
            seconds = time.perf_counter() - started
        selecting = selection.evidence["seconds"]
        facts = {
            "seconds": seconds,
            "input_bytes": pool["bytes"],
            "selecting_seconds": selecting,
            "reading_seconds": seconds - selecting,
        }
        return selection.indices, "", facts | methods.evidence_of(selection)

    return run


METHODS = {name: partial(prepare, name) for name in methods.SABAL}
