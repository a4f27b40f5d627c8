"""Compare a selection with its bare passes, and these with the memory bandwidth."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from research.bench.machine import usable_cores
from research.bench.suite import methods
from sabal.pools import ArrayPool
from sabal.sparse.problem import Problem
from sabal.strategies import make_strategy

PACKAGE = "sabal"

STREAM_BYTES = 256 * 2**20
"""Size of the array, far larger than caches."""

REPEATS = 7


def prepare(
    method: methods.SuiteMethod, inputs: Mapping[str, np.ndarray]
) -> Callable[[int, int], tuple[np.ndarray, str, dict[str, Any]]]:
    """Return a function that measures a selection with `method`, its passes, and the machine."""
    arrays = method.arrays(inputs)

    def run(budget: int, seed: int) -> tuple[np.ndarray, str, dict[str, Any]]:
        started = time.perf_counter()
        selection = method.select(arrays, budget, seed)
        seconds = time.perf_counter() - started
        evidence = methods.evidence_of(selection)
        request = first_pass(method, arrays, budget, seed)
        bare = mean_of(request, evidence["passes"])
        facts = {
            "seconds": seconds,
            "bare_seconds": bare,
            "pass_bytes": methods.bytes_of(arrays, method.read),
            "stream_rate": stream_rate(),
        }
        return selection.indices, "", facts | evidence

    return run


def stream_rate() -> float:
    """Return bytes per second read by a sum over a large array, on all cores."""
    cores = usable_cores()
    parts = np.array_split(np.ones(STREAM_BYTES // 4, dtype=np.float32), cores)
    with ThreadPoolExecutor(cores) as threads:
        return STREAM_BYTES / fastest(lambda: list(threads.map(np.sum, parts)))


def fastest(function: Callable[[], Any]) -> float:
    """Return the seconds of the fastest of several calls; the first does not count."""
    taken = []
    for _ in range(1 + REPEATS):
        started = time.perf_counter()
        function()
        taken.append(time.perf_counter() - started)
    return min(taken[1:])


def mean_of(function: Callable[[], Any], times: int) -> float:
    """Return the mean seconds of a number of calls in a row; a first call does not count."""
    function()
    started = time.perf_counter()
    for _ in range(times):
        function()
    return (time.perf_counter() - started) / times


class FirstPass(Exception):  # noqa: N818  (carries a result, not an error)
    """The first pass that a solver requests."""

    def __init__(self, request: Callable[[], Any]) -> None:
        self.request = request


class _InterceptingItems:
    """Items that raise the first pass they are asked for, instead of making it."""

    def __init__(self, items: Any) -> None:
        self._items = items

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._items, name)
        return partial(self._intercept, found) if name in ("best", "descend") else found

    def _intercept(self, function: Callable[..., Any], direction: Any, *args: Any) -> Any:
        if direction is None:
            return function(direction, *args)  # no pass is made
        raise FirstPass(lambda: function(direction, *args))


def first_pass(
    method: methods.SuiteMethod, arrays: dict[str, Any], budget: int, seed: int
) -> Callable[[], Any]:
    """Return the first pass of a selection with `method` as a function.

    The strategy sets up its problem as usual, and its solver gets items that intercept the pass.
    """
    if method.label not in methods.SOLVED:
        raise NotImplementedError(f"{method.label} makes no pass over the pool")
    strategy: Any = make_strategy(method.strategy, dict(method.options))
    solver = strategy.solver()

    class InterceptingSolver:
        def solve(self, problem: Problem) -> Any:
            intercepting: Any = _InterceptingItems(problem.items)
            return solver.solve(replace(problem, items=intercepting))

    # Strategies are frozen, but this one is not shared.
    object.__setattr__(strategy, "solver", InterceptingSolver)
    try:
        strategy.select(ArrayPool(**arrays).check(), budget, np.random.default_rng(seed))
    except FirstPass as asked:
        return asked.request
    raise NotImplementedError(f"{method.label} makes no pass over the pool")


METHODS = {label: partial(prepare, methods.METHODS[label]) for label in methods.SOLVED}
