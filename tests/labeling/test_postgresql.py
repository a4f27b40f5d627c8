"""A team's database: what is particular to PostgreSQL. test_store.py runs on both engines."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import uuid
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from sklearn.datasets import load_digits

from browsing import SERVE
from forks import COMMAND_IMPORTS, KILLED_AT, Forks
from labeling_helpers import answer, open_store
from sabal.errors import FileError, InputError
from sabal.labeling.engine import Engine
from sabal.labeling.project import Project
from sabal.labeling.store import Store, schema
from sabal.labeling.store import database as databases
from sabal.labeling.store.database import WORKER_LOCK, WRITER_LOCK, Database
from sabal.labeling.store.item_pages import ItemFilter
from sabal.labeling.store.records import NewBatchItem
from sabal.labeling.web import create_app
from waiting import until

with warnings.catch_warnings():
    # With the older httpx it works as well, and says so.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

CLASSES = ["a", "b"]


@pytest.fixture
def url(new_server_database):
    return new_server_database(empty=True)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("id,text\n" + "".join(f"t{k},text {k}\n" for k in range(30)))
    return path


def create(folder, data, url, **more):
    return Project.create(folder, data=data, classes=CLASSES, database_url=url, **more)


def tables_of(url):
    """Return the number of rows of every table."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        found = {
            name: connection.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar()  # noqa: S608
            for name in sa.inspect(connection).get_table_names()
        }
    engine.dispose()
    return found


