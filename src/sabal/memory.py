"""How much more memory a step takes than there was in use before it."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path

PROCESS = Path("/proc/self")


class PeakMemory:
    """The growth of the process's memory from here to its highest point, in megabytes.

    Only Linux lets a process set its high-water mark back; elsewhere it cannot be told.
    """

    def __init__(self) -> None:
        with contextlib.suppress(AttributeError, OSError, TypeError):
            # What earlier steps gave back to glibc would be used again without a trace.
            ctypes.CDLL(None).malloc_trim(0)
        self._before: int | None = None
        with contextlib.suppress(OSError):
            (PROCESS / "clear_refs").write_text("5")
            self._before = _kilobytes("VmRSS")

    def megabytes(self) -> float | None:
        """What the highest point so far lies above the start; None where it cannot be told."""
        if self._before is None:
            return None
        highest = _kilobytes("VmHWM")
        return None if highest is None else max(0, highest - self._before) / 1024


def _kilobytes(key: str) -> int | None:
    for line in (PROCESS / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0])
    return None
