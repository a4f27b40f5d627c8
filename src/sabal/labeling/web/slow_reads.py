"""What may take seconds in a large project: few of these run at a time, so that labels go on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio

MAX_CONCURRENT = 2
MIN_SECONDS = 0.25  # of a computation whose result is used again
PAUSE = 4  # how long it is used again, in multiples of the time that it took
Result = TypeVar("Result")


class SlowReads:
    """Runs functions in threads, few at a time; other requests have threads of their own."""

    def __init__(self, max_concurrent: int = MAX_CONCURRENT) -> None:
        self._limiter = anyio.CapacityLimiter(max_concurrent)

    async def run(self, read: Callable[[], Result]) -> Result:
        """Return what a function returns."""
        return await anyio.to_thread.run_sync(read, limiter=self._limiter)


class Paced(Generic[Result]):
    """A function whose result is used again for a while if it took long to compute.

    Every open page asks for the status every few seconds.
    """

    def __init__(self, read: Callable[[], Result], clock: Callable[[], float] = time.monotonic):
        self._read, self._clock = read, clock
        self._latest: tuple[Result, float] | None = None

    def __call__(self) -> Result:
        """Return a result, computed now or a short while ago."""
        latest = self._latest
        if latest is not None and self._clock() < latest[1]:
            return latest[0]
        began = self._clock()
        result = self._read()
        took = self._clock() - began
        self._latest = (result, began + took + PAUSE * took) if took > MIN_SECONDS else None
        return result
