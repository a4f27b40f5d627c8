"""The life of a project in one test: over HTTP and on the command line, with a real server."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
import uuid

from waiting import until

WORDS = {"sport": "ball goal team match win", "food": "bread soup salt oven taste"}
PEOPLE = {"Lea": "lead", "Ann": "annotator", "Bob": "annotator"}


def sabal(*arguments, code=0):
    command = [sys.executable, "-m", "sabal", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == code, done.stderr
    return done.stdout


def truth(item):
    return "sport" if int(item[1:]) % 2 else "food"


def write_texts(path, numbers):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        for n in numbers:
            words = WORDS[truth(f"t{n}")].split()
            writer.writerow([f"t{n}", " ".join(words[(n + k) % 5] for k in range(4)) + f" {n}"])
    return path


class Client:
    """A person with a personal link."""

    def __init__(self, address, name, token):
        self.address, self.name, self.token = address, name, token

    def call(self, path, body=None):
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def get(self, path):
        code, content = self.call(path)
        assert code == 200, content
        return json.loads(content)

    def answer(self, item, label, address="/api/labels"):
        body = {"submission": str(uuid.uuid4()), "annotator": self.name, "item": item}
        return self.call(address, {**body, "label": label})

    def label_all(self, label=truth):
        while items := self.get(f"/api/next?annotator={self.name}&count=50")["items"]:
            for item in items:
                assert self.answer(item["id"], label(item["id"]))[0] == 200


def test_the_life_of_a_project(tmp_path):
    folder, texts = tmp_path / "p", write_texts(tmp_path / "texts.csv", range(40))
    sabal("init", folder, "--data", texts, "--classes", "sport,food", "--overlap", 2,
          "--backbone", "tfidf", "--initial", 8, "--batch", 6, "--budget", 28)  # fmt: skip
    links = {
        name: json.loads(sabal("people", folder, "add", name, "--role", role, "--json"))["token"]
        for name, role in PEOPLE.items()
    }
    command = [sys.executable, "-m", "sabal", "label", str(folder), "--no-browser", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+?(?=/ )", server.stdout.readline())[0]
        people = {name: Client(address, name, token) for name, token in links.items()}
        play(folder, tmp_path, people)
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()
    out = tmp_path / "labels.csv"
    sabal("export", folder, "--out", out)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert {row["annotator"] for row in rows} == set(PEOPLE)
    assert {row["label"] for row in rows} <= {"sport", "meals"}
    assert all(row["content"] for row in rows)
    new = write_texts(tmp_path / "new.csv", range(100, 120))
    sabal("predict", folder, new, "--out", tmp_path / "predictions.csv")
    found = list(csv.DictReader((tmp_path / "predictions.csv").read_text().splitlines()))
    expected = ["sport" if truth(row["id"]) == "sport" else "meals" for row in found]
    right = [row["label"] == label for row, label in zip(found, expected, strict=True)]
    assert sum(right) >= 18


def play(folder, tmp_path, people):
    lea, ann, bob = people.values()
    until(lambda: lea.get("/api/status")["remaining"] > 0)
    assert ann.call("/api/export")[0] == 403
    assert ann.answer("t0", "food")[0] in (200, 400)
    ann.label_all()
    first = lea.get("/api/batch?round=0")["items"]
    wrong = first[0]["id"]
    bob.label_all(lambda item: "food" if item == wrong and truth(item) == "sport" else
                  "sport" if item == wrong else truth(item))  # fmt: skip
    # Rename a class while people label; an old page still sends the old name.
    renamed = {"action": "rename", "name": "food", "target": "meals"}
    assert bob.call("/api/classes", renamed)[0] == 403
    assert lea.call("/api/classes", renamed)[0] == 200
    until(lambda: lea.get("/api/status")["round"] == 1)
    sabal("add", folder, write_texts(tmp_path / "more.csv", range(30, 60)))
    until(lambda: lea.get("/api/status")["items"] == 60)
    # A person corrects a label of their own, and the lead decides what they disagree on.
    assert ann.answer(first[1]["id"], truth(first[1]["id"]))[0] == 200
    disputed = [each["id"] for each in lea.get("/api/disagreements")["items"]]
    assert disputed == [wrong]
    assert ann.answer(wrong, "sport", "/api/decisions")[0] == 403
    assert lea.answer(wrong, truth(wrong), "/api/decisions")[0] == 200
    assert lea.get("/api/disagreements")["items"] == []
    while not lea.get("/api/status")["finished"]:
        ann.label_all()
        bob.label_all()
        until(lambda: lea.get("/api/status")["finished"] or lea.get("/api/status")["remaining"])
    until(lambda: lea.get("/api/status")["training"] == "idle")
    assert set(lea.get("/api/status")["classes"]) == {"sport", "meals"}
