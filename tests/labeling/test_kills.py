"""No acknowledged label is ever lost: the app is killed again and again while people label.

`make torture` does the same with 200 kills.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import sqlite3
import threading
import time
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta

from forks import SERVE, SERVE_IMPORTS, Forks
from sabal.labeling.project import Project
from sabal.labeling.store.records import NewBatchItem

KILLS = int(os.environ.get("SABAL_KILLS", "10"))
PEOPLE = 4
ITEMS = 4_000
CLASSES = ("yes", "no")
LEASE_SECONDS = 300.0


class Server:
    """The app in a process of its own, at one port."""

    def __init__(self, forks: Forks, folder) -> None:
        self.forks, self.folder = forks, folder
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = int(one.getsockname()[1])
        self.start()

    def start(self) -> None:
        self.process = self.forks.start(self.folder, self.port)
        deadline = time.monotonic() + 300
        while not self.answers():
            assert time.monotonic() < deadline, "the app does not come back"
            time.sleep(0.02)

    def answers(self) -> bool:
        try:
            return ask(self.port, "GET", "/api/status")[0] == 200
        except OSError:
            return False

    def kill(self) -> None:
        assert self.forks.kill(self.process) == -9


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
    """Labels, skips and undoes; sends each again, with the same id, until it is acknowledged."""

    def __init__(self, name: str, port: int, stop: threading.Event) -> None:
        super().__init__()
        self.person, self.port, self.stop = name, port, stop
        self.draw = random.Random(name)  # noqa: S311
        self.acknowledged: list[tuple[str, str, str, str | None]] = []
        self.refused: list[dict] = []

    def run(self) -> None:
        while not self.stop.is_set():
            try:
                _, found = ask(self.port, "GET", f"/api/next?annotator={self.person}&count=3")
            except OSError:
                time.sleep(0.02)
                continue
            if not found.get("items"):
                # Everything is answered: take much of it back, so that there is always work.
                for _ in range(100):
                    self.send("/api/undo", {})
            for item in found.get("items", []):
                self.send("/api/labels", {"item": item["id"], **self.answer()})
                if self.draw.random() < 0.1:
                    self.send("/api/undo", {})

    def answer(self) -> dict:
        if self.draw.random() < 0.1:
            return {"skip": True}
        return {"label": self.draw.choice(CLASSES)}

    def send(self, path: str, content: dict) -> None:
        body = {"submission": str(uuid.uuid4()), "annotator": self.person, **content}
        while True:
            try:
                status, told = ask(self.port, "POST", path, body)
            except OSError:
                if self.stop.is_set():
                    return  # never acknowledged: nothing is promised
                time.sleep(0.02)
                continue
            if status != 200:
                self.refused.append(told)
            elif told["answer"] is not None:
                stored = told["answer"]
                self.acknowledged.append(
                    (body["submission"], stored["action"], stored["item"], stored["label"])
                )
            return


def make_project(folder, items: int) -> None:
    data = folder / "texts.csv"
    rows = "".join(f"t{k},text {k}\n" for k in range(items))
    data.write_text("id,text\n" + rows, encoding="utf-8")
    with Project.create(
        folder / "p",
        data=data,
        classes=list(CLASSES),
        budget=items,
        lease_seconds=LEASE_SECONDS,
    ) as project:
        project.store.add_round(0, [NewBatchItem(row) for row in range(items)], strategy="random")


def label_through_kills(forks: Forks, folder) -> list[Person]:
    server, stop = Server(forks, folder), threading.Event()
    people = [Person(f"p{k}", server.port, stop) for k in range(PEOPLE)]
    for person in people:
        person.start()
    draw = random.Random(KILLS)  # noqa: S311
    for _ in range(KILLS):
        # Something is acknowledged between two kills, however busy the machine is.
        before, deadline = acknowledged(people), time.monotonic() + 120
        while acknowledged(people) == before and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(draw.uniform(0, 0.3))
        server.kill()
        server.start()
    stop.set()
    for person in people:
        person.join(timeout=300)
        assert not person.is_alive()
    server.kill()
    return people


def acknowledged(people: list[Person]) -> int:
    return sum(len(person.acknowledged) for person in people)


def test_no_acknowledged_label_is_lost_when_the_app_is_killed(tmp_path):
    make_project(tmp_path, ITEMS)
    with Forks(SERVE_IMPORTS, SERVE, tmp_path / "log") as forks:
        people = label_through_kills(forks, tmp_path / "p")

    with Project.open(tmp_path / "p") as project:
        history = project.store.history()
        assert len({each.submission for each in history}) == len(history)
        for person in people:
            assert person.refused == []
            mine = [each for each in history if each.annotator == person.person]
            kept = [(each.submission, each.action, each.item, each.label) for each in mine]
            known = set(person.acknowledged)
            # In order and exactly once; the last one may be stored and never acknowledged.
            assert [each for each in kept if each in known] == person.acknowledged
            assert len(kept) <= len(person.acknowledged) + 1
        # What stands is what the history says, and nobody answered what somebody else had answered.
        undone = {each.undoes for each in history}
        standing = [each for each in history if each.action != "undo" and each.id not in undone]
        stands = {each.item: (each.annotator, each.label) for each in standing}
        assert len(stands) == len(standing)
        rows = [*project.store.labels(), *project.store.skipped()]
        assert {row.id: (row.annotator, row.label) for row in rows} == stands
        open_items = {f"t{k}" for k in range(ITEMS)} - set(stands)
        assert project.store.status().remaining == len(open_items)
    check_leases(tmp_path / "p", people, open_items)
    check_database(tmp_path / "p" / "sabal.db")
    actions = Counter(each[1] for person in people for each in person.acknowledged)
    assert actions.total() >= KILLS
    print(f"\n{KILLS} kills; acknowledged: {dict(actions)}; stored: {len(history)}")


def check_leases(folder, people: list[Person], open_items: set[str]) -> None:
    """Leases outlive the kills: others wait for them, their holders do not, and then they end."""
    names = {person.person for person in people}
    with Project.open(folder) as project:
        held = leases_in(folder / "sabal.db")
        assert {annotator for _, annotator in held} <= names
        assert len({item for item, _ in held}) == len(held)
        offered = {each.item for each in project.store.next_items("new", 1_000)}
        assert not offered & {item for item, _ in held}
        for name in names:
            mine = {item for item, annotator in held if annotator == name} & open_items
            if mine:
                assert {each.item for each in project.store.next_items(name, len(mine))} == mine
    later = datetime.now(UTC) + timedelta(seconds=2 * LEASE_SECONDS)
    with Project.open(folder, clock=lambda: later) as project:
        left = {each.item for each in project.store.next_items("later", 1_000)}
        first = sorted(open_items, key=lambda item: int(item[1:]))[:1_000]
        assert left == set(first)


def leases_in(path) -> set[tuple[str, str]]:
    database = sqlite3.connect(path)
    query = "SELECT items.key, annotator FROM leases JOIN items ON items.id = item_id"
    found = set(database.execute(query))
    database.close()
    return found


def check_database(path) -> None:
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    database.close()
