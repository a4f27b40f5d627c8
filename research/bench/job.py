"""One measured selection, in a process of its own: `python -P job.py '{"script": ..., ...}'`.

This file also runs in the environments of other libraries, so it needs only NumPy.

What is measured, and how:

- Time: the wall clock around `run(budget, seed)` alone. Before it come the imports, reading the
  inputs, converting them to the library's own types, and a warm-up on a few rows, which starts
  the thread pools and triggers late imports.
- Memory: the peak that the selection adds to the process. Right before it, unused heap is returned
  to the system, the resident size is read (VmRSS) and the high-water mark of the process is reset
  to it (by writing 5 to /proc/self/clear_refs); right after it, the high-water mark (VmHWM) is
  read. Their difference includes the allocations of all libraries, such as NumPy and BLAS, which a
  Python-level tracer would miss. Where the mark cannot be reset (not on Linux, or without
  permission) it is that of the whole process (getrusage), so the figure may be too high, never too
  low, and is marked as such.

A script has `METHODS`: functions by name that prepare inputs and return a function
`run(budget, seed)`. That returns the selected rows, or a tuple of these, a remark, and facts by
name. If `run` does more than select, the fact "seconds" is the time of the selection. A script with
`open_inputs` has its own kind of inputs instead of an .npz file.

Standard output carries one JSON object a line: {"ready": true} when the clock is about to start,
then the result, {"seconds", "peak_bytes", "indices", ...} or {"failed", "reason"}. The output of
libraries goes to standard error.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.util
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

import numpy as np

WARM_UP_ROWS = 256
WARM_UP_BUDGET = 4
NOT_PER_ITEM = ("labeled_features", "joint_samples")
PR_SET_PDEATHSIG = 1
LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch")

Run = Callable[[int, int], Any]


class JobInputs(Mapping[str, np.ndarray]):
    """The arrays of an .npz file, read on access; only the first `rows` if given."""

    def __init__(self, path: str, rows: int | None = None) -> None:
        self._file = np.load(path, allow_pickle=False)
        self._rows = rows

    def __getitem__(self, name: str) -> np.ndarray:
        array: np.ndarray = self._file[name]
        if self._rows is None or name in NOT_PER_ITEM:
            return array
        return array[: self._rows].copy()

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.files)

    def __len__(self) -> int:
        return len(self._file.files)


def main() -> None:
    """Do the job that the argument describes, and report the result."""
    job = json.loads(sys.argv[1])
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _end_with_parent()
    try:
        _limit_memory(job["memory"])
        result = measure(job, channel)
    except NotImplementedError as error:
        result = {"failed": "cannot", "reason": str(error)}
    except BaseException as error:
        result = {
            "failed": "memory" if _of_memory(error) else "error",
            "reason": _one_line(f"{type(error).__name__}: {error}"),
        }
    _say(channel, result)


def measure(job: dict[str, Any], channel: TextIO) -> dict[str, Any]:
    """Load, warm up, prepare and select; return the figures and the selected rows."""
    script = _load(job["script"])
    prepare = script.METHODS[job["method"]]
    open_inputs = getattr(script, "open_inputs", JobInputs)
    with contextlib.suppress(Exception):
        # A failed warm-up is ignored: the job itself will report the error.
        prepare(open_inputs(job["inputs"], WARM_UP_ROWS))(WARM_UP_BUDGET, job["seed"])
    run: Run = prepare(open_inputs(job["inputs"]))
    _give_back_unused_heap()
    highest_before = _high_water()
    whole_life = not _reset_high_water()
    before = _resident()
    _say(channel, {"ready": True})
    started = time.perf_counter()
    answer = run(job["budget"], job["seed"])
    seconds = time.perf_counter() - started
    peak = _high_water()
    indices, remark, facts = _taken_apart(answer)
    return {
        "seconds": facts.pop("seconds", seconds),
        "peak_bytes": max(0, peak - before),
        "whole_life": whole_life,
        "indices": np.asarray(indices).astype(np.int64).tolist(),
        "remark": _one_line(remark),
        "versions": _versions((script.PACKAGE, *LIBRARIES)),
        "facts": {**facts, "highest_bytes": max(peak, highest_before)},
    }


def _taken_apart(answer: Any) -> tuple[Any, str, dict[str, Any]]:
    """Return the rows, the remark and the facts of a script's answer."""
    if not isinstance(answer, tuple):
        return answer, "", {}
    indices, remark, *facts = answer
    return indices, remark, dict(facts[0]) if facts else {}


def _load(path: str) -> ModuleType:
    # By path, so that a script may have the name of the package that it drives.
    spec = importlib.util.spec_from_file_location("bench_script", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"no script at {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _end_with_parent() -> None:
    """Have the system kill this process when its parent ends (Linux only)."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _limit_memory(limit: int | None) -> None:
    if limit is None:
        return
    with contextlib.suppress(ImportError):  # not on Windows
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _of_memory(error: BaseException) -> bool:
    # PyTorch reports exhaustion as a RuntimeError.
    return isinstance(error, MemoryError) or "allocate memory" in str(error)


def _give_back_unused_heap() -> None:
    gc.collect()
    with contextlib.suppress(AttributeError, OSError, TypeError):  # glibc only
        ctypes.CDLL(None).malloc_trim(0)


def _reset_high_water() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _resident() -> int:
    return _status("VmRSS")


def _high_water() -> int:
    return _status("VmHWM")


def _status(field: str) -> int:
    """Return a size in bytes from /proc/self/status; elsewhere the peak resident size so far."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    import resource

    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return highest if sys.platform == "darwin" else highest * 1024


def _versions(names: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]


def _say(channel: TextIO, what: dict[str, Any]) -> None:
    channel.write(json.dumps(what) + "\n")
    channel.flush()


if __name__ == "__main__":
    main()
