"""Run `sabal select` on a file, and measure the peak memory of the whole process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from research.bench.suite import methods

PACKAGE = "sabal"
NAMES = ("features", "probs")


def prepare(
    kind: str, inputs: Mapping[str, np.ndarray]
) -> Callable[[int, int], tuple[np.ndarray, str, dict[str, Any]]]:
    """Write the pool in a format; return a function that selects from it by the command."""
    arrays: dict[str, Any] = {name: inputs[name] for name in NAMES}
    folder = tempfile.TemporaryDirectory(prefix="sabal-bench-")
    pool = written(arrays, Path(folder.name), kind)
    size = methods.bytes_of(arrays, NAMES)

    def run(budget: int, seed: int) -> tuple[np.ndarray, str, dict[str, Any]]:
        with folder:
            command = [sys.executable, "-m", "sabal", "select", str(pool), "--json"]
            command += ["--budget", str(budget), "--seed", str(seed)]
            started = time.perf_counter()
            process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603  # nosec B603
            assert process.stdout is not None  # noqa: S101
            answer = process.stdout.read()
            # Unlike `wait` of the process, this returns its peak of memory.
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.perf_counter() - started
            if process.returncode:
                raise RuntimeError(f"`sabal select` ended with exit code {process.returncode}")
        chosen = [int(item["id"]) for item in json.loads(answer)["items"]]
        peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        facts = {"seconds": seconds, "input_bytes": size, "command_bytes": peak}
        return np.array(chosen), "", facts

    return run


def written(arrays: Mapping[str, Any], folder: Path, kind: str) -> Path:
    """Write a pool in a format; return its path."""
    if kind == "npz":
        np.savez(folder / "pool.npz", **arrays)
        return folder / "pool.npz"
    if kind == "npy":
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array, allow_pickle=False)
        return folder
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        name: pa.FixedSizeListArray.from_arrays(array.reshape(-1), array.shape[1])
        for name, array in arrays.items()
    }
    pq.write_table(pa.table(columns), folder / "pool.parquet", use_dictionary=False)
    return folder / "pool.parquet"


METHODS = {kind: partial(prepare, kind) for kind in methods.FORMATS}
