"""Thread limits hold for libraries that are loaded, and for those that will be."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import os
import numpy
from threadpoolctl import threadpool_info
from sabal.core.threads import THREAD_VARIABLES, limit_threads
limit_threads(1)
print(*(os.environ[name] for name in THREAD_VARIABLES))
print(*(library["num_threads"] for library in threadpool_info()))
"""


def test_libraries_and_child_processes_are_limited():
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    found = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=environment
    )
    counts = found.stdout.split()
    assert len(counts) > 3
    assert set(counts) == {"1"}
