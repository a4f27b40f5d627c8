"""A full disk is said in words, and takes nothing away: what was there stays, what was refused can
be done again.

The disk is full in the sense of RLIMIT_FSIZE: writing beyond a size fails, in the middle of
a file, as it does when the last block is gone.
"""

from __future__ import annotations

import json
import re
import sqlite3
import uuid
import warnings
from importlib import resources

import numpy as np
import pyarrow.parquet as pq
import pytest

from disk_limits import no_file_above
from forks import COMMAND, COMMAND_IMPORTS, Forks
from sabal.labeling.project import Project
from sabal.labeling.store.database_errors import DISK_FULL, LOCKED
from sabal.labeling.store.records import NewBatchItem
from sabal.labeling.web import create_app

with warnings.catch_warnings():
    # With the older httpx it works as well, and says so.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

ITEMS = 400
SIMULATE = (
    "simulate", "digits", "--strategies", "sabal,random", "--seeds", 1,
    "--init", 15, "--batch", 10, "--rounds", 1, "--jobs", 1,
)  # fmt: skip


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    with Forks(COMMAND_IMPORTS, COMMAND, tmp_path_factory.mktemp("log") / "said") as forks:
        yield forks


@pytest.fixture
def folder(tmp_path):
    data = tmp_path / "texts.csv"
    rows = "".join(f"t{k},text {k}\n" for k in range(ITEMS))
    data.write_text("id,text\n" + rows, encoding="utf-8")
    with Project.create(tmp_path / "p", data=data, classes=["yes", "no"]) as project:
        project.store.add_round(0, [NewBatchItem(row) for row in range(ITEMS)], strategy="random")
    return tmp_path / "p"


def refused(forks, *command, largest_file):
    """Run a command that fails for want of room, in one line; gives that line."""
    assert forks.run(*command, largest_file=largest_file) == 2, forks.log.read_text()
    said = forks.log.read_text()
    assert "Traceback" not in said
    line = said.strip().splitlines()[-1]
    assert line.startswith("sabal: expected ")
    assert any(word in line for word in ("room", "full", "too large", "disk I/O"))
    return line


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def labels_of(folder):
    with Project.open(folder) as project:
        return [(row.id, row.label, row.annotator) for row in project.store.labels()]


def check_database(folder):
    database = sqlite3.connect(folder / "sabal.db")
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


def test_the_page_knows_the_words_for_a_full_disk():
    script = resources.files("sabal.labeling.web").joinpath("static/connection.js").read_text()
    pattern = re.search(r"NO_ROOM = /(.+)/i;", script)[1]
    for said in (DISK_FULL, "disk I/O error", "File too large", "No space left on device"):
        assert re.search(pattern, said, re.IGNORECASE)
    assert not re.search(pattern, LOCKED, re.IGNORECASE)


def test_labels_wait_until_there_is_room(folder, caplog):
    def body(number):
        return {
            "submission": str(uuid.uuid4()), "annotator": "ada", "item": f"t{number}",
            "label": "yes",
        }  # fmt: skip

    stored, refused = [], []
    with Project.open(folder) as project:
        app = create_app(project, worker=False)
        with TestClient(app, base_url="http://127.0.0.1") as client:
            sent = [body(number) for number in range(60)]
            assert client.post("/api/labels", json=sent[0]).status_code == 200
            largest = max(path.stat().st_size for path in folder.glob("sabal.db*"))
            with no_file_above(largest + 100_000):
                for each in sent[1:]:
                    answer = client.post("/api/labels", json=each)
                    if answer.status_code == 200:
                        stored.append(each)
                        continue
                    assert answer.status_code == 503
                    error = answer.json()["error"]
                    assert "disk" in error["got"]
                    assert "room" in error["fix"]
                    refused.append(each)
                # Who only looks can still look.
                assert client.get("/api/status").status_code == 200
                assert client.get("/dashboard").status_code == 200
                assert client.get("/api/export").status_code == 200
                asked = client.get("/api/next", params={"annotator": "ada", "count": 100})
                assert asked.status_code == 503
            assert stored
            # It is in the output of the app, for whoever runs it.
            assert any("disk" in line for line in caplog.messages)
            assert refused
            labelled = [row.id for row in project.store.labels()]
            assert labelled == [each["item"] for each in (sent[0], *stored)]
            for each in refused:
                assert client.post("/api/labels", json=each).status_code == 200
            assert client.get("/api/next", params={"annotator": "ada"}).status_code == 200
            labelled = [row.id for row in project.store.labels()]
            assert labelled == [each["item"] for each in (sent[0], *stored, *refused)]
    check_database(folder)


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_a_batch_that_does_not_fit_leaves_the_one_before(forks, tmp_path, ending):
    rng = np.random.default_rng(0)
    pool = tmp_path / "pool.npz"
    np.savez(pool, features=rng.normal(size=(999, 2)), logits=rng.normal(size=(999, 3)))
    out = tmp_path / f"batch{ending}"
    command = ("select", pool, "--budget", 999, "-s", "random", "--out", out)
    refused(forks, *command, largest_file=4_000)
    assert not out.exists()
    assert forks.run(*command, "--seed", 1) == 0
    before = out.read_bytes()
    assert str(out) in refused(forks, *command, largest_file=4_000)
    assert out.read_bytes() == before
    assert names_in(tmp_path) == sorted([out.name, pool.name])


