"""No acknowledged label is ever lost: the app is killed again and again while people label.

`make torture` does the same with 200 kills.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import uuid

from sabal.labeling.project import Project
from sabal.labeling.store import Chosen

KILLS = int(os.environ.get("SABAL_KILLS", "10"))
PEOPLE = 4
ITEMS = 4_000
CLASSES = ("yes", "no")
SERVE = (
    "import sys; from sabal.labeling.project import Project; "
    "from sabal.labeling.web import create_app; import uvicorn; "
    "app = create_app(Project.open(sys.argv[1]), worker=False); "
    "uvicorn.run(app, port=int(sys.argv[2]), log_level='warning')"
)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Server:
    """The app in a process of its own, at one port."""

    def __init__(self, folder) -> None:
        self.folder, self.port = folder, free_port()
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(self.folder), str(self.port)]
        )

    def answers(self) -> bool:
        try:
            return ask(self.port, "GET", "/api/status")[0] == 200
        except OSError:
            return False

    def wait(self) -> None:
        deadline = time.monotonic() + 60
        while not self.answers():
            assert time.monotonic() < deadline, "the app does not come back"
            time.sleep(0.05)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def ask(port: int, method: str, path: str, body: dict | None = None) -> tuple[int, dict]:
    """One request; raises OSError if the answer does not come whole."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(str(error)) from error
    finally:
        connection.close()


class Person(threading.Thread):
    """Labels whatever comes; sends an answer again, with the same id, until it is acknowledged."""

    def __init__(self, name: str, port: int, stop: threading.Event) -> None:
        super().__init__()
        self.person, self.port, self.stop = name, port, stop
        self.acknowledged: list[tuple[str, str, str]] = []
        self.refused: list[dict] = []

    def run(self) -> None:
        while not self.stop.is_set():
            try:
                _, found = ask(self.port, "GET", f"/api/next?annotator={self.person}&count=3")
            except OSError:
                time.sleep(0.02)
                continue
            for item in found.get("items", []):
                self.label(item["id"])

    def label(self, item: str) -> None:
        submission, label = str(uuid.uuid4()), random.choice(CLASSES)  # noqa: S311
        body = {"submission": submission, "annotator": self.person, "item": item, "label": label}
        while True:
            try:
                status, answer = ask(self.port, "POST", "/api/labels", body)
            except OSError:
                if self.stop.is_set():
                    return  # never acknowledged: nothing is promised
                time.sleep(0.02)
                continue
            if status == 200:
                self.acknowledged.append((submission, item, label))
            else:
                self.refused.append(answer)
            return


def make_project(folder, items: int) -> Project:
    data = folder / "texts.csv"
    rows = "".join(f"t{k},text {k}\n" for k in range(items))
    data.write_text("id,text\n" + rows, encoding="utf-8")
    project = Project.create(folder / "p", data=data, classes=list(CLASSES), budget=items)
    project.store.add_round(0, [Chosen(row) for row in range(items)], strategy="random")
    return project


def test_no_acknowledged_label_is_lost_when_the_app_is_killed(tmp_path):
    random.seed(KILLS)
    make_project(tmp_path, ITEMS).close()
    server, stop = Server(tmp_path / "p"), threading.Event()
    server.wait()
    people = [Person(f"p{k}", server.port, stop) for k in range(PEOPLE)]
    for person in people:
        person.start()
    for _ in range(KILLS):
        time.sleep(random.uniform(0.05, 0.6))  # noqa: S311
        server.kill()
        server.start()
        server.wait()
    stop.set()
    for person in people:
        person.join(timeout=60)
    server.kill()

    with Project.open(tmp_path / "p") as project:
        history = project.store.history()
        stored = {each.submission: each for each in history}
        assert len(stored) == len(history)
        for person in people:
            assert person.refused == []
            mine = [each for each in history if each.annotator == person.person]
            kept = [(each.submission, each.item, each.label) for each in mine]
            known = set(person.acknowledged)
            # In order and exactly once; what was stored and never acknowledged may be there too.
            assert [each for each in kept if each in known] == person.acknowledged
        # Nobody answered what somebody else had answered.
        assert len({each.item for each in history}) == len(history)
        # What was leased to people who are gone comes back.
        left = ITEMS - len(history)
        assert project.store.status().remaining == left
    database = sqlite3.connect(tmp_path / "p" / "sabal.db")
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    database.close()
    acknowledged = sum(len(person.acknowledged) for person in people)
    assert acknowledged >= KILLS
    print(f"\n{KILLS} kills, {acknowledged} labels acknowledged, {len(history)} stored")
