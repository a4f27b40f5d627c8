"""A team's database: the same store in PostgreSQL.

Runs where SABAL_TEST_POSTGRESQL is the URL of a database for tests; its tables are dropped.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from sklearn.datasets import load_digits

from labeling_helpers import STRANGE, Clock, answer, current_labels, open_store, undo
from sabal.labeling.engine import Engine
from sabal.labeling.project import Project
from sabal.labeling.store import Store, schema
from sabal.labeling.store.records import ImportedLabel, Submission

URL = os.environ.get("SABAL_TEST_POSTGRESQL", "")
pytestmark = pytest.mark.skipif(not URL, reason="SABAL_TEST_POSTGRESQL is not set")


@pytest.fixture
def url():
    engine = sa.create_engine(URL)
    schema.metadata.drop_all(engine)
    engine.dispose()
    return URL


def test_answers_leases_and_history(url):
    clock = Clock()
    store = open_store(url, clock=clock, classes=STRANGE, overlap=2)
    assert [each.item for each in store.next_items("ann", 2)] == ["i0", "i1"]
    for text in STRANGE:
        answer(store, "i0", text, who=text)
    answer(store, "i1", None)
    undo(store)
    assert current_labels(store) == [("i0", text, text) for text in STRANGE]
    assert [each.item for each in store.next_items("bob", 1)] == ["i1"]
    clock.pass_(301)
    assert len(store.next_items("eve", 9)) == 5
    found = store.status()
    assert (found.labeled, found.skipped, found.remaining) == (1, 0, 5)
    rows = [ImportedLabel("i4", STRANGE[2], "eve"), ImportedLabel("gone", STRANGE[2], "eve")]
    assert [store.import_labels(rows).labels for _ in range(2)] == [1, 0]
    assert store.labels(until=1) == store.labels()[:1]
    assert len(store.batch()) == 6
    store.close()
    again = Store.open(url)
    assert again.settings.classes == STRANGE
    again.close()


def test_writers_wait_for_each_other(url):
    store = open_store(url, items=80)
    together = threading.Barrier(8)

    def work(person):
        together.wait()
        leased = store.next_items(f"p{person}", 10)
        for each in leased:
            store.submit(Submission(f"same-{each.item}", f"p{person}", each.item, "cat"))
            store.submit(Submission(f"same-{each.item}", f"p{person}", each.item, "cat"))
        return [each.item for each in leased]

    with ThreadPoolExecutor(8) as pool:
        given = [item for each in pool.map(work, range(8)) for item in each]
    assert len(given) == len(set(given)) == len(store.history()) == 80
    store.close()


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
    assert not (tmp_path / "p" / "sabal.db").exists()
