"""A Label Studio of our own that can be stopped and started, and what its users do."""
# ruff: noqa: S603, S310  (for tests, with processes and a server of their own on loopback)

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

BIN = Path(os.environ.get("LABEL_STUDIO_BIN", ".venv-label-studio/bin")).absolute()
SABAL = [sys.executable, "-m", "sabal"]
TOKEN = "0123456789abcdef0123456789abcdef01234567"  # noqa: S105  (of a server on loopback)
START_SECONDS = 900


class LabelStudio:
    """A server whose data are in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "log.txt"
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        """Start, and wait until it answers; the first start makes its database."""
        command = [
            BIN / "label-studio", "start", "--no-browser", "--internal-host", "127.0.0.1",
            "--port", str(self.port), "--data-dir", self.folder / "data", "--username",
            "sabal@example.com", "--password", "only-on-loopback", "--user-token", TOKEN,
        ]  # fmt: skip
        environment = {
            **os.environ,
            "HOME": str(self.folder),
            "HF_HUB_OFFLINE": "1",
            "COLLECT_ANALYTICS": "false",
            "LATEST_VERSION_CHECK": "false",
            "SENTRY_DSN": "",
            "FRONTEND_SENTRY_DSN": "",
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        }
        with self.log.open("a") as file:
            self.process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._wait()

    def stop(self) -> None:
        """End the server and whatever it started: they are a group of their own."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.process and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(1)
        raise AssertionError(f"Label Studio did not start:\n{self.log.read_text()[-3000:]}")

    def call(self, method: str, path: str, content: Any = None) -> Any:
        """Send a request, and return the answer."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if content is None else json.dumps(content).encode(),
            headers={"Authorization": f"Token {TOKEN}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.loads(response.read() or b"null")

    def new_project(self, config: str | None = None) -> int:
        """Make a project, and return its number."""
        given = {} if config is None else {"label_config": config}
        return int(self.call("POST", "/api/projects/", {"title": "A team's", **given})["id"])

    def tasks(self, project: int) -> list[dict[str, Any]]:
        """Return the tasks of a project in the order in which annotators see them."""
        query = f"project={project}&fields=all&page=1&page_size=1000"
        found: list[dict[str, Any]] = self.call("GET", f"/api/tasks?{query}")["tasks"]
        return sorted(found, key=lambda task: task["id"])

    def annotate(
        self, task: dict[str, Any], label: str | None, control: str = "label", target: str = "text"
    ) -> int:
        """Choose a class, or skip the task, and return the number of the annotation."""
        chosen = {
            "type": "choices",
            "from_name": control,
            "to_name": target,
            "value": {"choices": [label]},
        }
        content = {"result": [] if label is None else [chosen], "was_cancelled": label is None}
        return int(self.call("POST", f"/api/tasks/{task['id']}/annotations/", content)["id"])


def sabal(*arguments: object, code: int = 0) -> str:
    """Run a command, and return its standard output, or what it says of an error."""
    done = subprocess.run(
        [*SABAL, *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "LABEL_STUDIO_API_KEY": TOKEN},
    )
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
