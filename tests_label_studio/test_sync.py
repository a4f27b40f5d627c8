"""`sabal sync` with a real Label Studio, and with either side killed. Opt-in."""
# ruff: noqa: S603  (tests assert, and start processes of their own)

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from running_server import SABAL, TOKEN, LabelStudio, sabal

from sabal.labeling.exchange.label_studio_server import LabelStudioServer
from sabal.labeling.label_studio_sync import LabelStudioSync
from sabal.labeling.project import Project
from sabal.labeling.store.database import utc_now

WORDS = {"good": "fine and quick", "bad": "late and loud", "other": "the usual train"}
SECONDS = 120
INITIAL, BATCH = 9, 6
DYING = """
import os, sys
from sabal.__main__ import main
from sabal.labeling.exchange.label_studio_server import LabelStudioServer
from sabal.labeling.store import Store

def dies(owner, name, first):
    original = getattr(owner, name)
    def dying(*arguments):
        if first:
            original(*arguments)
        os._exit(9)
    setattr(owner, name, dying)

moment = sys.argv.pop(1)
if moment == "before the push":
    dies(LabelStudioServer, "add", False)
elif moment == "after the push":
    dies(LabelStudioServer, "add", True)
elif moment == "after reading":
    dies(Store, "import_labels", True)
main()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with nothing labelled."""
    with (tmp_path / "texts.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        for k in range(60):
            name = list(WORDS)[k % 3]
            writer.writerow([f"item {k}", f"{name}: {WORDS[name]}, number {k}"])
    sabal(
        "init", tmp_path / "p", "--data", tmp_path / "texts.csv", "--classes", ",".join(WORDS),
        "--initial", INITIAL, "--batch", BATCH, "--check-share", 0, "--choose-at", 1,
        "--backbone", "tfidf",
    )  # fmt: skip
    return tmp_path / "p"


def options(server: LabelStudio, number: int) -> tuple[object, ...]:
    return "--label-studio", server.url, "--project", number


def once(folder: Path, server: LabelStudio, number: int) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(
        sabal("sync", folder, *options(server, number), "--once", "--json")
    )
    return report


def truth(task: dict[str, Any]) -> str:
    return str(task["data"]["text"]).partition(":")[0]


def stored(folder: Path) -> dict[str, str | None]:
    rows = [json.loads(line) for line in sabal("export", folder, "-f", "jsonl").splitlines()]
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["label"] for row in rows}


def ids(tasks: list[dict[str, Any]]) -> list[str]:
    found = [task["data"]["sabal_id"] for task in tasks]
    assert max(Counter(found).values(), default=0) <= 1, "a task was pushed twice"
    return found


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.5)


