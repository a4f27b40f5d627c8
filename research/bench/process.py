"""Run one job in its own process, within limits, and report how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import sabal

JOB = Path(__file__).parent / "job.py"

SETUP_SECONDS = 900.0
"""Time limit for importing the library and reading the inputs, which is not measured."""

OK = "ok"
INCOMPLETE = "incomplete"
OVER = "over the limit"
MEMORY = "out of memory"
FAILED = "failed"
CANNOT = "cannot"
NOT_INSTALLED = "not installed"
NOT_TRIED = "not tried"

_FAILURES = {"memory": MEMORY, "cannot": CANNOT, "error": FAILED}


@dataclass(frozen=True)
class JobOutcome:
    """How a job ended.

    Attributes
    ----------
    status, note : str
        "ok", or why there are no complete figures; the note says more.
    seconds, peak_bytes : float, int
        Time and memory, if measured.
    limit : float or None
        The seconds after which it was killed, if it was.
    versions : dict
        Versions of the libraries.
    facts : dict
        Further facts reported by the script.
    """

    status: str
    note: str = ""
    seconds: float | None = None
    peak_bytes: int | None = None
    limit: float | None = None
    versions: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """A selection of `budget` out of the `items` in `inputs` by `method` of `script`."""

    python: Path
    script: Path
    method: str
    inputs: Path
    items: int
    budget: int
    seed: int = 0
    python_path: str = ""


def run_job(job: Job, *, limit: float, memory: int | None) -> JobOutcome:
    """Run `job`; kill it when the selection takes more than `limit` seconds.

    Parameters
    ----------
    job : Job
        The selection.
    limit : float
        Seconds for the selection.
    memory : int or None
        Limit of the address space of the process, in bytes.
    """
    description = {
        "script": str(job.script),
        "method": job.method,
        "inputs": str(job.inputs),
        "budget": job.budget,
        "seed": job.seed,
        "memory": memory,
    }
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        try:
            process = subprocess.Popen(  # noqa: S603  # nosec B603  # our own script
                [str(job.python), "-P", str(JOB), json.dumps(description)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=_environment(job),
                start_new_session=True,
                text=True,
            )
        except OSError as error:
            return JobOutcome(FAILED, str(error))
        lines: queue.Queue[str | None] = queue.Queue()
        reader = threading.Thread(target=_pump, args=(process.stdout, lines), daemon=True)
        reader.start()
        try:
            said, over = _listen(lines, limit)
        finally:
            _end(process)
            reader.join(timeout=5.0)
        if over == "selection":
            return JobOutcome(OVER, f"over {limit:g} s", limit=limit)
        if over == "setup":
            return JobOutcome(FAILED, f"not ready to start after {SETUP_SECONDS:g} s")
        if said is None:
            return _death(process.returncode, _last_line(errors))
    return judge(said, job.items, job.budget)


def judge(said: dict[str, Any], items: int, budget: int) -> JobOutcome:
    """Return the outcome a process reported, checking for `budget` distinct rows of `items`."""
    if "failed" in said:
        return JobOutcome(_FAILURES[said["failed"]], said["reason"])
    distinct = {index for index in said["indices"] if 0 <= index < items}
    complete = len(distinct) == budget == len(said["indices"])
    notes = [] if complete else [f"returned {len(distinct)} distinct of {budget}"]
    if said["remark"]:
        notes.append(said["remark"])
    if said["whole_life"]:
        notes.append("memory: highest of the whole process")
    return JobOutcome(
        status=OK if complete else INCOMPLETE,
        note="; ".join(notes),
        seconds=said["seconds"],
        peak_bytes=said["peak_bytes"],
        versions=said["versions"],
        facts=said.get("facts", {}),
    )


def _environment(job: Job) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if job.python_path:
        environment["PYTHONPATH"] = job.python_path
    # Progress bars are not measured, and no library needs the network here.
    return {**environment, "TQDM_DISABLE": "1", "HF_HUB_OFFLINE": "1", "PYTHONHASHSEED": "0"}


def _listen(
    lines: queue.Queue[str | None], limit: float
) -> tuple[dict[str, Any] | None, str | None]:
    """Return the result, None if the process died, and the phase whose deadline passed, if any."""
    for phase, seconds in (("setup", SETUP_SECONDS), ("selection", limit)):
        try:
            line = lines.get(timeout=seconds)
        except queue.Empty:
            return None, phase
        said = json.loads(line) if line else None
        if said is None or "ready" not in said:
            return said, None
    return None, None


def _pump(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


def _end(process: subprocess.Popen[str]) -> None:
    """Kill the process and its children; one that has already ended keeps its exit code."""
    if hasattr(os, "killpg"):
        # Not reaped yet, so the group is still its own.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _death(code: int, last_line: str) -> JobOutcome:
    if code == -signal.SIGKILL:
        return JobOutcome(MEMORY, "killed by the system, most likely for its memory")
    cause = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    status = MEMORY if "memory" in last_line.lower() else FAILED
    return JobOutcome(status, f"died with {cause}" + (f": {last_line}" if last_line else ""))


def _last_line(errors: IO[str]) -> str:
    errors.seek(0)
    lines = [line.strip() for line in errors.read().splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


def import_path() -> str:
    """Return the PYTHONPATH on which a job finds the running `sabal` and `research`."""
    places = (Path(sabal.__file__).parents[1], Path(__file__).parents[2])
    return os.pathsep.join(map(str, places))
