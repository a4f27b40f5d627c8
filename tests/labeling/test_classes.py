"""Classes that are added, renamed and merged: nothing is lost, and every place agrees."""

from __future__ import annotations

import tomllib
import uuid
import warnings

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from labeling_digits import CLASSES, digits_project, label_all, true_label
from labeling_helpers import answer, current_labels, open_store
from sabal.errors import FileError, InputError, UnknownNameError
from sabal.labeling.engine import Engine
from sabal.labeling.project import Project
from sabal.labeling.settings import read_settings, write_classes
from sabal.labeling.store.records import ImportedLabel, NewBatchItem, Submission
from sabal.labeling.web import create_app

with warnings.catch_warnings():
    # With the older httpx it works as well, and says so.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient


@pytest.fixture
def project(tmp_path):
    (tmp_path / "texts.csv").write_text("id,text\n" + "".join(f"i{n},text {n}\n" for n in range(6)))
    given = {"data": tmp_path / "texts.csv", "classes": ("cat", "dog", "cow")}
    with Project.create(tmp_path / "p", **given) as project:
        guess = {"guess": {"label": "dog", "probability": 0.5}}
        chosen = [NewBatchItem(row, why=guess) for row in range(6)]
        project.store.add_round(0, chosen, strategy="random")
        yield project


def labels(project):
    return {row.id: row.label for row in project.store.labels()}


def ignore(classes):
    pass


# Labels follow their classes


def test_labels_of_a_renamed_class_have_its_new_name(project):
    answer(project.store, "i0", "dog")
    answer(project.store, "i1", "cat")
    project.change_classes("rename", "dog", "hound", person="lea")
    assert project.classes == project.store.status().classes == ("cat", "hound", "cow")
    assert labels(project) == {"i0": "hound", "i1": "cat"}
    assert project.store.class_balance() == {"cat": 1, "hound": 1, "cow": 0}
    assert [each.label for each in project.store.training_labels()] == ["hound", "cat"]
    assert project.store.batch()[0].label == "hound"
    assert project.store.batch()[1].why["guess"]["label"] == "hound"
    assert project.store.reasons("i1")["guess"]["label"] == "hound"
    [change] = project.store.class_changes()
    assert (change.action, change.name, change.target, change.person) == (
        "rename", "dog", "hound", "lea",
    )  # fmt: skip


def test_a_name_that_is_used_again_means_another_class(project):
    answer(project.store, "i0", "dog")
    project.change_classes("rename", "dog", "hound")
    project.change_classes("add", "dog")
    answer(project.store, "i1", "dog")
    project.change_classes("rename", "cat", "feline")
    project.change_classes("rename", "hound", "wolf")
    project.change_classes("rename", "wolf", "hound")
    assert labels(project) == {"i0": "hound", "i1": "dog"}
    project.change_classes("merge", "dog", "hound")
    assert labels(project) == {"i0": "hound", "i1": "hound"}
    assert project.classes == ("feline", "hound", "cow")


def test_merged_labels_agree_and_the_answers_are_kept(tmp_path):
    store = open_store(tmp_path / "s.db", classes=("cat", "dog", "cow"), overlap=2)
    answer(store, "i0", "cat", "ann")
    answer(store, "i0", "dog", "bob")
    assert len(store.disagreements()) == 1
    store.merge_class("dog", "cat", write=ignore)
    assert store.disagreements() == []
    assert store.agreement().share == 1.0
    assert current_labels(store) == [("i0", "cat", "ann"), ("i0", "cat", "bob")]
    with store.database.read() as connection:
        stored = connection.exec_driver_sql("SELECT label FROM answers ORDER BY id").scalars().all()
    assert stored == ["cat", "dog"]
    store.close()


def test_an_old_name_from_a_page_or_a_file_is_understood(project):
    sent = Submission("s", "ann", "i0", "dog")
    first = project.store.submit(sent)
    project.change_classes("rename", "dog", "hound")
    assert project.store.submit(sent).id == first.id, "a page that sends it again"
    assert answer(project.store, "i1", "dog").label == "hound"
    report = project.store.import_labels([ImportedLabel("i2", "dog", "eve")])
    assert report.labels == 1
    assert set(labels(project).values()) == {"hound"}
    with pytest.raises(UnknownNameError):
        answer(project.store, "i3", "bird")


NAMES = ("a", "b", "c", "d", "e")
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["add", "rename", "merge", "label"]),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
    ),
    max_size=15,
)


