"""How near passes are to reading memory, and a selection to its passes: all in one process."""

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
from sabal.pools.outputs import Outputs
from sabal.sparse.problem import Problem
from sabal.strategies import make_strategy

PACKAGE = "sabal"

STREAM_BYTES = 256 * 2**20
"""Far more than caches hold."""

REPEATS = 7


def prepare(
    method: methods.Method, inputs: Mapping[str, np.ndarray]
) -> Callable[[int, int], tuple[np.ndarray, str, dict[str, Any]]]:
    """A function that measures a selection with `method`, its passes, and the machine."""
    arrays = method.arrays(inputs)

    def run(budget: int, seed: int) -> tuple[np.ndarray, str, dict[str, Any]]:
        started = time.perf_counter()
        selection = method.select(arrays, budget, seed)
        seconds = time.perf_counter() - started
        evidence = methods.evidence_of(selection)
        question = first_question(method, arrays, budget, seed)
        bare = mean_of(question, evidence["passes"])
        facts = {
            "seconds": seconds,
            "bare_seconds": bare,
            "pass_bytes": methods.bytes_of(arrays, method.read),
            "stream_rate": stream_rate(),
        }
        return selection.indices, "", facts | evidence

    return run


def stream_rate() -> float:
    """Bytes that this machine reads in a second: a sum over a large array, on all cores."""
    cores = usable_cores()
    parts = np.array_split(np.ones(STREAM_BYTES // 4, dtype=np.float32), cores)
    with ThreadPoolExecutor(cores) as threads:
        return STREAM_BYTES / fastest(lambda: list(threads.map(np.sum, parts)))


def fastest(function: Callable[[], Any]) -> float:
    """The seconds of the fastest of several calls; the first one is not counted."""
    taken = []
    for _ in range(1 + REPEATS):
        started = time.perf_counter()
        function()
        taken.append(time.perf_counter() - started)
    return min(taken[1:])


def mean_of(function: Callable[[], Any], times: int) -> float:
    """The seconds of a call, on average over so many in a row; one before is not counted."""
    function()
    started = time.perf_counter()
    for _ in range(times):
        function()
    return (time.perf_counter() - started) / times


class Asked(Exception):  # noqa: N818  (a question on its way out, nothing that went wrong)
    """Carries the first pass that a solver asks for."""

    def __init__(self, question: Callable[[], Any]) -> None:
        self.question = question


class _Listening:
    """Items that hand out the first pass they are asked for, instead of an answer."""

    def __init__(self, items: Any) -> None:
        self._items = items

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._items, name)
        return partial(self._asked, found) if name in ("best", "descend") else found

    def _asked(self, function: Callable[..., Any], direction: Any, *args: Any) -> Any:
        if direction is None:
            return function(direction, *args)  # answered without a pass
        raise Asked(lambda: function(direction, *args))


def first_question(
    method: methods.Method, arrays: dict[str, Any], budget: int, seed: int
) -> Callable[[], Any]:
    """The first pass of a selection with `method`, to be made again and again.

    The strategy poses its problem as always; its solver then meets items that only listen.
    """
    strategy: Any = make_strategy(method.strategy, dict(method.options))
    solver = strategy.solver()

    class Listener:
        def solve(self, problem: Problem) -> Any:
            listening: Any = _Listening(problem.items)
            return solver.solve(replace(problem, items=listening))

    # Frozen, as strategies are; this one is nobody else's.
    object.__setattr__(strategy, "solver", Listener)
    try:
        strategy.select(Outputs(**arrays).check(), budget, np.random.default_rng(seed))
    except Asked as asked:
        return asked.question
    raise NotImplementedError(f"{method.label} makes no pass over the pool")


METHODS = {label: partial(prepare, methods.METHODS[label]) for label in methods.SOLVED}
