"""People with personal links, and what the lead decides."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from labeling_helpers import answer, current_labels, open_store, undo
from sabal.errors import InputError, UnknownNameError
from sabal.labeling.engine import Engine
from sabal.labeling.exchange.exporting import export_bytes, export_file
from sabal.labeling.exchange.formats import FORMATS
from sabal.labeling.exchange.importing import import_file
from sabal.labeling.project import Project
from sabal.labeling.store import Store
from sabal.labeling.store.item_pages import ItemFilter
from sabal.labeling.store.records import Person, Submission

OLD = Path(__file__).parents[1] / "golden" / "project-0.1"
"""A project that version 0.1 made: 30 texts, two people, three trainings."""


@pytest.fixture
def store(database):
    made = open_store(database, overlap=2)
    yield made
    made.close()


def decide(store, item, label, who="eve"):
    given = Submission(f"decides {item} {label} {who}", who, item, label, skip=label is None)
    return store.decide(given)


def settled(store):
    return {each.item: each.label for each in store.training_labels()}


# People


def test_a_token_is_known_and_not_stored(tmp_path):
    store = open_store(tmp_path / "s.db")
    token = store.add_person(" Ann ", "lead")
    assert store.person_with(token) == Person("Ann", "lead")
    assert store.person_with("other") is store.person_with("") is None
    assert len(token) >= 32
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert token.encode() not in content
    store.close()
    again = Store.open(tmp_path / "s.db")
    assert again.people() == [Person("Ann", "lead")]
    again.close()


def test_a_renewed_link_replaces_the_old_one_and_a_removed_person_has_none(store):
    first = store.add_person("Ann")
    second = store.renew_person("Ann")
    assert store.person_with(first) is None
    assert store.person_with(second) == Person("Ann", "annotator")
    assert store.person_with(store.renew_person("Ann", "reader")) == Person("Ann", "reader")
    answer(store, "i0", "cat", "Ann")
    store.remove_person("Ann")
    assert store.people() == []
    assert current_labels(store) == [("i0", "cat", "Ann")]
    assert store.person_with(store.add_person("Ann")) == Person("Ann", "annotator")


@pytest.mark.parametrize("name", ["", "  ", "x" * 81, "two\nlines", "nul\0"])
def test_a_name_that_cannot_be_shown_is_refused(store, name):
    with pytest.raises(InputError):
        store.add_person(name)
    assert store.people() == []


def test_a_name_is_given_once_whatever_its_case(store):
    store.add_person("Ann")
    for name in ("Ann", "ann ", "ANN"):
        with pytest.raises(InputError, match="somebody new"):
            store.add_person(name)


def test_unknown_people_and_roles_are_refused(store):
    store.add_person("Ann")
    for change in (store.renew_person, store.remove_person):
        with pytest.raises(UnknownNameError, match="Ann"):
            change("Anne")
    with pytest.raises(InputError, match="annotator"):
        store.add_person("Bob", "boss")


# Disagreements and decisions


def test_disagreements_wait_for_a_decision(store):
    answer(store, "i0", "cat", "ann")
    answer(store, "i0", "dog", "bob")
    answer(store, "i1", "cat", "ann")
    answer(store, "i1", "cat", "bob")
    answer(store, "i2", "cat", "ann")
    answer(store, "i2", None, "bob")
    [found] = store.disagreements()
    assert found.item == "i0"
    assert [(vote.annotator, vote.label) for vote in found.votes] == [
        ("ann", "cat"),
        ("bob", "dog"),
    ]
    decide(store, "i0", "dog")
    assert store.disagreements() == []
    assert settled(store) == {0: "dog", 1: "cat", 2: "cat"}
    assert store.batch()[0].label == "dog"
    assert len(store.history()) == 7, "nothing is lost"


def test_a_decision_needs_no_majority_and_can_be_undone_and_replaced(store):
    for who in ("ann", "bob"):
        answer(store, "i0", "cat", who)
    before = store.last_answer()
    decide(store, "i0", "dog", "eve")
    assert settled(store) == {0: "dog"}
    decide(store, "i0", "cat", "zoe")
    decide(store, "i0", None, "eve")
    assert settled(store) == {}
    counts = store.counts()
    assert (counts.labeled, counts.skipped) == (0, 1)
    undo(store, "eve")
    assert settled(store) == {0: "cat"}
    assert {each.item: each.label for each in store.training_labels(before)} == {0: "cat"}
    assert {each.item: each.label for each in store.training_labels(before + 1)} == {0: "dog"}
    assert sum(each.decides for each in store.history()) == 3


def test_a_decision_sent_twice_counts_once_and_is_no_vote(store):
    answer(store, "i0", "cat", "ann")
    answer(store, "i0", "cat", "bob")
    assert decide(store, "i0", "dog") == decide(store, "i0", "dog")
    assert store.agreement().share == 1.0
    given = Submission("decides i0 dog eve", "eve", "i0", "dog")
    with pytest.raises(InputError, match="other content"):
        store.submit(given)


@pytest.mark.parametrize("format", FORMATS)
def test_decisions_survive_export_and_import(tmp_path, new_database, store, format):
    for who, label in (("ann", "cat"), ("bob", "cat"), ("eve", "cat")):
        answer(store, "i0", label, who) if who != "eve" else decide(store, "i0", "dog")
    answer(store, "i1", "dog", "eve")
    decide(store, "i1", None)
    file = export_file(store, tmp_path / "labels", format)
    other = open_store(new_database(), overlap=2, batch=0)
    decide_before = other.import_labels([])
    assert decide_before.labels == 0
    for expected in (4, 0):
        report = import_file(other, file, format)
        assert report.labels + report.skips == expected
    assert settled(other) == settled(store) == {0: "dog"}
    assert export_bytes(other, "csv").count(b",yes") == 2
    other.close()


# A project of version 0.1


def old_project(folder):
    folder.mkdir()
    (folder / "texts.csv").write_bytes((OLD / "texts.csv").read_bytes())
    for name in ("sabal.toml", "sabal.db.sql"):
        text = (OLD / name).read_text(encoding="utf-8").replace("DATA", f"{folder}/texts.csv")
        if name == "sabal.toml":
            (folder / name).write_text(text, encoding="utf-8")
        else:
            with sqlite3.connect(folder / "sabal.db") as connection:
                connection.executescript(text)
    return folder


def test_a_project_of_version_0_1_opens_and_gets_people(tmp_path):
    folder = old_project(tmp_path / "p")
    with Project.open(folder) as project:
        store = project.store
        status = store.status()
        assert (status.labeled, status.skipped, status.finished) == (20, 1, True)
        assert len(store.history()) == 44
        assert store.class_balance() == {"sport": 5, "money": 8, "food": 7}
        assert [point.labels for point in store.curve()] == [7, 13, 16]
        assert store.people() == []
        token = store.add_person("ann", "lead")
        assert store.person_with(token) == Person("ann", "lead")
        disputed = store.disagreements()
        assert [each.item for each in disputed] == ["t0", "t14"] or len(disputed) == 2
        decide(store, disputed[0].item, "food", "ann")
        assert len(store.disagreements()) == 1
        # The latest model was trained before predictions were stored: the worker catches up.
        engine = Engine(project)
        while engine.step() is not None:
            pass
        labeled, _ = store.item_page(ItemFilter(shown="labeled"), 0, 50)
        assert all(each.guess["label"] in project.classes for each in labeled)
        differ = {each.item for each in labeled if each.guess["label"] != each.label}
        assert differ <= {each.item for each in store.item_page(ItemFilter(shown="model"))[0]}
