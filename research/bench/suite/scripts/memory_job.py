"""Select from arrays in memory with `sabal.select` as a user calls it, including its checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from research.bench.suite import methods

PACKAGE = "sabal"


def prepare(
    method: methods.SuiteMethod, inputs: Mapping[str, np.ndarray]
) -> Callable[[int, int], tuple[np.ndarray, str, dict[str, Any]]]:
    """Return a function that selects with `method`."""
    arrays = method.arrays(inputs)

    def run(budget: int, seed: int) -> tuple[np.ndarray, str, dict[str, Any]]:
        selection = method.select(arrays, budget, seed)
        facts = {"input_bytes": methods.bytes_of(arrays, method.given)}
        return selection.indices, "", facts | methods.evidence_of(selection)

    return run


METHODS = {label: partial(prepare, method) for label, method in methods.METHODS.items()}
