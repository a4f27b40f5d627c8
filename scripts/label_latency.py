"""How fast the labelling app answers while the model is being trained again.

Three figures, on a project with features of its own: from the key press to the next item on the
screen in Chromium; from sending `POST /api/labels` to its durable answer; and from the last answer
that a batch needs to the batch. The next batch is chosen early and often by default, so that the
worker is busy most of the time; figures are printed for the moments when it was, and for all.

    python scripts/label_latency.py --presses 300
    python scripts/label_latency.py --width 32 --classes 30 --batch 40 --choose-at 0.8
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import sync_playwright
from serving import served

from sabal.labeling.project import Project

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
BUSY = ("training", "choosing")
WATCH = """
() => {
  const stage = document.getElementById("stage");
  window.samples = [];
  document.addEventListener("keydown", (event) => {
    const before = stage.dataset.item;
    const look = () => {
      const now = stage.dataset.item;
      if (!now || now === before) return requestAnimationFrame(look);
      // The frame after the one that draws the item: by then it is on the screen.
      requestAnimationFrame(() => {
        window.samples.push([Date.now(), performance.now() - event.timeStamp]);
      });
    };
    requestAnimationFrame(look);
  }, true);
}
"""


@dataclass(frozen=True)
class Sample:
    """How long something took, and when it was over (seconds since 1970)."""

    at: float
    milliseconds: float


def make_project(folder: Path, given: argparse.Namespace) -> Path:
    """Random features and texts; anything may be the label."""
    rng = np.random.default_rng(0)
    features = pa.array(list(rng.normal(size=(given.items, given.width)).astype(np.float32)))
    texts = [f"This is the text of item {n}." for n in range(given.items)]
    table = pa.table({"text": texts, "features": features})
    pq.write_table(table, folder / "pool.parquet")
    project = Project.create(
        folder / "project",
        data=folder / "pool.parquet",
        classes=[str(n) for n in range(given.classes)],
        initial=given.batch,
        batch=given.batch,
        choose_at=given.choose_at,
        budget=given.items,
    )
    project.close()
    return project.folder


def press_keys(address: str, presses: int, pause: float) -> list[Sample]:
    """Label by keyboard in a browser."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.goto(address)
        page.fill("#name", "presser")
        page.keyboard.press("Enter")
        page.wait_for_selector("#stage[data-item]:not([data-item=''])", state="attached")
        page.evaluate(WATCH)
        for number in range(presses):
            page.keyboard.press(str(number % 10))
            time.sleep(pause)
            while page.evaluate("window.samples.length") <= number:
                time.sleep(0.01)
        samples = page.evaluate("window.samples")
        browser.close()
    return [Sample(at / 1000, milliseconds) for at, milliseconds in samples]


def post_labels(address: str, posts: int, pause: float) -> list[Sample]:
    """Label as a program does, on one connection."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)

    def call(method: str, path: str, body: dict[str, object] | None = None) -> dict[str, list]:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.load(response)
        if response.status != 200:
            raise SystemExit(str(answer))
        return answer

    samples: list[Sample] = []
    while len(samples) < posts:
        items = call("GET", "/api/next?annotator=program&count=20")["items"]
        for item in items[: posts - len(samples)]:
            body = {
                "submission": str(uuid.uuid4()),
                "annotator": "program",
                "item": item["id"],
                "label": str(len(samples) % 10),
            }
            started = time.perf_counter()
            call("POST", "/api/labels", body)
            samples.append(Sample(time.time(), 1000 * (time.perf_counter() - started)))
            time.sleep(pause)
    connection.close()
    return samples


def busy_times(folder: Path) -> list[tuple[float, float]]:
    """When the worker was training or choosing."""
    with sqlite3.connect(folder / "sabal.db") as database:
        rows = database.execute("SELECT state, at FROM states ORDER BY id").fetchall()
    states = [(state, datetime.fromisoformat(at).timestamp()) for state, at in rows]
    ends = [at for _, at in states[1:]] + [time.time()]
    return [(at, end) for (state, at), end in zip(states, ends, strict=True) if state in BUSY]


def batch_waits(folder: Path, choose_at: float) -> list[Sample]:
    """Return how long each batch took, from the last answer that it needed."""
    with sqlite3.connect(folder / "sabal.db") as database:
        chosen = dict(database.execute("SELECT number, chosen_at FROM rounds").fetchall())
        sizes = dict(database.execute("SELECT round, COUNT(*) FROM batch_items GROUP BY round"))
        answers = database.execute("SELECT round, answered_at FROM answers ORDER BY id").fetchall()
    samples = []
    for number, size in sizes.items():
        times = [at for round_, at in answers if round_ == number]
        enough = math.ceil(choose_at * size - 1e-9)
        if number + 1 in chosen and len(times) >= enough:
            begin, end = map(datetime.fromisoformat, (times[enough - 1], chosen[number + 1]))
            samples.append(Sample(end.timestamp(), 1000 * (end - begin).total_seconds()))
    return samples


def tell(name: str, samples: Sequence[Sample], busy: Sequence[tuple[float, float]]) -> None:
    """Print the median and the 99th percentile."""

    def was_busy(sample: Sample) -> bool:
        began = sample.at - sample.milliseconds / 1000
        return any(start <= sample.at and began <= end for start, end in busy)

    for when, chosen in [
        ("while the worker trains or chooses", list(filter(was_busy, samples))),
        ("in all", samples),
    ]:
        times = [sample.milliseconds for sample in chosen]
        if not times:
            print(f"{name}, {when}: no sample")
            continue
        median, late = np.percentile(times, [50, 99])
        print(
            f"{name}, {when}: median {median:.1f} ms, p99 {late:.1f} ms, "
            f"max {max(times):.1f} ms ({len(times)} samples)"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--presses", type=int, default=300, help="keys, and as many posts")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds between two of them")
    parser.add_argument("--items", type=int, default=20_000, help="size of the pool")
    parser.add_argument("--width", type=int, default=256, help="features of an item")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch", type=int, default=60, help="items chosen at a time")
    parser.add_argument("--choose-at", type=float, default=0.1, help="share that is answered first")
    given = parser.parse_args()
    measures: list[tuple[str, Callable[[str, int, float], list[Sample]]]] = [
        ("Key press to next item on the screen", press_keys),
        ("POST /api/labels", post_labels),
    ]
    # More classes have two digits each, which would be two presses for an item.
    measures = measures if given.classes <= 10 else measures[1:]
    for name, measure in measures:
        with tempfile.TemporaryDirectory() as place:
            folder = make_project(Path(place), given)
            with served(folder) as (address, _):
                wait_for_items(address)
                samples = measure(address, given.presses, given.pause)
            tell(name, samples, busy_times(folder))
            waits = batch_waits(folder, given.choose_at)
            tell("  last answer that a batch needs, to the batch", waits, busy_times(folder))
            print(f"  load of the machine: {os.getloadavg()[0]:.1f}", flush=True)


def wait_for_items(address: str) -> None:
    """Until the first batch is chosen."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    remaining = 0
    while not remaining:
        time.sleep(0.2)
        connection.request("GET", "/api/status")
        remaining = json.load(connection.getresponse())["remaining"]
    connection.close()


if __name__ == "__main__":
    main()