@examples(max_examples=25)
@given(CHANGES)
def test_whatever_changes_every_label_has_a_class(changes):
    """The twin rewrites a dictionary of labels at every change."""
    store = open_store("sqlite://", items=20, classes=("a", "b", "c"))
    classes, expected = ["a", "b", "c"], {}
    calls = {"add": store.add_class, "rename": store.rename_class, "merge": store.merge_class}
    for number, (action, one, two) in enumerate(changes):
        try:
            if action == "label":
                item = f"i{number}"
                expected[item] = answer(store, item, one).label
                assert expected[item] in classes
                assert one not in classes or expected[item] == one
                continue
            calls[action](one, *(() if action == "add" else (two,)), write=ignore)
        except (InputError, UnknownNameError):
            continue
        if action == "add":
            classes.append(one)
            continue
        expected = {item: two if label == one else label for item, label in expected.items()}
        position = classes.index(one)
        classes[position : position + 1] = [two] if action == "rename" else []
    assert store.classes == tuple(classes)
    assert {row.id: row.label for row in store.labels()} == expected
    store.close()


@pytest.mark.parametrize(
    "change",
    [
        ("add", "cat"),
        ("add", " "),
        ("add", "x" * 300),
        ("add", "cat "),
        ("rename", "bird", "cat"),
        ("rename", "cat", "dog"),
        ("rename", "cat", ""),
        ("merge", "cat", "cat"),
        ("merge", "cat", "bird"),
    ],
)
def test_changes_that_cannot_be_are_refused_and_change_nothing(project, change):
    before = (project.folder / "sabal.toml").read_bytes()
    with pytest.raises((InputError, UnknownNameError)):
        project.change_classes(*change)
    assert project.classes == ("cat", "dog", "cow")
    assert (project.folder / "sabal.toml").read_bytes() == before
    assert project.store.class_changes() == []


def test_two_classes_are_left(project):
    project.change_classes("merge", "cat", "dog")
    with pytest.raises(InputError, match="at least two"):
        project.change_classes("merge", "cow", "dog")


# sabal.toml


def test_sabal_toml_has_the_classes_and_keeps_the_rest(project):
    path = project.folder / "sabal.toml"
    text = path.read_text()
    path.write_text(text.replace("[loop]", "# mine: ]\n[loop]"))
    project.change_classes("add", 'a "]" # b')
    project.change_classes("rename", "cat", "feline]")
    assert read_settings(path).classes == ("feline]", "dog", "cow", 'a "]" # b')
    assert "# mine: ]" in path.read_text()
    with Project.open(project.folder) as again:
        assert again.classes == project.classes


@pytest.mark.parametrize("line", ['classes=["a","b"] # two', '"classes" = ["a", "b"]'])
def test_classes_however_they_are_written(tmp_path, line):
    path = tmp_path / "sabal.toml"
    path.write_text(f'[project]\nname="p"\nkind="text"\ndata="x"\n{line}\n')
    write_classes(path, ("a", "c"))
    assert tomllib.loads(path.read_text())["project"]["classes"] == ["a", "c"]


def test_a_sabal_toml_that_cannot_be_written_stops_the_change(project, monkeypatch):
    def full(path, classes):
        raise FileError("room", "none", "make some")

    monkeypatch.setattr("sabal.labeling.project.write_classes", full)
    with pytest.raises(FileError, match="room"):
        project.change_classes("add", "bird")
    assert project.classes == ("cat", "dog", "cow")


@pytest.mark.parametrize("classes", [["cat", "dog"], ["cat", "dog", "cow", "bird"], ["a", "b"]])
def test_other_classes_in_sabal_toml_are_refused_with_what_to_do(project, classes):
    answer(project.store, "i0", "cat")
    write_classes(project.folder / "sabal.toml", tuple(classes))
    with pytest.raises(FileError, match="sabal classes") as caught:
        Project.open(project.folder)
    assert '["cat", "dog", "cow"]' in str(caught.value) or "'cat'" in str(caught.value)
    with pytest.raises(FileError, match="sabal classes"):
        Project.open(project.folder, to_read=True)
    write_classes(project.folder / "sabal.toml", ("cow", "dog", "cat"))
    with Project.open(project.folder) as again:
        assert again.classes == ("cow", "dog", "cat"), "another order is another order of buttons"


