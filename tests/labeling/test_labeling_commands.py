"""`sabal init`, `label`, `import` and `export` as a user runs them."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from labeling_helpers import answer
from sabal.labeling.project import Project
from sabal.labeling.settings import read_settings

SABAL = Path(sys.executable).parent / "sabal"
WORDS = {"sport": "ball goal team match win", "food": "bread soup salt oven taste"}


@pytest.fixture
def run(monkeypatch, capfdbinary):
    """Runs a command in this process: a process each would take a minute."""
    from sabal.cli import main

    def call(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["sabal", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        sys.stdout.flush()
        out, err = (part.decode() for part in capfdbinary.readouterr())
        assert stop.value.code == code, err
        return SimpleNamespace(stdout=out, stderr=err)

    return call


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for k in range(12):
        pixels = rng.integers(0, 255, (10, 10, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / ("more" if k % 2 else ".") / f"{k}.png")
    (folder / "notes.txt").write_text("no image")
    return folder


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.csv"
    rng = np.random.default_rng(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["number", "body"])
        for k in range(40):
            words = WORDS["sport" if k % 2 else "food"].split()
            writer.writerow([f"n{k}", " ".join(rng.choice(words, 6)) + f', said "{k}" 🦜'])
    return path


@pytest.fixture
def project(run, texts, tmp_path):
    folder = tmp_path / "project"
    run(
        "init", folder, "--data", texts, "--text-column", "body", "--id-column", "number",
        "--classes", "sport,food", "--initial", 8, "--batch", 6, "--check-share", 0,
    )  # fmt: skip
    return folder


def truth(item):
    return "sport" if int(item[1:]) % 2 else "food"


def fill_in(source, target):
    """Give every row of an exported batch its label, as a person with a spreadsheet would."""
    with source.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"label": truth(row["id"])} for row in rows)
    return [row["id"] for row in rows]


@pytest.mark.parametrize("command", ["init", "label", "import", "export"])
def test_help_has_an_example(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "120")
    shown = run(command, "--help").stdout
    assert "Example" in shown
    assert f"sabal {command}" in shown


def test_a_project_of_images(run, photos, tmp_path):
    folder = tmp_path / "pets"
    answer = run("init", folder, "--data", photos, "--classes", "cat, dog,other", "--initial", 5)
    assert "12 items" in answer.stdout
    assert f"sabal label {folder}" in answer.stdout
    settings = tomllib.loads((folder / "sabal.toml").read_text())
    assert settings["project"]["classes"] == ["cat", "dog", "other"]
    assert settings["project"]["kind"] == "image"
    assert settings["loop"]["initial"] == 5
    tasks = json.loads(run("export", folder, "--batch", "-f", "label-studio").stdout)
    assert len(tasks) >= 5
    assert all(task["data"]["image"].startswith("/data/local-files/?d=") for task in tasks)


def test_a_project_of_own_features(run, tmp_path):
    rng = np.random.default_rng(0)
    table = {
        "id": [f"row {k}" for k in range(30)],
        "text": [f"text {k}" for k in range(30)],
        "features": pa.array(rng.normal(size=(30, 4)).tolist()),
    }
    pq.write_table(pa.table(table), tmp_path / "pool.parquet")
    folder = tmp_path / "project"
    run("init", folder, "--data", tmp_path / "pool.parquet", "--classes", "a,b", "--initial", 6)
    rows = run("export", folder, "--batch", "-f", "jsonl").stdout.splitlines()
    assert len(rows) >= 6
    assert all(json.loads(row)["content"].startswith("text ") for row in rows)


def test_a_class_may_have_a_comma_in_its_name(run, texts, tmp_path):
    folder = tmp_path / "project"
    run("init", folder, "--data", texts, "--text-column", "body", "--class", "a, b", "--class", "c")
    settings = tomllib.loads((folder / "sabal.toml").read_text())
    assert settings["project"]["classes"] == ["a, b", "c"]


def test_the_loop_goes_round_without_a_server(run, project, tmp_path):
    """Export a batch, label it, import it, and export the next one, which a model has chosen."""
    batch, filled = tmp_path / "batch.csv", tmp_path / "filled.csv"
    seen = []
    for size in (8, 6, 6):
        assert f"Written to {batch}" in run("export", project, "--batch", "--out", batch).stdout
        items = fill_in(batch, filled)
        assert len(items) == size
        assert not set(items) & set(seen)
        seen += items
        assert f"{size} labels and 0 skips added" in run("import", project, filled).stdout
    labels = [
        json.loads(line) for line in run("export", project, "-f", "jsonl").stdout.splitlines()
    ]
    assert {row["id"]: row["label"] for row in labels} == {item: truth(item) for item in seen}
    assert {row["round"] for row in labels} == {0, 1, 2}


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (8, "the budget of 8 labels is used up"),
        (100, "all 40 items of the pool are answered"),
    ],
)
def test_the_end_is_said(run, texts, tmp_path, budget, said):
    folder, batch, filled = tmp_path / "project", tmp_path / "batch.csv", tmp_path / "filled.csv"
    run(
        "init", folder, "--data", texts, "--text-column", "body", "--id-column", "number",
        "--classes", "sport,food", "--initial", min(budget, 40), "--check-share", 0,
        "--budget", budget,
    )  # fmt: skip
    assert "nothing waits" not in run("export", folder, "--batch", "--out", batch).stderr
    fill_in(batch, filled)
    run("import", folder, filled)
    last = run("export", folder, "--batch", "-f", "label-studio")
    assert json.loads(last.stdout) == []
    assert f"nothing waits for a label: {said}" in last.stderr


def test_what_another_person_is_to_answer_is_said(run, texts, tmp_path):
    folder, batch, filled = tmp_path / "project", tmp_path / "batch.csv", tmp_path / "filled.csv"
    run(
        "init", folder, "--data", texts, "--text-column", "body", "--id-column", "number",
        "--classes", "sport,food", "--initial", 6, "--overlap", 2, "--check-share", 0,
    )  # fmt: skip
    assert "annotator" not in run("export", folder, "--batch", "--out", batch).stderr
    fill_in(batch, filled)
    run("import", folder, filled)
    assert "6 items wait for a second annotator" in run("export", folder, "--batch").stderr


def test_the_batch_is_the_same_until_it_is_answered(run, project, tmp_path):
    first = run("export", project, "--batch").stdout
    assert run("export", project, "--batch").stdout == first


def test_an_export_comes_back_into_another_project(run, project, texts, tmp_path):
    batch, filled = tmp_path / "batch.csv", tmp_path / "filled.csv"
    run("export", project, "--batch", "--out", batch)
    fill_in(batch, filled)
    run("import", project, filled)
    other = tmp_path / "other"
    run(
        "init", other, "--data", texts, "--text-column", "body", "--id-column", "number",
        "--classes", "sport,food",
    )  # fmt: skip
    for ending in ("csv", "jsonl", "parquet", "json"):
        file = tmp_path / f"labels.{ending}"
        run("export", project, "--out", file)
        report = json.loads(run("import", other, file, "--json").stdout)
        assert report["labels"] == (8 if ending == "csv" else 0)
        assert report["unknown"] == []
    tables = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for folder, table in zip((project, other), tables, strict=True):
        run("export", folder, "--out", table)
    assert tables[0].read_bytes() == tables[1].read_bytes()
    assert "8 there already" in run("import", project, tables[1]).stdout


@contextmanager
def somebody():
    """Not root, who may write everywhere."""
    if os.getuid() != 0:
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.mark.skipif(not hasattr(os, "setresuid"), reason="permissions as Linux has them")
@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
def test_labels_leave_a_project_that_cannot_be_written(run, project, killed):
    """With the log that a killed app leaves behind, or without one."""
    (project.parent / "labels.csv").write_text("id,label\nn1,sport\nn2,food\n")
    run("import", project, project.parent / "labels.csv")
    run("export", project)  # imports what somebody else may not be able to read
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place, "a 100% project?")
        if killed:
            with Project.open(project) as opened:
                answer(opened.store, "n1", "food", who="import")
                shutil.copytree(project, copy)
        else:
            shutil.copytree(project, copy)
        for path in (*copy.rglob("*"), copy, Path(place)):
            path.chmod(0o555 if path.is_dir() else 0o444)
        before = {path.name: path.read_bytes() for path in copy.iterdir() if path.is_file()}
        assert ("sabal.db-wal" in before) == killed
        with somebody():
            told = run("export", copy)
        after = {path.name: path.read_bytes() for path in copy.iterdir() if path.is_file()}
        for path in (Path(place), copy):
            path.chmod(0o755)
    labels = sorted(line.split(",")[:3] for line in told.stdout.splitlines()[1:])
    first = "food" if killed else "sport"
    assert labels == [["n1", first, "import"], ["n2", "food", "import"]]
    assert after == before


def test_ids_of_another_project_are_named(run, project, tmp_path):
    (tmp_path / "labels.csv").write_text("id,label\nn1,sport\nx1,food\nx2,food\n")
    answer = run("import", project, tmp_path / "labels.csv")
    assert "1 label and 0 skips added" in answer.stdout
    assert "2 ids not in this project: 'x1', 'x2'" in answer.stderr


def test_label_studio_gets_its_interface(run, project, tmp_path):
    config = tmp_path / "config.xml"
    run(
        "export", project, "--batch", "-f", "label-studio", "-o", tmp_path / "batch.json",
        "--config", config,
    )  # fmt: skip
    assert '<Choice value="sport"/>' in config.read_text()
    assert len(json.loads((tmp_path / "batch.json").read_text())) == 8


def test_the_app_starts_on_an_example_and_stops_when_told(tmp_path):
    command = [SABAL, "label", "--example", tmp_path / "digits", "--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert address is not None, line
        with urllib.request.urlopen(f"{address[0]}api/status", timeout=30) as reply:  # noqa: S310
            status = json.load(reply)
        assert status["classes"] == [str(digit) for digit in range(10)]
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, errors
    assert re.search("Stopping.*Every answer is stored", rest, re.DOTALL)
    assert "Traceback" not in errors


MISTAKES = [
    ("init", "new", "--data", "absent", "--classes", "a,b"),
    ("init", "new", "--data", "TEXTS", "--classes", "a,b", "--text-column", "nothing"),
    ("init", "new", "--data", "TEXTS", "--text-column", "body"),
    ("init", "new", "--data", "TEXTS", "--text-column", "body", "--classes", "one"),
    ("init", "new", "--data", "TEXTS", "--text-column", "body", "--classes", "a,b,"),
    ("init", "new", "--data", "TEXTS", "--text-column", "body", "--classes", "a,, b"),
    ("init", "new", "--data", "TEXTS", "--text-column", "body", "--classes", "a,b, a"),
    ("init", "new", "--data", "TEXTS", "--text-column", "body", "--classes", "a,b", "--class", "a"),
    ("init", "new", "--data", "TEXTS", "--text-column", "body", "--class", "a", "--class", "a "),
    ("init", "new", "--data", "TEXTS", "--text-column", "body", "--classes", "a,b", "--batch", "0"),
    ("init", "PROJECT", "--data", "TEXTS", "--text-column", "body", "--classes", "a,b"),
    ("init", "new", "--classes", "a,b"),
    ("label", "absent", "--no-browser"),
    ("label", "PROJECT", "--port", "no"),
    ("import", "PROJECT", "absent.csv"),
    ("import", "PROJECT", "TEXTS"),
    ("import", "absent", "TEXTS"),
    ("import", "PROJECT", "TEXTS", "--format", "excel"),
    ("export", "absent"),
    ("export", "PROJECT", "--format", "excel"),
    ("export", "PROJECT", "--format", "parquet"),
    ("export", "PROJECT", "--out", "labels.docx"),
    ("export", "PROJECT", "--out", "no/such/folder/labels.csv"),
]


def test_mistakes_are_one_line_on_stderr_and_exit_2(run, project, texts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = (project / "sabal.toml").read_bytes()
    named = {"TEXTS": texts, "PROJECT": project}
    for mistake in MISTAKES:
        answer = run(*(named.get(word, word) for word in mistake), code=2)
        assert answer.stderr.startswith("sabal: "), mistake
        assert len(answer.stderr.strip().splitlines()) == 1, (mistake, answer.stderr)
        assert not (tmp_path / "new" / "sabal.toml").exists(), mistake
    assert (project / "sabal.toml").read_bytes() == before


# People


def test_people_get_links_that_are_shown_once(run, texts, tmp_path):
    folder = tmp_path / "p"
    run("init", folder, "--data", texts, "--text-column", "body", "--classes", "sport,food")
    assert "Nobody has a personal link" in run("people", folder).stdout
    made = run("people", folder, "add", "Ann")
    assert "nobody leads the project yet" in made.stderr
    token = made.stdout.strip().split("token=")[1]
    made = json.loads(run("people", folder, "add", "Lea", "--role", "lead", "--json").stdout)
    assert made["link"].endswith(f"/login?token={made['token']}")
    with Project.open(folder) as project:
        assert project.store.person_with(token).name == "Ann"
        assert project.store.person_with(made["token"]).role == "lead"
    listed = run("people", folder, "list").stdout
    assert listed.splitlines() == ["annotator  Ann", "lead       Lea"]
    assert "token" not in listed
    renewed = run("people", folder, "renew", "Ann", "--role", "reader").stdout
    assert token not in renewed
    run("people", folder, "remove", "Lea")
    found = json.loads(run("people", folder, "--json").stdout)
    assert found == [{"name": "Ann", "role": "reader"}]


@pytest.mark.parametrize(
    "arguments",
    [
        ("add",),
        ("list", "Ann"),
        ("promote", "Ann"),
        ("remove", "Ann"),
        ("add", "Ann", "--role", "x"),
    ],
)
def test_people_who_cannot_be_are_refused(run, texts, tmp_path, arguments):
    folder = tmp_path / "p"
    run("init", folder, "--data", texts, "--text-column", "body", "--classes", "sport,food")
    assert "expected" in run("people", folder, *arguments, code=2).stderr


# Classes and guidelines


def test_classes_are_listed_and_changed(run, project):
    assert run("classes", project).stdout.split() == ["0", "sport", "0", "food"]
    run("classes", project, "add", "other, and more")
    run("classes", project, "rename", "food", "meals")
    found = json.loads(
        run("classes", project, "merge", "other, and more", "meals", "--json").stdout
    )
    assert found == {"sport": 0, "meals": 0}
    assert read_settings(project / "sabal.toml").classes == ("sport", "meals")
    for mistake in (
        ("add",),
        ("rename", "sport"),
        ("list", "x"),
        ("drop", "sport"),
        ("add", "sport"),
    ):
        assert "expected" in run("classes", project, *mistake, code=2).stderr
    edited = (project / "sabal.toml").read_text().replace('"meals"', '"menus"')
    (project / "sabal.toml").write_text(edited)
    refused = run("label", project, code=2).stderr
    assert 'set classes = ["sport", "meals"] there' in refused


def test_guidelines_are_set_and_printed(run, project, tmp_path):
    (tmp_path / "all.md").write_text("# All\n\nLook twice.\n")
    (tmp_path / "food.md").write_text("Anything to eat.\n")
    run("guidelines", project, tmp_path / "all.md")
    run("guidelines", project, tmp_path / "food.md", "--class", "food")
    assert run("guidelines", project).stdout == (
        "# All\n\nLook twice.\n\n## food\n\nAnything to eat.\n"
    )
    assert run("guidelines", project, "--class", "food").stdout == "Anything to eat.\n"
    assert "expected" in run("guidelines", project, "--class", "x", code=2).stderr
    assert "expected" in run("guidelines", project, tmp_path / "none.md", code=2).stderr
