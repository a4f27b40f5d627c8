"""One measured selection, in a process of its own: `python -P job.py '{"script": ..., ...}'`.

This file runs in the environments of rivals too, so it needs NumPy and nothing else.

What is measured, and how:

- Time: the wall clock around `run(budget, seed)` alone. Imports, reading the inputs and putting
  them into the tool's own forms come before, and so does a warm-up on a few rows, which starts the
  thread pools and imports what the tool imports late.
- Memory: the most that the selection adds to the process. Right before it, unused heap is given
  back to the system, the resident size is read (VmRSS) and the high-water mark of the process is
  set back to it (by writing 5 to /proc/self/clear_refs); right after it, the high-water mark
  (VmHWM) is read. Their difference counts every library's allocations, NumPy's and BLAS's alike,
  which a Python-level tracer would not. Where the mark cannot be set back (no Linux, or no
  permission) it is the highest of the process's whole life (getrusage), so the figure may come out
  too high, never too low, and is marked so.

A script has `METHODS`, which by name prepare inputs and return a function `run(budget, seed)`. That
answers with the chosen rows, or with a tuple of these, a remark, and facts by name. Where `run`
does more than select, its facts say themselves how many "seconds" the selection took. A script with
`open_inputs` has inputs of its own kind, in place of an .npz file.

Standard output carries one JSON object a line: {"ready": true} when the clock is about to start,
then the result, {"seconds", "peak_bytes", "indices", ...} or {"failed", "reason"}. Whatever the
tools print goes to standard error.
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


class Inputs(Mapping[str, np.ndarray]):
    """The arrays of an .npz file, read when they are asked for; only the first `rows` if given."""

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
    """Do the job that the argument describes, and say how it went."""
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
    """Load, warm up, prepare, select; the figures and the answer."""
    script = _load(job["script"])
    prepare = script.METHODS[job["method"]]
    open_inputs = getattr(script, "open_inputs", Inputs)
    with contextlib.suppress(Exception):
        # A warm-up that fails decides nothing: the job itself will tell.
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
    """The rows, the remark and the facts of what a script answers."""
    if not isinstance(answer, tuple):
        return answer, "", {}
    indices, remark, *facts = answer
    return indices, remark, dict(facts[0]) if facts else {}


def _load(path: str) -> ModuleType:
    # By path, so that a script may be called as the package that it drives.
    spec = importlib.util.spec_from_file_location("bench_script", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"no script at {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _end_with_parent() -> None:
    """Have the system kill this process when the one that started it is gone (Linux only)."""
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
    """A size in bytes out of /proc/self/status; elsewhere the highest resident size so far."""
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
