"""A lock that makes sure that one worker trains and chooses in a project.

It is held on a file in the folder of the project and, where the database is on a server, there as
well. Both are released when the process ends, however it ends.
"""

from __future__ import annotations

from typing import IO

from sabal.core.files import os_errors_about
from sabal.labeling.project import Project

LOCK_FILE = "worker.lock"


class WorkerLock:
    """The right to work in a project; one process has it at a time."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._file: IO[bytes] | None = None

    def acquire(self) -> bool:
        """Return whether this process has the lock now, without waiting for it."""
        if self._file is None:
            path = self.project.folder / LOCK_FILE
            with os_errors_about(path):
                file = path.open("ab")
            if not _try_lock(file):
                file.close()
                return False
            self._file = file
        return self.project.store.database.try_worker_lock()

    def release(self) -> None:
        """Give the lock up."""
        self.project.store.database.release_worker_lock()
        if self._file is not None:
            self._file.close()
            self._file = None


def _try_lock(file: IO[bytes]) -> bool:
    try:
        import fcntl
    except ImportError:
        return True  # on Windows; a second worker does no harm, it only works in vain
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
