"""The labelling app in a process of its own, for the scripts that measure it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVE = (
    "import sys; from sabal.labeling.project import Project; "
    "from sabal.labeling.web import serve; "
    "serve(Project.open(sys.argv[1]), port=0, browser=False, "
    "announce=lambda line: print(line, flush=True))"
)
SERVE_ALONE = """
import contextlib, sys
from sabal.labeling.project import Project
from sabal.labeling.web import create_app, server

app = create_app(Project.open(sys.argv[1]), worker=False)
with contextlib.suppress(KeyboardInterrupt), server._bind("127.0.0.1", 0) as listener:
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    running = server._Server(app, lambda: print(address, flush=True), lambda: None)
    running.run([listener])
"""
"""Without the worker that trains and chooses."""
END_SECONDS = 300
"""What a training that is under way may take to end, on a busy machine."""


@contextmanager
def served(folder: Path, *, worker: bool = True) -> Iterator[tuple[str, int]]:
    """Serve a project with the app; return its address and process id."""
    process = subprocess.Popen(  # noqa: S603  # nosec B603  # our own interpreter
        [sys.executable, "-c", SERVE if worker else SERVE_ALONE, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stdout.readline() if process.stdout else ""
        found = re.search(r"http://[^/]+", line)
        if found is None:
            raise SystemExit(f"the app did not start: {line!r}")
        yield found[0], process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=END_SECONDS)
