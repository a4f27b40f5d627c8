"""Virtual environments for other libraries, created on first use and kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from research.bench.catalogue import Peer
from sabal.errors import FileError

CONSTRAINTS = "torch==2.13.0\n"
"""Without it, some libraries install the newest torch and gigabytes of CUDA."""

INSTALL_SECONDS = 3_600.0


class NotInstalled(Exception):  # noqa: N818  (an outcome to record, not a mistake of the caller)
    """An environment could not be created; the message says why."""


def default_folder() -> Path:
    """Return the default folder of the environments."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "sabal" / "bench"


def interpreter(peer: Peer, folder: Path) -> Path:
    """Return the Python that has `peer`, creating its environment under `folder` if necessary."""
    if peer.python is not None:
        return peer.python
    target = folder / peer.name
    python = target / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    marker = target / "installed.json"
    wanted = {"requirements": list(peer.requirements), "constraints": CONSTRAINTS}
    if _read(marker) == wanted and python.exists():
        return python
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "constraints.txt").write_text(CONSTRAINTS)
    except OSError as error:
        raise FileError(
            f"a folder for environments at {folder}", error.strerror or str(error), "pass --envs"
        ) from None
    _call([sys.executable, "-m", "venv", "--clear", str(target)], folder)
    _call([str(python), "-m", "pip", "install", "--quiet", *peer.requirements], folder)
    # Written last, so that an interrupted installation is repeated.
    marker.write_text(json.dumps(wanted))
    return python


def _call(command: list[str], folder: Path) -> None:
    # Relative, because pip splits this variable at spaces; as a variable it also reaches the
    # environments that pip builds packages in.
    environment = {
        **os.environ,
        "PIP_CONSTRAINT": "constraints.txt",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
    }
    try:
        done = subprocess.run(  # noqa: S603  # nosec B603  # our own interpreter and requirements
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"not installed within {INSTALL_SECONDS:g} s") from None
    except OSError as error:
        raise NotInstalled(str(error)) from None
    if done.returncode != 0:
        raise NotInstalled(_reason(done.stderr or done.stdout))


def _reason(text: str) -> str:
    """Return the last line that pip marks as an error, or the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    last = (errors or lines or ["pip said nothing"])[-1]
    return last.removeprefix("ERROR:").strip()[:200]


def _read(marker: Path) -> object:
    try:
        return json.loads(marker.read_text())
    except (OSError, ValueError):
        return None
