"""How long a label waits at most while many labels are imported into the same project.

    python scripts/label_wait.py --rows 1000000
    python scripts/label_wait.py --rows 1000000 --database-url postgresql+psycopg://me@host/empty

Four people label over HTTP while `sabal import` runs in a process of its own. At the end every
answer that was acknowledged is compared with the database.
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
from sabal.labeling.store.records import NewBatchItem

PEOPLE = 4
OPEN = 20_000
"""Items that people may label meanwhile."""
PAUSE_SECONDS = 0.05


def make_project(folder: Path, rows: int, url: str | None) -> Path:
    """Texts, of which the last ones are in a batch and the others in a file of labels."""
    with (folder / "texts.csv").open("w") as file:
        file.write("id,text\n")
        file.writelines(f"i{row},text {row}\n" for row in range(rows + OPEN))
    with (folder / "labels.csv").open("w") as file:
        file.write("id,label\n")
        file.writelines(f"i{row},{'yes' if row % 2 else 'no'}\n" for row in range(rows))
    given = {} if url is None else {"database_url": url}
    with Project.create(
        folder / "p", data=folder / "texts.csv", classes=["yes", "no"], **given
    ) as project:
        batch = [NewBatchItem(row) for row in range(rows, rows + OPEN)]
        project.store.add_round(0, batch, strategy="random")
    return folder / "p"


class Person(threading.Thread):
    """Somebody who asks for items and labels them until told to stop."""

    def __init__(self, address: str, name: str, stop: threading.Event) -> None:
        super().__init__(name=name)
        self.address, self.stop = address, stop
        self.waits: dict[str, list[float]] = {"label": [], "next": []}
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
        self.waits[what].append(time.perf_counter() - started)
        return answer


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000, help="labels to import")
    parser.add_argument("--database-url", help="an empty PostgreSQL database [SQLite]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = make_project(Path(place), given.rows, given.database_url)
        stop = threading.Event()
        with served(folder, worker=False) as (address, _):
            people = [Person(address, f"person{n}", stop) for n in range(PEOPLE)]
            for person in people:
                person.start()
            started = time.perf_counter()
            command = [
                sys.executable,
                "-m",
                "sabal",
                "import",
                folder,
                folder.parent / "labels.csv",
            ]
            done = subprocess.run(command, check=False)  # noqa: S603  # nosec B603  # our own
            took = time.perf_counter() - started
            stop.set()
            for person in people:
                person.join()
        tell(folder, given.rows, people, done.returncode, took)


def tell(folder: Path, rows: int, people: list[Person], code: int, took: float) -> None:
    """Print the waits, and what became of the answers."""
    for what in ("label", "next"):
        waits = np.array([wait for person in people for wait in person.waits[what]])
        median, late = np.percentile(waits, [50, 99])
        print(
            f"{what}: median {1000 * median:.0f} ms, p99 {1000 * late:.0f} ms, "
            f"longest {waits.max():.2f} s ({len(waits)} requests)"
        )
    acknowledged = {each for person in people for each in person.acknowledged}
    with Project.open(folder, to_read=True) as project:
        stored = {answer.submission for answer in project.store.history()}
    print(f"import of {rows} rows: exit code {code}, {took:.0f} s")
    print(
        f"acknowledged {len(acknowledged)}, lost {len(acknowledged - stored)}, "
        f"refused {sum(person.refused for person in people)}, stored in all {len(stored)}"
    )


if __name__ == "__main__":
    main()
