"""`sabal init` that fails or is killed: nothing of others is lost, and the next one works."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import time

import pytest

from forks import COMMAND, COMMAND_IMPORTS, KILLED_AT, Forks
from labeling_helpers import answer
from sabal.errors import FileError, SabalError
from sabal.labeling.project import Project
from sabal.labeling.store.records import NewBatchItem

ITEMS = 300
KILLS = int(os.environ.get("SABAL_KILLS", "6"))
STEPS = {
    "before anything": "sabal.labeling.creation.Store.open",
    "before the items": "sabal.labeling.creation.Store.add_items",
    "before the move": "sabal.labeling.creation.move_to_new",
    "before the settings": "sabal.labeling.project.write_settings",
}


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("id,text\n" + "".join(f"t{k},text {k}\n" for k in range(ITEMS)))
    return path


def create(folder, data, **more):
    return Project.create(folder, data=data, classes=["a", "b"], **more)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def check(folder):
    """The project in a folder is complete."""
    with Project.open(folder) as project:
        assert len(project.items) == ITEMS
    assert names_in(folder) == ["sabal.db", "sabal.toml"]


@pytest.fixture
def neighbours(tmp_path):
    """A folder in which somebody has put the old database aside, under several names."""
    folder = tmp_path / "p"
    (folder / "sabal.db.old").mkdir(parents=True)
    for name in ("sabal.db.bak", "sabal.db-bak", "sabal.db.old/sabal.db", ".sabal-init.txt"):
        (folder / name).write_text("precious")
    return folder


def fail(*args, **more):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("name", "more"),
    [
        (None, {"database_url": "postgres://x/y"}),
        (None, {"database_url": "sqlite:////no/such/folder/x.db"}),
        ("sabal.labeling.project.write_settings", {}),
        ("sabal.labeling.creation.move_to_new", {}),
        ("sabal.labeling.creation.Store.add_items", {}),
        ("sabal.labeling.creation.Store.open", {}),
        ("sabal.labeling.creation.tempfile.mkdtemp", {}),
    ],
)
def test_a_failed_init_leaves_everything_else(neighbours, data, monkeypatch, name, more):
    before = {path: path.is_file() and path.read_text() for path in neighbours.rglob("*")}
    if name is not None:
        monkeypatch.setattr(name, fail)
    with pytest.raises(FileError):
        create(neighbours, data, **more)
    assert {path: path.is_file() and path.read_text() for path in neighbours.rglob("*")} == before
    monkeypatch.undo()
    create(neighbours, data).close()
    assert set(before) <= set(neighbours.rglob("*"))


def test_settings_that_were_written_at_the_last_moment_go_too(tmp_path, data, monkeypatch):
    def write_and_fail(path, settings):
        path.write_text("")
        raise KeyboardInterrupt

    monkeypatch.setattr("sabal.labeling.project.write_settings", write_and_fail)
    with pytest.raises(KeyboardInterrupt):
        create(tmp_path / "p", data)
    assert names_in(tmp_path / "p") == []


def test_a_log_that_could_not_be_emptied_is_an_error(tmp_path, data, monkeypatch):
    """SQLite says nothing when closing a database fails for want of room."""
    from sabal.labeling.store import Store

    close = Store.close

    def close_badly(store):
        place = store.database.location
        close(store)
        with open(f"{place}-wal", "w") as file:
            file.write("frames")

    monkeypatch.setattr(Store, "close", close_badly)
    with pytest.raises(FileError, match="room"):
        create(tmp_path / "p", data)
    assert names_in(tmp_path / "p") == []


def test_a_database_elsewhere_needs_the_settings_only(tmp_path, data):
    create(tmp_path / "p", data, database_url=f"sqlite:///{tmp_path}/elsewhere.db").close()
    assert names_in(tmp_path / "p") == ["sabal.toml"]


# Killed


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_killed_init_does_not_block_the_next(tmp_path, data, step):
    folder = tmp_path / "p"
    words = ("init", folder, "--data", data, "--classes", "a,b")
    with Forks(COMMAND_IMPORTS, KILLED_AT, tmp_path / "log") as forks:
        assert forks.run(step, *words) == -9, forks.log.read_text()
    assert not (folder / "sabal.toml").exists()
    create(folder, data).close()
    check(folder)


def test_an_init_that_is_killed_anywhere_does_not_block_the_next(tmp_path, data):
    draw, killed = random.Random(KILLS), 0  # noqa: S311
    with Forks(COMMAND_IMPORTS, COMMAND, tmp_path / "log") as forks:
        folder = tmp_path / "whole"
        words = ("--data", data, "--classes", "a,b")
        started = time.monotonic()
        assert forks.run("init", folder, *words) == 0, forks.log.read_text()
        took = time.monotonic() - started
        for number in range(KILLS):
            folder = tmp_path / str(number)
            process = forks.start("init", folder, *words)
            time.sleep(draw.uniform(0, took))
            killed += forks.kill(process) == -9
            if not (folder / "sabal.toml").exists():
                assert forks.run("init", folder, *words) == 0, forks.log.read_text()
                check(folder)
            with Project.open(folder) as project:
                assert len(project.items) == ITEMS
    assert killed


def unfinished(folder, data):
    """What an init leaves that is killed before the settings are written."""
    create(folder, data).close()
    (folder / "sabal.toml").unlink()
    return folder / "sabal.db"


def test_an_empty_file_is_replaced(tmp_path, data):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "sabal.db").write_bytes(b"")
    create(tmp_path / "p", data).close()
    check(tmp_path / "p")


def test_a_database_with_its_log_is_replaced_too(tmp_path, data):
    """As it was left by a version that filled it in its place."""
    folder = tmp_path / "p"
    with create(tmp_path / "made", data):
        shutil.copytree(tmp_path / "made", folder)
    (folder / "sabal.toml").unlink()
    assert "sabal.db-wal" in names_in(folder)
    create(folder, data).close()
    check(folder)


@pytest.mark.parametrize("log", [False, True])
def test_answers_without_settings_are_not_replaced(tmp_path, data, log):
    folder = tmp_path / "p"
    with create(tmp_path / "made", data) as project:
        project.store.add_round(0, [NewBatchItem(row) for row in range(3)], strategy="random")
        answer(project.store, "t0", "a")
        if log:
            # The answer is in the log only, as a killed app leaves it.
            shutil.copytree(tmp_path / "made", folder)
    if not log:
        shutil.copytree(tmp_path / "made", folder)
    settings = (folder / "sabal.toml").read_bytes()
    (folder / "sabal.toml").unlink()
    with pytest.raises(FileError, match=r"got sabal\.db without sabal\.toml"):
        create(folder, data)
    (folder / "sabal.toml").write_bytes(settings)
    with Project.open(folder) as project:
        assert [row.id for row in project.store.labels()] == ["t0"]


def test_a_database_that_was_used_or_is_another_is_not_replaced(tmp_path, data):
    folder = tmp_path / "p"
    database = unfinished(folder, data)
    for statement in (
        "INSERT INTO rounds VALUES (0, 'random', 0, '2026', 0.0, '{}', NULL)",
        "CREATE TABLE notes (text TEXT)",
    ):
        connection = sqlite3.connect(database)
        connection.execute(statement)
        connection.commit()
        connection.close()
        before = database.read_bytes()
        with pytest.raises(FileError, match="without a project"):
            create(folder, data)
        assert database.read_bytes() == before
        database.unlink()
        unfinished(folder, data)


def test_what_is_no_database_is_not_replaced(tmp_path, data):
    folder = tmp_path / "p"
    folder.mkdir()
    database = folder / "sabal.db"
    database.write_text("my notes")
    with pytest.raises(FileError, match="without a project"):
        create(folder, data)
    assert database.read_text() == "my notes"
    database.unlink()
    database.symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(FileError, match="without a project"):
        create(folder, data)
    assert database.is_symlink()
    database.unlink()
    database.mkdir()
    with pytest.raises(FileError, match="without a project"):
        create(folder, data)


def test_a_log_whose_database_was_moved_is_not_lost(tmp_path, data):
    """Beside a new database SQLite would delete it, or take it for its own."""
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "sabal.db-wal").write_text("answers")
    with pytest.raises(FileError, match=r"sabal\.db-wal in it"):
        create(folder, data)
    assert (folder / "sabal.db-wal").read_text() == "answers"


def test_a_database_that_is_in_use_is_not_replaced(tmp_path, data):
    """Another init, which has yet to write its settings."""
    folder = tmp_path / "p"
    with create(folder, data) as project:
        (folder / "sabal.toml").unlink()
        with pytest.raises(SabalError, match="without a project"):
            create(folder, data)
        assert len(project.items) == ITEMS


def test_two_at_once_make_one_project(tmp_path, data, monkeypatch):
    """The other one is quicker, after this one has looked for the last time."""
    from sabal.labeling import creation

    folder, move = tmp_path / "p", creation.move_to_new

    def move_late(made, target):
        monkeypatch.setattr(creation, "move_to_new", move)
        create(folder, data, name="quick").close()
        move(made, target)

    monkeypatch.setattr(creation, "move_to_new", move_late)
    with pytest.raises(FileError):
        create(folder, data, name="slow")
    with Project.open(folder) as project:
        assert project.settings.name == "quick"
        assert len(project.items) == ITEMS
