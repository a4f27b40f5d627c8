"""How long a label waits at most while commands work on the same project.

    python scripts/label_wait.py --rows 1000000
    python scripts/label_wait.py --rows 1000000 --changes 50000   # a part of it, in a full project
    python scripts/label_wait.py --rows 1000000 --database-url postgresql+psycopg://me@host/empty

Four people label over HTTP, and their pages ask for the status every five seconds, as open ones do.
Meanwhile commands run one after the other, each in a process of its own:
`sabal import` of so many labels, `sabal add` of so many items, `sabal classes rename` and `merge`,
and `sabal export`. With `--changes` the project has its labels from the start, and the first two
commands add only so many rows. At the end every answer that was acknowledged is compared with the
database.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

import numpy as np
from serving import served

from sabal.labeling.project import Project
from sabal.labeling.store.records import ImportedLabel, NewBatchItem

PEOPLE = 4
OPEN = 60_000
"""Items that people may label meanwhile."""
PAUSE_SECONDS = 0.05
STATUS_SECONDS = 5.0


def make_project(folder: Path, rows: int, changes: int | None, url: str | None) -> Path:
    """Texts, of which the last ones are in a batch and the others in a file of labels.

    Another file has more texts.
    """
    write_texts(folder / "texts.csv", range(rows + OPEN))
    write_changes(folder, rows, rows if changes is None else changes)
    given = {} if url is None else {"database_url": url}
    with Project.create(
        folder / "p", data=folder / "texts.csv", classes=["yes", "no", "spare"], **given
    ) as project:
        batch = [NewBatchItem(row) for row in range(rows, rows + OPEN)]
        project.store.add_round(0, batch, strategy="random")
        if changes is not None:
            labels = (ImportedLabel(f"i{row}", "yes", "somebody") for row in range(rows))
            project.store.import_labels(labels)
    return folder / "p"


def write_changes(folder: Path, rows: int, changes: int) -> None:
    """Write a file of labels and one of new items."""
    write_texts(folder / "more.csv", range(rows + OPEN, rows + OPEN + changes))
    with (folder / "labels.csv").open("w") as file:
        file.write("id,label\n")
        file.writelines(f"i{row},{'yes' if row % 2 else 'no'}\n" for row in range(changes))


def write_texts(path: Path, rows: range) -> None:
    """Write a file of items."""
    with path.open("w") as file:
        file.write("id,text\n")
        file.writelines(f"i{row},text {row}\n" for row in rows)


class Person(threading.Thread):
    """Somebody who asks for items and labels them until told to stop."""

    def __init__(self, address: str, name: str, stop: threading.Event) -> None:
        super().__init__(name=name)
        self.address, self.stop = address, stop
        # When an answer came, and after how many seconds.
        self.waits: dict[str, list[tuple[float, float]]] = {"label": [], "next": []}
        self.acknowledged: list[str] = []
        self.refused = 0

    def run(self) -> None:
        """Label."""
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=300)
        while not self.stop.is_set():
            asked = f"/api/next?annotator={self.name}&count=10"
            items = self._call(connection, "next", "GET", asked).get("items", [])
            for item in items:
                body = {"annotator": self.name, "item": item["id"], "label": "yes"}
                body["submission"] = str(uuid.uuid4())
                if "error" in self._call(connection, "label", "POST", "/api/labels", body):
                    self.refused += 1
                else:
                    self.acknowledged.append(body["submission"])
                time.sleep(PAUSE_SECONDS)
                if self.stop.is_set():
                    break
        connection.close()

    def _call(
        self,
        connection: http.client.HTTPConnection,
        what: str,
        method: str,
        path: str,
        body: dict[str, str] | None = None,
    ) -> dict[str, list]:
        content = None if body is None else json.dumps(body)
        started = time.perf_counter()
        connection.request(method, path, content, {"Content-Type": "application/json"})
        answer = json.load(connection.getresponse())
        now = time.perf_counter()
        self.waits[what].append((now, now - started))
        return answer


class Page(threading.Thread):
    """An open page, which asks for the status from time to time until told to stop."""

    def __init__(self, address: str, stop: threading.Event) -> None:
        super().__init__()
        self.address, self.stop = address, stop

    def run(self) -> None:
        """Ask."""
        place = self.address.removeprefix("http://")
        while not self.stop.wait(STATUS_SECONDS):
            connection = http.client.HTTPConnection(place, timeout=300)
            connection.request("GET", "/api/status")
            connection.getresponse().read()
            connection.close()


def commands(folder: Path) -> dict[str, list[str | Path]]:
    """Return the commands to run by name; people never use the class that changes."""
    data = folder.parent
    return {
        "import": ["import", folder, data / "labels.csv"],
        "add": ["add", folder, data / "more.csv"],
        "classes rename": ["classes", folder, "rename", "spare", "rest"],
        "classes merge": ["classes", folder, "merge", "rest", "no"],
        "export": ["export", folder, "--out", data / "out.csv"],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000, help="labels to import")
    parser.add_argument("--changes", type=int, help="add so many, to a project that has the rows")
    parser.add_argument("--database-url", help="an empty PostgreSQL database [SQLite]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        measure(make_project(Path(place), given.rows, given.changes, given.database_url))


def measure(folder: Path) -> None:
    """Run the commands while people label, and print how long these waited."""
    stop = threading.Event()
    with served(folder, worker=False) as (address, _):
        people = [Person(address, f"person{n}", stop) for n in range(PEOPLE)]
        everything = [*people, *(Page(address, stop) for _ in people)]
        for each in everything:
            each.start()
        for name, words in commands(folder).items():
            started = time.perf_counter()
            command = [sys.executable, "-m", "sabal", *words]
            done = subprocess.run(command, check=False)  # noqa: S603  # nosec B603  # our own
            ended = time.perf_counter()
            print(f"{name}: exit code {done.returncode}, {ended - started:.0f} s")
            time.sleep(1.0)  # for the answers to what was sent meanwhile
            tell_waits(people, started)
        stop.set()
        for each in everything:
            each.join()
    tell_answers(folder, people)


def tell_waits(people: list[Person], since: float) -> None:
    """Print how long people waited for what was answered since a time."""
    for what in ("label", "next"):
        found = [wait for person in people for at, wait in person.waits[what] if at >= since]
        if not found:
            print(f"  {what}: no request")
            continue
        median, late = np.percentile(found, [50, 99])
        print(
            f"  {what}: median {1000 * median:.0f} ms, p99 {1000 * late:.0f} ms, "
            f"longest {max(found):.2f} s ({len(found)} requests)",
            flush=True,
        )


def tell_answers(folder: Path, people: list[Person]) -> None:
    """Print what became of the answers."""
    acknowledged = {each for person in people for each in person.acknowledged}
    with Project.open(folder, to_read=True) as project:
        stored = {answer.submission for answer in project.store.history()}
    print(
        f"acknowledged {len(acknowledged)}, lost {len(acknowledged - stored)}, "
        f"refused {sum(person.refused for person in people)}, stored in all {len(stored)}"
    )


if __name__ == "__main__":
    main()
