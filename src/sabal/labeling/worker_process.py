"""The worker: a process of its own that trains and chooses, so that labelling never waits.

It ends when the other end of its standard input is closed, or the process that holds it dies.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from sabal.core.threads import limit_threads
from sabal.errors import SabalError
from sabal.labeling.engine import Engine
from sabal.labeling.project import Project
from sabal.labeling.worker_lock import WorkerLock

POLL_SECONDS = 0.2
STANDBY_SECONDS = 1.0
AFTER_FAILURE_SECONDS = 30.0
GRACE_SECONDS = 5.0
NICENESS = 5


class WorkerHandle:
    """A running worker, as seen by the process that started it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End the worker, after its current step if that does not take long."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(2 * GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def start_worker(project: Project) -> WorkerHandle:
    """Start a worker for `project`; it opens the project for itself."""
    command = [sys.executable, "-m", "sabal.labeling.worker_process", str(project.folder)]
    process = subprocess.Popen(  # noqa: S603  # nosec B603  # our own interpreter
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        # Ctrl+C reaches all processes of a terminal's session; the app decides when this one ends.
        start_new_session=True,
    )
    return WorkerHandle(process)


def work(folder: Path, stop: threading.Event) -> None:
    """Do what is due in the project in `folder`, again and again, until `stop` is set."""
    with Project.open(folder) as project, closing_lock(WorkerLock(project)) as lock:
        engine = Engine(project)
        while not stop.is_set():
            # Another server has a worker: this one stands by, and takes over when that ends.
            if not lock.acquire():
                stop.wait(STANDBY_SECONDS)
                continue
            try:
                done = engine.step()
            except Exception as error:
                # The page shows the state; a defect of ours deserves its traceback as well.
                if not isinstance(error, SabalError):
                    traceback.print_exc()
                engine = Engine(project)
                stop.wait(AFTER_FAILURE_SECONDS)
                continue
            if done is None:
                stop.wait(POLL_SECONDS)


@contextlib.contextmanager
def closing_lock(lock: WorkerLock) -> Iterator[WorkerLock]:
    """Give a lock up at the end of the block."""
    try:
        yield lock
    finally:
        lock.release()


def main() -> None:
    """Run the worker: python -m sabal.labeling.worker_process PROJECT."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    # Threads that wait for each other at low priority spin, and take many times as long.
    limit_threads(max(1, (os.cpu_count() or 1) - 1))
    stop = threading.Event()
    threading.Thread(target=_end_with_parent, args=(stop,), daemon=True).start()
    work(Path(sys.argv[1]), stop)


def _end_with_parent(stop: threading.Event) -> None:
    sys.stdin.buffer.read()
    stop.set()
    time.sleep(GRACE_SECONDS)
    # Every step is written whole or not at all, so nothing is lost by not waiting.
    os._exit(0)


if __name__ == "__main__":
    main()
