"""`--out` of `sabal select` and `sabal export`: standard output, devices, links, and failures."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from devices import is_device, make_device
from makers import make_pool
from sabal.labeling.project import Project
from sabal.labeling.store.records import NewBatchItem

SABAL = (sys.executable, "-c", "from sabal.cli import main; main()")


def run(*words, code=0, stdout=subprocess.PIPE):
    answer = subprocess.run(
        [*SABAL, *map(str, words)], stdout=stdout, stderr=subprocess.PIPE, text=True
    )
    assert answer.returncode == code, answer.stderr
    return answer


def one_line(answer):
    assert len(answer.stderr.strip().splitlines()) == 1, answer.stderr
    assert answer.stderr.startswith("sabal: expected to write standard output; got ")
    return answer.stderr


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    made = make_pool(n=30)
    path = tmp_path_factory.mktemp("pool") / "pool.npz"
    np.savez(path, features=made.features, probs=made.probs, more=np.arange(30))
    return path


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    data = folder / "texts.csv"
    data.write_text("id,text\n" + "".join(f"t{k},text {k}\n" for k in range(30)))
    (folder / "labels.csv").write_text("id,label\nt1,a\nt2,b\n")
    with Project.create(folder / "p", data=data, classes=["a", "b"]) as made:
        made.store.add_round(0, [NewBatchItem(row) for row in range(5)], strategy="random")
    run("import", folder / "p", folder / "labels.csv")
    return folder / "p"


@pytest.mark.parametrize("out", ["-", "/dev/stdout"])
def test_a_batch_on_standard_output_is_nothing_but_the_batch(pool, tmp_path, out):
    asked = ("select", pool, "--budget", 12)
    run(*asked, "--out", tmp_path / "batch.csv")
    answer = run(*asked, "--out", out)
    assert answer.stdout.encode() == (tmp_path / "batch.csv").read_bytes().replace(b"\r\n", b"\n")
    assert len(list(csv.DictReader(io.StringIO(answer.stdout)))) == 12
    # The table, and what was not used, are for people.
    assert "12 items chosen" in answer.stderr
    assert "all are on standard output" in answer.stderr
    assert "Not used: more" in answer.stderr


def test_a_batch_is_appended_to_what_standard_output_is(pool, tmp_path):
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("a") as file:
        run("select", pool, "--budget", 3, "--out", "/dev/stdout", stdout=file)
        run("select", pool, "--budget", 3, "--out", "-", stdout=file)
    lines = log.read_text().splitlines()
    assert lines[0] == "before"
    assert len(lines) == 1 + 2 * 4


def test_two_things_on_standard_output_are_refused(pool):
    answer = run("select", pool, "--budget", 3, "--out", "-", "--json", code=2)
    assert answer.stdout == ""
    assert answer.stderr.startswith("sabal: expected --json or --out")


def test_a_batch_can_go_to_a_device_or_through_a_link(pool, tmp_path):
    device = make_device(tmp_path, "null")
    answer = run("select", pool, "--budget", 3, "--out", device)
    assert "3 items chosen" in answer.stdout
    assert is_device(device)
    (tmp_path / "link.jsonl").symlink_to("batch.txt")
    run("select", pool, "--budget", 3, "--out", tmp_path / "link.jsonl")
    lines = (tmp_path / "batch.txt").read_text().splitlines()
    assert [json.loads(line)["rank"] for line in lines] == [1, 2, 3]


@pytest.mark.parametrize("out", ["-", "/dev/stdout"])
def test_labels_on_standard_output(project, out):
    plain = run("export", project).stdout
    answer = run("export", project, "--out", out)
    assert answer.stdout == plain
    assert answer.stderr == ""
    assert [row["id"] for row in csv.DictReader(io.StringIO(plain))] == ["t1", "t2"]
    lines = run("export", project, "--out", out, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["t1", "t2"]


def test_labels_can_go_to_a_device(project, tmp_path):
    device = make_device(tmp_path, "null")
    assert "Written to" in run("export", project, "--out", device).stdout
    assert is_device(device)


def test_standard_output_that_fails_is_one_line(pool, project, tmp_path):
    device = make_device(tmp_path, "full")
    select = ("select", pool, "--budget", 3)
    for words in ((*select, "--out", "-"), (*select, "--out", "/dev/stdout"), (*select, "--json"),
                  ("export", project), ("export", project, "--out", "-"), ("strategies", "--json"),
                  ("--version",)):  # fmt: skip
        with open(device, "w") as full:
            assert "room" in one_line(run(*words, code=2, stdout=full)), words


def test_a_reader_that_has_gone_is_no_traceback(pool):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        answer = run("select", pool, "--budget", 3, "--out", "-", code=2, stdout=writing)
        assert "Broken pipe" in one_line(answer)
        assert run("strategies", "--json", code=1, stdout=writing).stderr == ""
    finally:
        os.close(writing)
