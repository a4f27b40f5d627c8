"""Data that are added to a project: what is new is found, and the loop goes on with it."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from PIL import Image

from forks import COMMAND, COMMAND_IMPORTS, Forks
from labeling_digits import CLASSES, X, Y
from labeling_helpers import answer, settings, small_parts
from sabal.errors import FileError, InputError
from sabal.labeling.adding import add_data
from sabal.labeling.choosing import reserved_checks
from sabal.labeling.engine import Engine
from sabal.labeling.features.backbone import OwnFeatures
from sabal.labeling.features.feature_files import FeatureFiles
from sabal.labeling.project import Project
from sabal.labeling.store import schema
from sabal.labeling.store.database import Database
from sabal.labeling.store.records import AddReport, ImportedLabel

KILLS = int(os.environ.get("SABAL_KILLS", "6"))


def write_texts(path, numbers, texts=("bread soup salt", "ball goal team")):
    rows = "".join(f"t{n},{texts[n % 2]} {n}\n" for n in numbers)
    path.write_text(f"id,text\n{rows}")
    return path


def write_features(path, start, stop):
    ids = [f"d{k}" for k in range(start, stop)]
    pq.write_table(pa.table({"id": ids, "features": X[start:stop].tolist()}), path)
    return path


def write_image(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((9, 9, 3), value, dtype=np.uint8)
    pixels[:4] = 255 - value
    Image.fromarray(pixels).save(path)


def text_project(folder, **more):
    data = write_texts(folder / "texts.csv", range(20))
    given = {"backbone": "tfidf", "initial": 6, "batch": 4, **more}
    return Project.create(folder / "p", data=data, classes=["food", "sport"], **given)


def work(engine):
    done = []
    while step := engine.step():
        done.append(step)
    return done


def test_a_file_that_has_grown_is_added_again(tmp_path):
    with text_project(tmp_path) as project:
        write_texts(tmp_path / "texts.csv", range(26))
        assert add_data(project, tmp_path / "texts.csv") == AddReport(6, 20)
        assert add_data(project, tmp_path / "texts.csv") == AddReport(0, 26)
        other = write_texts(tmp_path / "other.csv", range(24, 30))
        assert add_data(project, other) == AddReport(4, 2)
        assert [item.key for item in project.items] == [f"t{n}" for n in range(30)]
        assert [item.id for item in project.items] == list(range(30))
        assert [source.rows for source in project.store.added_sources()] == [
            [20, 21, 22, 23, 24, 25],
            [2, 3, 4, 5],
        ]


def test_another_text_under_an_id_adds_nothing(tmp_path):
    with text_project(tmp_path) as project:
        other = write_texts(tmp_path / "other.csv", range(15, 30), texts=("a", "b"))
        with pytest.raises(InputError, match="'t15' again"):
            add_data(project, other)
        assert len(project.items) == 20
        assert project.store.added_sources() == []


def test_the_engine_goes_on_with_new_texts_and_computes_only_their_features(tmp_path):
    with text_project(tmp_path) as project:
        engine = Engine(project)
        work(engine)
        assert engine.step() is None
        first = project.folder / "features" / "000000.npy"
        before, made = first.read_bytes(), first.stat().st_mtime_ns
        add_data(project, write_texts(tmp_path / "more.csv", range(20, 50)))
        project.store.import_labels([ImportedLabel("t40", "food", "eve")])
        assert engine.step() == "features"
        work(engine)
        assert engine.step() is None
        assert (first.read_bytes(), first.stat().st_mtime_ns) == (before, made)
        rows = FeatureFiles(project).load()
        assert rows.shape[0] == 50
        # The obvious twin: what was fitted to the first texts says the same of a text again.
        assert np.load(first).shape == (20, rows.shape[1])
        assert project.store.status().items == 50
        while project.store.status().remaining:
            for each in project.store.next_items("ann", 99):
                label = "sport" if int(each.item[1:]) % 2 else "food"
                answer(project.store, each.item, label)
            work(engine)
        assert project.store.status().labeled == 50
        assert project.store.status().training == "idle"
        assert engine._head.measure_items(np.arange(50), np.arange(50) % 2)["accuracy"] == 1.0


def test_features_of_added_tables_are_those_in_them(tmp_path):
    data = write_features(tmp_path / "pool.parquet", 0, 40)
    with Project.create(tmp_path / "p", data=data, classes=CLASSES, check_share=0.2) as project:
        add_data(project, write_features(tmp_path / "more.parquet", 30, 60))
        write_features(tmp_path / "pool.parquet", 0, 70)
        assert add_data(project, data) == AddReport(10, 60)
        engine = Engine(project)
        work(engine)
        assert np.array_equal(FeatureFiles(project).load(), X[:70])
        for each in project.store.next_items("ann", 99):
            answer(project.store, each.item, CLASSES[Y[int(each.item[1:])]])
        assert "train" in work(engine)
        with pytest.raises(FileError, match="64 features"):
            add_data(project, write_texts(tmp_path / "texts.csv", range(3)))
        narrow = tmp_path / "narrow.parquet"
        pq.write_table(pa.table({"id": ["n"], "features": [[1.0]]}), narrow)
        with pytest.raises(FileError, match="64 features"):
            add_data(project, narrow)


def test_the_engine_works_between_the_parts_of_an_addition(tmp_path, monkeypatch):
    small_parts(monkeypatch, 4)
    data = write_features(tmp_path / "pool.parquet", 0, 10)
    with Project.create(tmp_path / "p", data=data, classes=CLASSES, check_share=0.2) as project:
        engine, seen = Engine(project), []

        def work_meanwhile(self):
            work(engine)
            seen.append(len(engine._keys))
            assert np.array_equal(engine._features_ND, X[: seen[-1]])

        work(engine)
        monkeypatch.setattr(Database, "let_others_write", work_meanwhile)
        add_data(project, write_features(tmp_path / "more.parquet", 10, 20))
        assert seen == [14, 18, 20]
        # Read once, although it was added in three parts.
        assert len(OwnFeatures(project)._tables) == 2


def test_items_that_are_added_while_features_are_loaded_are_noticed(tmp_path, monkeypatch):
    data = write_features(tmp_path / "pool.parquet", 0, 10)
    more = write_features(tmp_path / "more.parquet", 10, 20)
    with Project.create(tmp_path / "p", data=data, classes=CLASSES) as project:
        engine, load = Engine(project), FeatureFiles.load

        def add_after_loading(self):
            rows_ND = load(self)
            add_data(project, more)
            return rows_ND

        monkeypatch.setattr(FeatureFiles, "load", add_after_loading)
        work(engine)
        assert np.array_equal(engine._features_ND, X[:20])
        assert engine._keys == [f"d{k}" for k in range(20)]


def test_an_addition_that_is_killed_anywhere_is_completed_by_the_next(tmp_path):
    count, draw, killed, cut = 4_000, random.Random(KILLS), 0, 0  # noqa: S311
    more = tmp_path / "more.csv"
    rows = "".join(f"n{row},new {row},{row}\n" for row in range(count))
    more.write_text("id,text,number\n" + rows)
    with Forks(COMMAND_IMPORTS, COMMAND, tmp_path / "log") as forks:
        text_project(tmp_path).close()
        for number in range(KILLS):
            folder = tmp_path / str(number)
            shutil.copytree(tmp_path / "p", folder)
            process = forks.start("add", folder, more)
            wait_for_items(folder / "sabal.db", 20 + draw.randrange(count // 2))
            killed += forks.kill(process) == -9
            cut += 0 < check_numbers(folder) < count
            assert forks.run("add", folder, more) == 0, forks.log.read_text()
            assert check_numbers(folder) == count
    assert cut
    print(f"{killed} additions killed, {cut} in the middle; all completed by the next")


def wait_for_items(database, count):
    """Wait until so many items are in the pool."""
    deadline = time.monotonic() + 300
    with contextlib.closing(sqlite3.connect(database, timeout=60)) as connection:
        while connection.execute("SELECT count(*) FROM items").fetchone()[0] < count:
            assert time.monotonic() < deadline, "nothing is added"
            time.sleep(0.001)


def check_numbers(folder):
    """Check that the new items in the pool are whole; return how many there are."""
    with Project.open(folder) as project:
        found = project.items
        added = found[20:]
        assert [item.id for item in found] == list(range(len(found)))
        assert [item.key for item in added] == [f"n{row}" for row in range(len(added))]
        sources = project.store.added_sources()
        assert [row for each in sources for row in each.rows] == list(range(len(added)))
        with project.store.database.read() as connection:
            details = connection.execute(sa.select(schema.item_details)).all()
        assert {row.item_id: row.content for row in details} == {
            item.id: {"number": item.key[1:]} for item in added
        }
        return len(added)


def test_images_of_this_folder_and_of_another(tmp_path):
    for k in range(6):
        write_image(tmp_path / "photos" / f"{k}.png", 20 * k)
    given = {"data": tmp_path / "photos", "classes": ["a", "b"], "backbone": "pixels"}
    with Project.create(tmp_path / "p", head="linear", **given) as project:
        work(Engine(project))
        write_image(tmp_path / "photos" / "new" / "6.png", 120)
        write_image(tmp_path / "elsewhere" / "7.png", 140)
        (tmp_path / "elsewhere" / "8.png").write_text("no image")
        assert add_data(project, tmp_path / "photos" / "new") == AddReport(1, 0)
        assert add_data(project, tmp_path / "photos") == AddReport(0, 7)
        assert add_data(project, tmp_path / "elsewhere") == AddReport(2, 0)
        assert [item.key for item in project.items[6:]] == ["new/6.png", "7.png", "8.png"]
        for item in project.items:
            assert project.data_file(item.content).is_file()
        outside = tmp_path / "secret.png"
        write_image(outside, 1)
        for name in (str(outside), f"{tmp_path}/elsewhere/../secret.png", "../secret.png"):
            with pytest.raises(FileError):
                project.data_file(name)
        work(Engine(project))
        assert [row.id for row in project.store.skipped()] == ["8.png"]
        with pytest.raises(FileError, match="another project"):
            add_data(project, write_texts(tmp_path / "texts.csv", range(3)))


def test_a_single_broken_image_does_not_stop_the_loop(tmp_path):
    for k in range(4):
        write_image(tmp_path / "photos" / f"{k}.png", 20 * k)
    given = {"data": tmp_path / "photos", "classes": ["a", "b"], "backbone": "pixels"}
    with Project.create(tmp_path / "p", head="linear", **given) as project:
        work(Engine(project))
        (tmp_path / "photos" / "bad.png").write_text("no image")
        add_data(project, tmp_path / "photos")
        work(Engine(project))
        assert [row.id for row in project.store.skipped()] == ["bad.png"]


def test_checks_come_from_all_parts_and_earlier_ones_stay():
    given = settings(budget=500, check_share=0.1)
    alone = reserved_checks(given, [1000])
    assert len(set(alone.tolist())) == 50
    both = reserved_checks(given, [1000, 500])
    assert len(both) == len(set(both.tolist())) == 50
    of_first = both[both < 1000]
    assert 30 <= len(of_first) <= 36
    assert np.array_equal(of_first, alone[: len(of_first)])
    assert reserved_checks(given, [1000, 500, 1]).max() <= 1500


def test_checks_come_from_all_of_many_small_parts():
    rows = reserved_checks(settings(budget=500, check_share=0.1), [500] * 100)
    assert len(set(rows.tolist())) == 50
    # A draw from all: not more than half of the 50 in any fifth of the pool.
    assert max(np.bincount(rows // 10_000, minlength=5)) <= 25
    assert min(np.bincount(rows // 10_000, minlength=5)) >= 1
