"""Compare the share of a pool that the default covers with that of greedy picks from all items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from research.bench.suite import methods
from sabal.api import select
from sabal.pools import ArrayPool
from sabal.strategies.coverage import centred, on_sphere
from sabal.strategies.greedy_cover import Coverage, Kernel

PACKAGE = "sabal"
SEEDS = 3


def prepare(
    inputs: Mapping[str, np.ndarray],
) -> Callable[[int, int], tuple[np.ndarray, str, dict[str, Any]]]:
    """Return a function that selects from a sample and from all items."""
    arrays: dict[str, Any] = {name: inputs[name] for name in ("features", "probs")}

    def run(budget: int, seed: int) -> tuple[np.ndarray, str, dict[str, Any]]:
        found = [select(budget, random_state=seed + k, share=1.0, **arrays) for k in range(SEEDS)]
        # All are judged by the radius of the first.
        radius = np.float32(found[0].evidence["radius"])
        centred_ND, _, _ = centred(arrays["features"].copy(), None)
        points_ND = on_sphere(centred_ND, None)[0] / radius
        mass_N = ArrayPool(**arrays).uncertainty()
        mass_N = mass_N / mass_N.sum()
        kernel = Kernel(points_ND)
        shares = []
        for selection in found:
            nearest_N = kernel.rows(points_ND[selection.indices]).max(axis=0)
            shares.append(float(mass_N @ nearest_N))
        exact = Coverage(kernel, mass_N, memory=4 * len(points_ND) ** 2).greedy(budget)
        facts = {
            "covered": float(np.mean(shares)),
            "exactly_covered": exact.after,
            "input_bytes": methods.bytes_of(arrays, tuple(arrays)),
        }
        return found[0].indices, "", facts

    return run


METHODS = {methods.DEFAULT[0]: prepare}
