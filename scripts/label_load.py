"""Many people label at once: whether the app holds, and how fast it answers.

The real app with its worker in a process of its own, a pool with features, and annotators who ask
for items, label, skip now and then and undo now and then, over loopback. Ends with exit code 1 if
a request failed, an item was answered twice, or an acknowledged answer is not in the database
exactly once.

    python scripts/label_load.py --annotators 50 --seconds 120
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
import uuid
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from serving import served

from sabal.labeling.project import Project
from sabal.labeling.store.records import Answer

CLASSES = [f"class {n}" for n in range(5)]
COUNT = 5
"""Items that an annotator asks for at a time, as the page does."""
SKIPS, UNDOES = 0.03, 0.03
MAX_ERRORS = 20


@dataclass
class Tally:
    """What happened, as the annotators saw it."""

    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    acknowledged: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    waited: int = 0


@dataclass(frozen=True)
class Report:
    """The figures of a run. Memory is in megabytes: at the start, in the middle, at the end."""

    annotators: int
    seconds: float
    requests: int
    answers: int
    answers_a_second: float
    next_p50_ms: float
    next_p99_ms: float
    labels_p50_ms: float
    labels_p99_ms: float
    waited_for_a_batch: int
    rounds: int
    memory_mb: list[float | None]
    errors: int
    first_error: str | None
    answered_twice: int
    lost: int

    @property
    def holds(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.errors or self.answered_twice or self.lost)


def make_project(folder: Path, items: int, batch: int) -> Path:
    """Random features and texts; anything may be the label."""
    rng = np.random.default_rng(0)
    features = pa.array(list(rng.normal(size=(items, 16)).astype(np.float32)))
    table = pa.table({"text": [f"Text {n}." for n in range(items)], "features": features})
    pq.write_table(table, folder / "pool.parquet")
    with Project.create(
        folder / "project",
        data=folder / "pool.parquet",
        classes=CLASSES,
        initial=batch,
        batch=batch,
        choose_at=0.2,
        budget=items,
        first="random",
        strategy="margin",
    ) as project:
        return project.folder


def memory_mb(process: int) -> float | None:
    """Return the memory of a process; None where the system does not report it."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return None
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return round(int(found[1]) / 1024, 1) if found else None


class Person:
    """One annotator: asks, answers, and goes on, until the time is over."""

    def __init__(self, number: int, client: httpx.AsyncClient, tally: Tally, pause: float) -> None:
        self.name, self.client, self.tally, self.pause = f"p{number}", client, tally, pause
        self.answered = 0
        self.draw = random.Random(number)  # noqa: S311  # nosec B311  # no secret

    async def work(self, until: float) -> None:
        """Label until it is `until` on the clock, and one item at least."""

        def over() -> bool:
            return self.answered > 0 and time.monotonic() >= until

        while not over() and len(self.tally.errors) < MAX_ERRORS:
            asked = {"annotator": self.name, "count": COUNT}
            found = await self.call("next", "GET", "/api/next", params=asked)
            items = found["items"] if found else []
            if not items:
                self.tally.waited += 1
                await asyncio.sleep(0.2)
            for item in items:
                await self.rest()
                if over():
                    return
                await self.answer(item["id"])

    async def answer(self, item: str) -> None:
        """Label an item, or skip it; take it back now and then."""
        skip = self.draw.random() < SKIPS
        what = {"skip": True} if skip else {"label": self.draw.choice(CLASSES)}
        await self.send("labels", {"item": item, **what})
        self.answered += 1
        if self.draw.random() < UNDOES:
            await self.send("undo", {})

    async def send(self, name: str, content: dict[str, Any]) -> None:
        """Post something that is stored."""
        submission = str(uuid.uuid4())
        body = {"submission": submission, "annotator": self.name, **content}
        told = await self.call(name, "POST", f"/api/{name}", json=body)
        if told is not None and told["answer"] is not None:
            self.tally.acknowledged.append(submission)

    async def call(self, name: str, method: str, path: str, **more: Any) -> dict[str, Any] | None:
        """One request, measured; None if it failed."""
        started = time.perf_counter()
        try:
            answer = await self.client.request(method, path, **more)
        except httpx.HTTPError as error:
            self.tally.errors.append(f"{method} {path}: {error!r}")
            return None
        self.tally.seconds[name].append(time.perf_counter() - started)
        if answer.status_code != 200:
            self.tally.errors.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
            return None
        return answer.json()

    async def rest(self) -> None:
        """As long as it takes to look at an item."""
        await asyncio.sleep(self.draw.expovariate(1 / self.pause) if self.pause else 0)


