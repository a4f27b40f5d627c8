"""A batch through a real Label Studio and back. Opt-in: `make test-label-studio`."""
# ruff: noqa: S101, S603  (a test asserts, and starts processes of its own)

from __future__ import annotations

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

BIN = Path(os.environ.get("LABEL_STUDIO_BIN", ".venv-label-studio/bin")).absolute()
SABAL = Path(sys.executable).parent / "sabal"
TOKEN = "0123456789abcdef0123456789abcdef01234567"  # noqa: S105  (of a server on loopback)
START_SECONDS = 300
CLASSES = ["très bien", 'it\'s "bad"', "<b>other</b> & more 🦜"]
TEXTS = [
    "plain words",
    "=1+1",
    'a "quoted" text, with commas',
    "two\nlines",
    "<script>alert('no')</script>",
    "Zażółć gęślą jaźń 🦜",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Label Studio of our own, with nothing in it."""
    folder = tmp_path_factory.mktemp("label-studio")
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    command = [
        BIN / "label-studio", "start", "--no-browser",
        "--internal-host", "127.0.0.1", "--port", str(port), "--data-dir", folder / "data",
        "--username", "sabal@example.com", "--password", "only-on-loopback", "--user-token", TOKEN,
    ]  # fmt: skip
    environment = {
        **os.environ,
        "HOME": str(folder),
        "HF_HUB_OFFLINE": "1",
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
    }
    log = folder / "log.txt"
    with log.open("w") as file:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait_for(f"{url}/health", process, log)
            yield url
        finally:
            _end(process)


def test_a_batch_is_labelled_in_label_studio_and_comes_back(server: str, tmp_path: Path) -> None:
    """Export, label through the SDK, import, and choose again."""
    project, tasks, config = (tmp_path / name for name in ("project", "batch.json", "config.xml"))
    _write_texts(tmp_path / "texts.csv", 60)
    names = [part for name in CLASSES for part in ("--class", name)]
    _sabal(
        "init", project, "--data", tmp_path / "texts.csv", "--text-column", "body", *names,
        "--initial", 12, "--batch", 10, "--check-share", 0,
    )  # fmt: skip
    export = ("export", project, "--format", "label-studio", "--batch", "--out", tasks)
    _sabal(*export, "--config", config)
    batch = json.loads(tasks.read_text(encoding="utf-8"))
    items = [task["data"]["sabal_id"] for task in batch]
    assert len(items) == 12

    # Two are skipped, and one is left open.
    said = {item: CLASSES[k % 3] if k >= 2 else None for k, item in enumerate(items[:-1])}
    answers, labelled = tmp_path / "answers.json", tmp_path / "labelled.json"
    answers.write_text(json.dumps(said))
    _through_sdk(server, config, tasks, answers, labelled)

    report = json.loads(_sabal("import", project, labelled, "--json"))
    assert report == {"labels": 9, "skips": 2, "already": 0, "waiting": 1, "unknown": []}
    again = json.loads(_sabal("import", project, labelled, "--json"))
    assert again == {"labels": 0, "skips": 0, "already": 11, "waiting": 1, "unknown": []}
    rows = [json.loads(line) for line in _sabal("export", project, "-f", "jsonl").splitlines()]
    assert {row["id"]: row["label"] for row in rows} == said
    assert {row["id"]: row["weight"] for row in rows} == {
        task["data"]["sabal_id"]: task["data"]["sabal_weight"] for task in batch[:-1]
    }
    assert {row["annotator"] for row in rows} <= {"sabal@example.com", "label-studio-1"}

    _sabal(*export)
    following = [task["data"]["sabal_id"] for task in json.loads(tasks.read_text())]
    assert following[0] == items[-1]
    assert len(following) == 11
    assert not set(following[1:]) & set(items)

    # Labels that come with their tasks are welcome there, too.
    _sabal("export", project, "--format", "label-studio", "--out", tasks)
    answers.write_text("{}")
    _through_sdk(server, config, tasks, answers, labelled)
    exported = json.loads(labelled.read_text(encoding="utf-8"))
    kept = {task["data"]["sabal_id"]: task["annotations"] for task in exported}
    assert kept.keys() == said.keys()
    for item, (annotation,) in kept.items():
        assert annotation["was_cancelled"] == (said[item] is None)
        assert [part["value"]["choices"] for part in annotation["result"]] == (
            [] if said[item] is None else [[said[item]]]
        )


def _write_texts(path: Path, count: int) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "body"])
        for k in range(count):
            writer.writerow([f"item {k}", f"{TEXTS[k % len(TEXTS)]} number {k}"])


def _through_sdk(server: str, *files: Path) -> None:
    command = [BIN / "python", Path(__file__).with_name("through_sdk.py"), server, TOKEN, *files]
    subprocess.run(command, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})


def _sabal(*arguments: object) -> str:
    done = subprocess.run(
        [SABAL, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    """Until the server answers; its first start makes its database."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310  (loopback)
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    pytest.fail(f"Label Studio did not start:\n{log.read_text()[-3000:]}")


def _end(process: subprocess.Popen) -> None:
    """The server and whatever it started: they are a group of their own."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