def test_a_class_that_version_0_1_let_go_can_be_put_back(project):
    answer(project.store, "i0", "cow")
    with project.store.database.write() as connection:
        connection.exec_driver_sql(
            "UPDATE settings SET content = json_set(content, '$.classes', json(?))",
            ('["cat", "dog"]',),
        )
    write_classes(project.folder / "sabal.toml", ("cat", "dog"))
    with pytest.raises(FileError, match="add 'cow' there again"):
        Project.open(project.folder)
    write_classes(project.folder / "sabal.toml", ("cat", "dog", "cow"))
    with Project.open(project.folder) as again:
        again.change_classes("merge", "cow", "dog")
        assert labels(again) == {"i0": "dog"}


# Training goes on


def test_the_engine_goes_on_with_other_classes(tmp_path):
    with digits_project(tmp_path, items=120, budget=30) as project:
        engine = Engine(project)
        while engine.step():
            pass
        other = Project.open(project.folder)  # as the app, beside the worker
        label_all(project.store)
        other.change_classes("rename", CLASSES[3], "three")
        other.change_classes("merge", CLASSES[8], CLASSES[9])
        other.change_classes("add", "none of these")
        while engine.step():
            pass
        assert engine._head.class_names == other.classes
        assert len(other.classes) == 10
        while not project.store.status().finished:
            while engine.step():
                pass
            for each in project.store.next_items("ann", 99):
                answer(project.store, each.item, true_label(each.item))
        while engine.step():
            pass
        trainings = len(project.store.trainings())
        other.change_classes("rename", "three", "3")
        steps = list(iter(engine.step, None))
        assert steps.count("train") == 1, "the last model has the present names"
        assert len(project.store.trainings()) == trainings + 1
        assert "3" in engine._head.class_names
        other.close()


# Guidelines


def test_guidelines_follow_their_classes(project):
    store = project.store
    store.set_guideline("# All\nlook twice", person="lea")
    store.set_guideline("has whiskers", "cat")
    project.change_classes("rename", "cat", "feline")
    project.change_classes("add", "cat")
    found = store.guidelines()
    assert found.project == "# All\nlook twice"
    assert found.classes == {"feline": "has whiskers", "dog": "", "cow": "", "cat": ""}
    for text, name in (("x" * 30_000, None), ("a\0b", None)):
        with pytest.raises(InputError):
            store.set_guideline(text, name)
    with pytest.raises(UnknownNameError):
        store.set_guideline("x", "bird")


# Over HTTP


def test_the_lead_changes_classes_and_guidelines_over_http(project):
    client = TestClient(create_app(project, worker=False), base_url="http://127.0.0.1")
    changed = client.post(
        "/api/classes", json={"action": "rename", "name": "dog", "target": "hound"}
    )
    assert changed.json()["classes"] == ["cat", "hound", "cow"]
    assert changed.json()["changes"][0]["name"] == "dog"
    guided = client.post("/api/guidelines", json={"text": "barks", "class_name": "hound"})
    assert guided.json()["guidelines"]["classes"]["hound"] == "barks"
    assert client.get("/api/classes").json() == guided.json()
    schema = client.get("/api/openapi.json").json()["components"]["schemas"]["LabelBody"]
    assert schema["oneOf"][0]["properties"]["label"]["enum"] == ["cat", "hound", "cow"]
    assert "hound" in client.get("/").text
    for wrong, status in (
        ({"action": "rename", "name": "dog"}, 400),
        ({"action": "add", "name": "a", "target": "b"}, 400),
        ({"action": "drop", "name": "cat"}, 422),
    ):
        assert client.post("/api/classes", json=wrong).status_code == status
    missing = {"action": "merge", "name": "bird", "target": "cat"}
    assert client.post("/api/classes", json=missing).status_code == 404
    project.store.add_person("Lea", "lead")
    token = project.store.add_person("Ann")
    headers = {"authorization": f"Bearer {token}"}
    assert client.get("/api/classes", headers=headers).status_code == 200
    for address, body in (
        ("/api/classes", {"action": "add", "name": "bird"}),
        ("/api/guidelines", {"text": "mine"}),
    ):
        assert client.post(address, json=body, headers=headers).status_code == 403
    sent = {"submission": str(uuid.uuid4()), "annotator": "Ann", "item": "i0", "label": "dog"}
    stored = client.post("/api/labels", json=sent, headers=headers)
    assert stored.json()["answer"]["label"] == "hound", "the page was opened before"