@pytest.fixture
def run(url):
    """Return a function that runs a statement by a connection of another program."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection.exec_driver_sql
    engine.dispose()


def test_a_project_goes_through_its_rounds(url, tmp_path):
    rows, labels = load_digits(return_X_y=True)
    path = tmp_path / "pool.parquet"
    pq.write_table(pa.table({"features": rows[:200].tolist()}), path)
    classes = [str(digit) for digit in range(10)]
    with Project.create(
        tmp_path / "p", data=path, classes=classes, database_url=url, budget=50, initial=20
    ) as project:
        engine = Engine(project)
        while not project.store.status().finished:
            while engine.step():
                pass
            while leased := project.store.next_items("ann", 5):
                for each in leased:
                    answer(project.store, each.item, str(labels[int(each.item)]))
        assert project.store.status().labeled == 50
        assert project.store.curve()
        while engine.step():
            pass
        labeled, count = project.store.item_page(ItemFilter(shown="labeled"), 0, 50)
        assert count == 50
        differ = {each.item for each in labeled if each.guess["label"] != each.label}
        project.store.rename_class("3", "three", write=lambda classes: None)
        found, _ = project.store.item_page(ItemFilter(shown="model"), 0, 50)
        assert {each.item for each in found} == differ
    assert not (tmp_path / "p" / "sabal.db").exists()


# Init


def fail(*args, **more):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("step", ["project.write_settings", "server_creation.Store.add_items"])
def test_a_failed_init_leaves_nothing_behind(tmp_path, data, url, monkeypatch, step):
    monkeypatch.setattr(f"sabal.labeling.{step}", fail)
    with pytest.raises(FileError, match="No space left"):
        create(tmp_path / "p", data, url)
    assert tables_of(url) == {}
    assert list((tmp_path / "p").iterdir()) == []
    monkeypatch.undo()
    create(tmp_path / "p", data, url).close()
    assert tables_of(url)["items"] == 30
    assert "sabal_init" not in tables_of(url)


def test_settings_go_if_the_last_step_fails(tmp_path, data, url, monkeypatch):
    monkeypatch.setattr("sabal.labeling.server_creation.UNFINISHED.drop", fail)
    with pytest.raises(FileError):
        create(tmp_path / "p", data, url)
    assert list((tmp_path / "p").iterdir()) == []


def test_a_killed_init_does_not_block_the_next(tmp_path, data, new_server_database):
    steps = ("project.write_settings", "server_creation.Store.add_items")
    with Forks(COMMAND_IMPORTS, KILLED_AT, tmp_path / "log") as forks:
        for step in steps:
            url, folder = new_server_database(empty=True), tmp_path / step
            words = ("init", folder, "--data", data, "--classes", "a,b", "--database-url", url)
            assert forks.run(f"sabal.labeling.{step}", *words) == -9, forks.log.read_text()
            assert "sabal_init" in tables_of(url)
            create(folder, data, url).close()
            assert tables_of(url)["items"] == 30


def test_a_second_project_is_refused_and_the_first_one_stays(tmp_path, data, url):
    with create(tmp_path / "p", data, url) as project:
        project.store.add_round(0, [NewBatchItem(0)], strategy="random")
        answer(project.store, "t0", "a")
        before = tables_of(url)
        with pytest.raises(FileError, match="each holds one project"):
            create(tmp_path / "q", data, url, budget=7)
        assert tables_of(url) == before
        assert list((tmp_path / "q").iterdir()) == []
        assert len(project.store.labels()) == 1


def test_answers_are_never_taken_for_an_unfinished_init(tmp_path, data, url, run):
    with create(tmp_path / "p", data, url) as project:
        project.store.add_round(0, [NewBatchItem(0)], strategy="random")
    run("CREATE TABLE sabal_init (started_at text)")
    with pytest.raises(FileError, match="each holds one project"):
        create(tmp_path / "q", data, url)


def test_tables_of_another_program_are_left_alone(tmp_path, data, url, run):
    run("CREATE TABLE items (price integer)")
    with pytest.raises(FileError, match="tables items"):
        create(tmp_path / "p", data, url)
    assert tables_of(url) == {"items": 0}


def test_two_inits_at_once_do_not_mix(tmp_path, data, url, monkeypatch):
    began, go_on = threading.Event(), threading.Event()
    add_items = Store.add_items

    def slowly(store, items):
        if not began.is_set():
            began.set()
            go_on.wait()
        return add_items(store, items)

    monkeypatch.setattr(Store, "add_items", slowly)
    made = []
    first = threading.Thread(target=lambda: made.append(create(tmp_path / "p", data, url)))
    first.start()
    began.wait()
    try:
        with pytest.raises(FileError, match="locked"):
            create(tmp_path / "q", data, url)
    finally:
        go_on.set()
        first.join()
    assert tables_of(url)["items"] == 30
    made[0].close()


# Locks


def test_a_lock_that_is_held_elsewhere_is_waited_for_a_while(url, run, monkeypatch):
    monkeypatch.setattr(databases, "BUSY_SECONDS", 1)
    store = open_store(url)
    with store.database.write() as connection:
        assert connection.exec_driver_sql("SHOW lock_timeout").scalar() == "1s"
    run(f"SELECT pg_advisory_lock({WRITER_LOCK})")
    with pytest.raises(FileError, match="keeps locked"):
        answer(store, "i0")
    run(f"SELECT pg_advisory_unlock({WRITER_LOCK})")
    answer(store, "i0")
    assert len(store.labels()) == 1
    store.close()


def test_a_client_that_hangs_loses_its_lock(url, monkeypatch):
    monkeypatch.setattr(databases, "IDLE_SECONDS", 1)
    hangs, store = Database(url), open_store(url)

    def hang():
        with hangs.write() as connection:
            answer(store, "i0")  # waits until the server ends the transaction around it
            connection.execute(sa.select(schema.items))

    with pytest.raises(FileError, match=r"took too long|reached"):
        hang()
    assert len(store.labels()) == 1
    hangs.close()
    store.close()


def test_labels_go_on_after_all_connections_were_ended(url, run):
    store = open_store(url)
    everybody = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
    run(f"{everybody} current_database() AND pid <> pg_backend_pid()")
    with pytest.raises(FileError, match=r"starting or stopping|reached"):
        answer(store, "i0")
    answer(store, "i0")
    assert len(store.labels()) == 1
    store.close()


# Errors in words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"database": "no_such_database"}, "without that database"),
        ({"username": "no_such_user"}, "refuses the user"),
        ({"query": {"host": "/no/such/folder"}}, "cannot be reached"),
        ({"host": "127.0.0.1", "port": 1, "query": {}}, "cannot be reached"),
        ({"host": "no-such-host.invalid", "query": {}}, "cannot be reached"),
    ],
)
def test_what_is_wrong_is_said_without_user_host_and_path(url, change, words):
    other = sa.make_url(url).set(password="secret", **change)  # noqa: S106
    with pytest.raises(FileError, match=words) as caught:
        open_store(other.render_as_string(hide_password=False))
    said = str(caught.value)
    parts = [other.username, other.database, other.host, "secret", "/", "127.0.0.1"]
    assert not [part for part in parts if part and part in said], said


def test_a_user_who_may_not_write_is_told(url, run):
    run("CREATE ROLE reader LOGIN")
    try:
        other = sa.make_url(url).set(username="reader").render_as_string()
        with pytest.raises(FileError, match="may not do this"):
            open_store(other)
        run("ALTER ROLE reader SET default_transaction_read_only = on")
        with pytest.raises(FileError, match=r"only be read|may not"):
            open_store(other)
    finally:
        run("DROP ROLE reader")


def test_responses_name_neither_user_nor_host_nor_path(tmp_path, data, url, run):
    with create(tmp_path / "p", data, url) as project:
        project.store.add_round(0, [NewBatchItem(0)], strategy="random")
        app = create_app(project, worker=False)
        with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
            run("ALTER TABLE answers RENAME TO gone")
            body = {"submission": str(uuid.uuid4()), "annotator": "ann", "item": "t0", "label": "a"}
            refused = client.post("/api/labels", json=body)
            assert refused.status_code == 503
            assert "without the tables" in refused.text
            assert not [part for part in ("sabal@", "/tmp", "answers") if part in refused.text]  # noqa: S108
            run("ALTER TABLE gone RENAME TO answers")
            assert client.post("/api/labels", json=body).status_code == 200


def test_nul_is_refused_as_what_it_is(new_server_database, url, tmp_path):
    store = open_store(new_server_database())
    for act in (
        lambda: answer(store, "i0", who="a\0b"),
        lambda: store.item("a\0b"),
        lambda: store.next_items("a\0b", 1),
    ):
        with pytest.raises(InputError, match="NUL"):
            act()
    store.close()
    data = tmp_path / "texts.jsonl"
    data.write_text('{"text": "a\\u0000b"}\n')
    with pytest.raises(InputError, match="NUL"):
        create(tmp_path / "p", data, url)


def test_one_worker_has_the_lock_of_the_database(url):
    """Two servers with folders of their own: the lock is in the database."""
    one, two = open_store(url), Store.open(url)
    assert one.database.try_worker_lock()
    assert one.database.try_worker_lock()
    assert not two.database.try_worker_lock()
    one.database.release_worker_lock()
    assert two.database.try_worker_lock()
    two.close()
    assert one.database.try_worker_lock()
    one.close()


def test_a_second_server_takes_over_from_one_that_is_killed(url, tmp_path, data, run):
    project = create(tmp_path / "p", data, url, initial=4, batch=4, check_share=0.0)

    def serve():
        command = [sys.executable, "-c", SERVE, str(project.folder)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert "http://" in process.stdout.readline()
        return process

    def worker():
        """The connection of the worker that has the lock."""
        held = f"locktype = 'advisory' AND granted AND objid = {WORKER_LOCK}"
        return run(f"SELECT pid FROM pg_locks WHERE {held}").scalar()  # noqa: S608

    with project, serve() as first:
        until(lambda: project.store.status().round == 0)
        had_it = worker()
        with serve() as second:
            assert worker() == had_it
            first.kill()
            until(lambda: worker() not in (None, had_it))
            for each in project.store.next_items("ann", 4):
                answer(project.store, each.item, "a" if int(each.item[1:]) % 2 else "b")
            until(lambda: project.store.status().round == 1)
            second.send_signal(signal.SIGINT)


def test_a_worker_and_an_init_have_locks_of_their_own(url, tmp_path, data):
    with create(tmp_path / "p", data, url) as project:
        assert project.store.database.try_worker_lock()
        with pytest.raises(FileError, match="each holds one project"):
            create(tmp_path / "q", data, url)
