"""Memory: how much a step takes, and how much it may take."""

from __future__ import annotations

import contextlib
import ctypes
import re
from decimal import Decimal
from numbers import Integral
from pathlib import Path
from typing import Any

from sabal.errors import InputError

PROCESS = Path("/proc/self")
SHARE = 4  # a pool that takes more than 1 / SHARE of the memory allowed stays on disk
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgtp]?)(i?)b?\s*", re.ASCII | re.IGNORECASE)
_LONGEST = 40


class PeakMemory:
    """Growth of the process's memory from now to its peak.

    Only Linux lets a process reset its high-water mark; elsewhere the growth is not known.
    """

    def __init__(self) -> None:
        with contextlib.suppress(AttributeError, OSError, TypeError):
            # Memory that earlier steps returned to glibc would be reused unnoticed.
            ctypes.CDLL(None).malloc_trim(0)
        self._before: int | None = None
        with contextlib.suppress(OSError):
            (PROCESS / "clear_refs").write_text("5")
            self._before = _kilobytes("VmRSS")

    def megabytes(self) -> float | None:
        """Return the growth up to the peak so far; None if it is not known."""
        if self._before is None:
            return None
        highest = _kilobytes("VmHWM")
        return None if highest is None else max(0, highest - self._before) / 1024


def shown_bytes(count: int) -> str:
    """Return a number of bytes for a message, in MB, or in KB where it is less."""
    return f"{count / 1e6:,.0f} MB" if count >= 1e6 else f"{-(-count // 1000):,} KB"


def parse_bytes(value: Any, name: str = "memory") -> int:
    """Return a number of bytes from a number or a text such as "500 MB", "2GB", "1GiB" or "1.5g".

    Units are powers of 1,000; with an i, as in GiB, powers of 1,024.
    """
    if isinstance(value, str):
        found = _AMOUNT.fullmatch(value) if len(value) <= _LONGEST else None
        if found is not None:
            amount, unit, binary = found.groups()
            base = 1024 if binary else 1000
            count = int(Decimal(amount) * base ** " kmgtp".index(unit.lower() or " "))
            if count > 0 and (unit or not binary):
                return count
    elif not isinstance(value, bool) and isinstance(value, Integral) and int(value) > 0:
        return int(value)
    raise InputError(
        f"`{name}` as a number of bytes above 0",
        repr(value) if len(repr(value)) <= _LONGEST else f"a {type(value).__name__}",
        'pass for instance 500_000_000, "500 MB", "2GB" or "1GiB"',
    )


def _kilobytes(key: str) -> int | None:
    for line in (PROCESS / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0])
    return None
