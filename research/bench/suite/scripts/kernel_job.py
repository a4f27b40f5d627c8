"""Compare the default with one kernel matrix of its sample, with BADGE, and with one read.

All are measured in turn in the same process, several times, and the fastest of each counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from research.bench.machine import usable_cores
from research.bench.suite import methods
from sabal.api import select
from sabal.core.arrays import row_chunks
from sabal.strategies.coverage import sample_size
from sabal.strategies.greedy_cover import BLOCK, Kernel

PACKAGE = "sabal"
TURNS = 3


def prepare(
    labeled: int, inputs: Mapping[str, np.ndarray]
) -> Callable[[int, int], tuple[np.ndarray, str, dict[str, Any]]]:
    """Return a function that measures a selection with so many labelled items, and the others."""
    arrays: dict[str, Any] = {name: inputs[name] for name in ("features", "probs")}
    known: dict[str, Any] = (
        {"labeled_features": inputs["labeled_features"][:labeled]} if labeled else {}
    )
    features_ND = arrays["features"]

    def run(budget: int, seed: int) -> tuple[np.ndarray, str, dict[str, Any]]:
        sampled = min(len(features_ND), sample_size(budget))
        points_MD = features_ND[:sampled] / np.float32(np.sqrt(features_ND.shape[1]))
        selection = select(budget, random_state=seed, **arrays, **known)
        seconds = fastest_in_turn(
            {
                "seconds": lambda: select(budget, random_state=seed, **arrays, **known),
                "kernel_seconds": lambda: one_kernel(points_MD),
                "badge_seconds": lambda: select(
                    budget, strategy="badge", random_state=seed, **arrays
                ),
                "read_seconds": lambda: read_once(features_ND),
            }
        )
        facts = {"sampled": sampled, "input_bytes": methods.bytes_of(arrays, tuple(arrays))}
        return selection.indices, "", seconds | facts | methods.evidence_of(selection)

    return run


def one_kernel(points_MD: np.ndarray) -> None:
    """Compute the whole kernel between some points in blocks of rows, without its symmetry."""
    kernel = Kernel(points_MD)
    for rows in row_chunks(len(points_MD), 1, BLOCK):
        kernel.rows(points_MD[rows])


def read_once(features_ND: np.ndarray) -> None:
    """Read an array once, on all cores."""
    cores = usable_cores()
    with ThreadPoolExecutor(cores) as threads:
        list(threads.map(np.sum, np.array_split(features_ND, cores)))


def fastest_in_turn(functions: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the seconds of the fastest of several calls of each function, made in turn."""
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(TURNS):
        for name, function in functions.items():
            started = time.perf_counter()
            function()
            taken[name].append(time.perf_counter() - started)
    return {name: min(seconds) for name, seconds in taken.items()}


METHODS = {
    label: partial(prepare, labeled)
    for label, labeled in zip(methods.DEFAULT, (0, methods.LABELED), strict=True)
}