def test_an_export_that_does_not_fit_leaves_the_one_before(forks, folder, tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\n" + "".join(f"t{k},yes\n" for k in range(ITEMS)))
    assert forks.run("import", folder, labels) == 0, forks.log.read_text()
    for ending in ("csv", "jsonl", "parquet", "json"):
        out = tmp_path / f"out.{ending}"
        out.write_text("what was there")
        refused(forks, "export", folder, "--out", out, largest_file=3_000)
        assert out.read_text() == "what was there"
        assert not [name for name in names_in(tmp_path) if name.startswith(".")]
        assert forks.run("export", folder, "--out", out) == 0
        assert out.stat().st_size > 3_000


def test_an_import_that_does_not_fit_is_completed_by_the_next(forks, folder, tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\n" + "".join(f"t{k},yes\n" for k in range(ITEMS)))
    refused(forks, "import", folder, labels, largest_file=50_000)
    # It is written by small transactions, between which people label.
    assert len(labels_of(folder)) < ITEMS
    check_database(folder)
    assert forks.run("import", folder, labels) == 0, forks.log.read_text()
    assert len(labels_of(folder)) == ITEMS


def test_a_project_that_does_not_fit_is_not_half_made(forks, folder, tmp_path):
    made = tmp_path / "new"
    data = tmp_path / "texts.csv"
    command = ("init", made, "--data", data, "--classes", "a,b")
    refused(forks, *command, largest_file=20_000)
    assert not made.exists() or names_in(made) == []
    assert forks.run(*command) == 0, forks.log.read_text()


def test_a_simulation_that_does_not_fit_goes_on_later(forks, tmp_path):
    unbroken = tmp_path / "unbroken"
    assert forks.run(*SIMULATE, "--out", unbroken) == 0, forks.log.read_text()
    sizes = sorted({path.stat().st_size for path in unbroken.rglob("*") if path.is_file()})
    out = tmp_path / "full"
    # From next to no room to almost enough: it fails at other places, and keeps what it has.
    kept = -1
    for largest in (700, sizes[len(sizes) // 2] - 1, sizes[-1] - 1):
        refused(forks, *SIMULATE, "--out", out, largest_file=largest)
        files = [path for path in out.rglob("*") if path.is_file()]
        assert not [path.name for path in files if path.name.startswith(".")]
        for path in files:
            if path.suffix == ".json":
                json.loads(path.read_text(encoding="utf-8"))
        assert len(files) >= kept
        kept = len(files)
    assert kept > 0
    assert forks.run(*SIMULATE, "--out", out) == 0, forks.log.read_text()
    assert result(out) == result(unbroken)


def result(folder):
    table = pq.read_table(folder / "results.parquet").drop_columns(["select_seconds", "select_mb"])
    return table.to_pylist(), (folder / "selections.parquet").read_bytes()
