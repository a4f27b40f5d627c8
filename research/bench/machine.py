"""The machine and the libraries of a measurement."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from research import PROGRAM
from sabal.core.threads import THREAD_VARIABLES

LIBRARIES = ("sabal", "numpy", "scipy", "scikit-learn", "array-api-compat", "torch")


def machine_facts() -> dict[str, Any]:
    """Return cores, memory, library versions, thread settings and the running command."""
    return {
        "command": command(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": usable_cores(),
        "memory_bytes": total_memory(),
        "python": platform.python_version(),
        "libraries": {name: found for name in LIBRARIES if (found := _version(name))},
        "threads": {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
    }


def command() -> str:
    """Return the command of this process as it is typed."""
    program, *arguments = sys.argv
    if Path(program).name == "__main__.py":
        return shlex.join([*PROGRAM.split(), *arguments])
    return shlex.join(sys.argv)


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def total_memory() -> int | None:
    """Return the machine's memory in bytes, or None if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