@contextlib.contextmanager
def syncing(
    folder: Path, server: LabelStudio, number: int, log: Path
) -> Iterator[subprocess.Popen]:
    """A running `sabal sync`, which is killed at the end."""
    command = [*SABAL, "sync", folder, *options(server, number), "--every", 0.2]
    with log.open("w") as file:
        process = subprocess.Popen(
            [str(part) for part in command],
            env={**os.environ, "LABEL_STUDIO_API_KEY": TOKEN},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_rounds_come_and_go_while_it_runs(
    server: LabelStudio, project: Path, tmp_path: Path
) -> None:
    """Killed after a push, restarted; Label Studio restarted; killed again."""
    number, answers = server.new_project(), {}

    def label_open(size: int) -> None:
        tasks = server.tasks(number)
        for task in tasks:
            if not task["annotations"]:
                answers[task["data"]["sabal_id"]] = truth(task)
                server.annotate(task, truth(task))
        assert len(ids(tasks)) == size

    def has(size: int) -> Callable[[], bool]:
        return lambda: len(ids(server.tasks(number))) == size

    with syncing(project, server, number, tmp_path / "log 1"):
        wait_for(has(INITIAL))
    label_open(INITIAL)  # nobody listens
    with syncing(project, server, number, tmp_path / "log 2") as process:
        wait_for(has(INITIAL + BATCH))
        assert stored(project) == answers
        server.stop()
        wait_for(lambda: "trying again" in (tmp_path / "log 2").read_text())
        server.start()
        label_open(INITIAL + BATCH)
        wait_for(has(INITIAL + 2 * BATCH))
        assert process.poll() is None
    assert stored(project) == answers
    log = (tmp_path / "log 2").read_text()
    assert log.count("trying again") == 1
    assert "6 tasks pushed" in log
    assert once(project, server, number) == {
        "labels": 0, "skips": 0, "pushed": 0, "delayed": 0, "steps": [], "open": BATCH,
    }  # fmt: skip
    newest = server.tasks(number)[-BATCH:]
    assert [task["data"]["sabal_rank"] for task in newest] == list(range(1, BATCH + 1))
    assert [task["data"]["sabal_priority"] for task in newest] == pytest.approx(
        [(BATCH - k) / BATCH for k in range(BATCH)]
    )
    for task in newest:
        (prediction,) = task["predictions"]
        assert prediction["result"][0]["value"]["choices"][0] in WORDS
        assert 0 < prediction["score"] <= 1


@pytest.mark.parametrize("moment", ["before the push", "after the push", "after reading"])
def test_it_may_die_at_any_moment(server: LabelStudio, project: Path, moment: str) -> None:
    """Nothing is pushed twice, and nothing is lost or read twice."""
    number = server.new_project()
    if moment == "after reading":
        once(project, server, number)
        for task in server.tasks(number):
            server.annotate(task, truth(task))
    command = [sys.executable, "-c", DYING, moment, "sync", project, *options(server, number)]
    died = subprocess.run(
        [*map(str, command), "--once"],
        env={**os.environ, "LABEL_STUDIO_API_KEY": TOKEN},
        capture_output=True,
    )
    assert died.returncode == 9, died.stderr
    then = once(project, server, number)
    tasks = server.tasks(number)
    if moment == "after reading":
        assert (then["labels"], then["pushed"]) == (0, BATCH)
        assert stored(project) == {t["data"]["sabal_id"]: truth(t) for t in tasks[:INITIAL]}
        assert len(ids(tasks)) == INITIAL + BATCH
    elif moment == "after the push":
        assert (then["pushed"], then["delayed"], len(ids(tasks))) == (0, 0, INITIAL)
    else:
        # They may still arrive, so it waits; after that it pushes them.
        assert (then["pushed"], then["delayed"], tasks) == (0, INITIAL, [])
        with Project.open(project, clock=lambda: utc_now() + timedelta(minutes=3)) as opened:
            place = LabelStudioServer(server.url, number, TOKEN)
            assert LabelStudioSync(opened, place).run_until_nothing_is_due().pushed == INITIAL
        assert len(ids(server.tasks(number))) == INITIAL


def test_two_at_once_push_every_task_once(server: LabelStudio, project: Path) -> None:
    number = server.new_project()
    command = [*SABAL, "sync", project, *options(server, number), "--once"]
    environment = {**os.environ, "LABEL_STUDIO_API_KEY": TOKEN}
    both = [subprocess.Popen([*map(str, command)], env=environment) for _ in range(2)]
    assert [process.wait(SECONDS) for process in both] == [0, 0]
    assert len(ids(server.tasks(number))) == INITIAL


def test_what_annotators_do_is_understood(server: LabelStudio, project: Path) -> None:
    """In an interface of their own: skips, changes, choices that are no classes, foreign tasks."""
    choices = "".join(f'<Choice value="{name}"/>' for name in (*WORDS, "unsure"))
    number = server.new_project(
        '<View><Text name="shown" value="$body"/><Choices name="mood" toName="shown">'
        f"{choices}</Choices></View>"
    )
    server.call("POST", f"/api/projects/{number}/import", [{"data": {"body": "not ours"}}])
    assert once(project, server, number)["pushed"] == INITIAL
    foreign, *tasks = server.tasks(number)
    said = ["good", None, "unsure", "bad"]
    first, *_ = [
        server.annotate(task, label, "mood", "shown")
        for task, label in zip(tasks, said, strict=False)
    ]
    server.annotate(foreign, "good", "mood", "shown")
    server.annotate(tasks[3], "unsure", "mood", "shown")  # after a class, which is kept
    assert once(project, server, number)["labels"] == 2
    keys = ids(tasks)
    assert stored(project) == {keys[0]: "good", keys[1]: None, keys[3]: "bad"}
    changed = {
        "type": "choices",
        "from_name": "mood",
        "to_name": "shown",
        "value": {"choices": ["other"]},
    }
    server.call("PATCH", f"/api/annotations/{first}/", {"result": [changed]})
    assert once(project, server, number)["labels"] == 1
    sabal("classes", project, "add", "unsure")
    assert once(project, server, number)["labels"] == 2
    assert stored(project) == {
        keys[0]: "other", keys[1]: None, keys[2]: "unsure", keys[3]: "unsure",
    }  # fmt: skip


def test_classes_that_are_added_appear_in_its_own_interface(
    server: LabelStudio, project: Path
) -> None:
    number = server.new_project()
    once(project, server, number)
    sabal("classes", project, "add", 'it\'s "new" & <b>')
    sabal("classes", project, "rename", "bad", "worse")
    once(project, server, number)
    task = server.tasks(number)[0]
    server.annotate(task, 'it\'s "new" & <b>')
    server.annotate(server.tasks(number)[1], "bad")  # by somebody whose page was open already
    assert once(project, server, number)["labels"] == 2
    assert sorted(map(str, stored(project).values())) == ['it\'s "new" & <b>', "worse"]


def test_an_interface_without_the_classes_is_refused(server: LabelStudio, project: Path) -> None:
    number = server.new_project(
        '<View><Text name="t" value="$t"/><TextArea name="a" toName="t"/></View>'
    )
    said = sabal("sync", project, *options(server, number), "--once", code=2)
    assert said.count("\n") == 1
    assert "choices of all classes" in said
    assert server.tasks(number) == []


def test_mistakes_are_one_line(server: LabelStudio, project: Path) -> None:
    for arguments, expected in [
        (("--label-studio", server.url, "--project", 9999), "no such project"),
        (("--label-studio", server.url, "--project", 1, "--token", "wrong"), "not accepted"),
        (("--label-studio", f"{server.url}/user", "--project", 1), "expected Label Studio"),
    ]:
        said = sabal("sync", project, *arguments, code=2)
        assert said.count("\n") == 1
        assert expected in said


def test_personal_access_tokens_work(server: LabelStudio, project: Path) -> None:
    server.call("POST", "/api/jwt/settings", {"api_tokens_enabled": True})
    token = server.call("POST", "/api/token/")["token"]
    number = server.new_project()
    sabal("sync", project, *options(server, number), "--once", "--token", token)
    assert len(ids(server.tasks(number))) == INITIAL
