"""Keeps the worker alive for as long as the app runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sabal.labeling.project import Project
from sabal.labeling.worker import WorkerHandle, start_worker

LOOK_EVERY = 1.0
LONGEST_PAUSE = 60.0


class _Watch:
    """One worker, and another one when it died: at once, then after longer and longer pauses."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.handle: WorkerHandle = start_worker(project)

    async def run(self) -> None:
        pause = LOOK_EVERY
        while True:
            await asyncio.sleep(pause)
            if self.handle.alive:
                pause = LOOK_EVERY
                continue
            self.handle = await asyncio.to_thread(start_worker, self.project)
            pause = min(2 * pause, LONGEST_PAUSE)


@asynccontextmanager
async def kept_alive(project: Project) -> AsyncIterator[None]:
    """A worker for the duration of the block."""
    watch = _Watch(project)
    task = asyncio.create_task(watch.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.to_thread(watch.handle.stop)