async def drive(
    address: str, process: int, annotators: int, seconds: float, pause: float
) -> tuple[Tally, list[float | None]]:
    """Let everybody label for some time; also the memory of the app meanwhile."""
    tally = Tally()
    limits = httpx.Limits(max_connections=annotators, max_keepalive_connections=annotators)
    async with httpx.AsyncClient(base_url=address, limits=limits, timeout=60) as client:
        await first_batch(client)
        memory = [memory_mb(process)]
        until = time.monotonic() + seconds
        people = [Person(number, client, tally, pause) for number in range(annotators)]
        tasks = [asyncio.create_task(person.work(until)) for person in people]
        await asyncio.sleep(seconds / 2)
        memory.append(memory_mb(process))
        await asyncio.gather(*tasks)
        memory.append(memory_mb(process))
    return tally, memory


async def first_batch(client: httpx.AsyncClient) -> None:
    """Wait until there is something to label."""
    while not (await client.get("/api/status")).json()["remaining"]:
        await asyncio.sleep(0.1)


def answered_twice(history: list[Answer]) -> int:
    """Items on which more than one answer stands."""
    undone = {each.undoes for each in history}
    standing = [each for each in history if each.action != "undo" and each.id not in undone]
    return sum(number > 1 for number in Counter(each.item for each in standing).values())


def measure(annotators: int, seconds: float, pause: float, items: int, batch: int) -> Report:
    """Run the load against a new project, then compare with what is stored."""
    with tempfile.TemporaryDirectory() as place:
        folder = make_project(Path(place), items, batch)
        with served(folder) as (address, process):
            run = drive(address, process, annotators, seconds, pause)
            tally, memory = asyncio.run(run)
        with Project.open(folder) as project:
            history, rounds = project.store.history(), len(project.store.rounds())
    stored = Counter(each.submission for each in history)

    def late(name: str, percent: float) -> float:
        taken = tally.seconds[name]
        return round(1000 * float(np.percentile(taken, percent)), 1) if taken else 0.0

    return Report(
        annotators=annotators,
        seconds=seconds,
        requests=sum(map(len, tally.seconds.values())),
        answers=len(tally.acknowledged),
        answers_a_second=round(len(tally.acknowledged) / seconds, 1),
        next_p50_ms=late("next", 50),
        next_p99_ms=late("next", 99),
        labels_p50_ms=late("labels", 50),
        labels_p99_ms=late("labels", 99),
        waited_for_a_batch=tally.waited,
        rounds=rounds,
        memory_mb=memory,
        errors=len(tally.errors),
        first_error=tally.errors[0] if tally.errors else None,
        answered_twice=answered_twice(history),
        lost=sum(stored[submission] != 1 for submission in tally.acknowledged),
    )


def main() -> None:
    """Measure, print, and say by the exit code whether it holds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--annotators", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--pause", type=float, default=0.3, help="mean seconds for one item")
    parser.add_argument("--items", type=int, default=100_000, help="size of the pool")
    parser.add_argument("--batch", type=int, default=1_000, help="items chosen at a time")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    given = parser.parse_args()
    report = measure(given.annotators, given.seconds, given.pause, given.items, given.batch)
    if given.json:
        print(json.dumps(asdict(report)))
    else:
        for name, value in asdict(report).items():
            print(f"{name.replace('_', ' '):20} {value}")
    sys.exit(0 if report.holds else 1)


if __name__ == "__main__":
    main()
