"""The routes of a review: what people see of items and answers, and labels for several items."""

from __future__ import annotations

import uuid
import warnings

import pytest

from labeling_helpers import answer, open_store, settings
from sabal.labeling.project import Project
from sabal.labeling.store.records import NewBatchItem
from sabal.labeling.web import create_app

with warnings.catch_warnings():
    # With the older httpx it works as well, and says so.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient


@pytest.fixture
def project(tmp_path):
    store = open_store(tmp_path / "sabal.db", items=12, batch=0, overlap=2)
    store.add_round(0, [NewBatchItem(row) for row in range(8)], strategy="random")
    guesses = dict.fromkeys(range(8), ("dog", 0.75))
    store.set_predictions(store.add_training(0, 5, 0), store.database.now_text(), guesses)
    with Project(tmp_path, settings(overlap=2), store) as project:
        yield project


def client_of(project, token=None):
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    app = create_app(project, worker=False)
    return TestClient(app, base_url="http://127.0.0.1:8760", headers=headers)


def sent(**more):
    return {"submission": str(uuid.uuid4()), "annotator": "ann", **more}


def test_items_come_with_answers_and_the_guess_once_answered(project):
    answer(project.store, "i1", "cat", "ann")
    client = client_of(project)
    found = client.get("/api/items", params={"shown": "model"}).json()
    assert found["total"] == 1
    assert found["items"][0] | {"content": ""} == {
        "id": "i1", "kind": "text", "content": "", "url": None, "rank": 2, "round": 0,
        "label": "cat", "votes": [{"annotator": "ann", "label": "cat", "decides": False}],
        "guess": {"label": "dog", "probability": 0.75},
    }  # fmt: skip
    open_item = client.get("/api/item", params={"id": "i2"}).json()
    assert open_item["item"]["guess"] is None
    assert client.get("/api/item", params={"id": "no"}).status_code == 404
    assert client.get("/api/items", params={"shown": "no"}).status_code == 400
    assert client.get("/api/items", params={"text": "text 1", "count": 1}).json()["total"] == 3


def test_an_annotator_sees_their_own_answers_only(project):
    token = project.store.add_person("ann", "annotator")
    reader = project.store.add_person("eve", "reader")
    answer(project.store, "i1", "cat", "ann")
    answer(project.store, "i1", "dog", "bob")
    answer(project.store, "i2", "dog", "bob")
    client = client_of(project, token)
    for shown in ("all", "labeled", "disputed", "model", "unlabeled"):
        response = client.get("/api/items", params={"shown": shown, "annotator": "bob"})
        [item] = response.json()["items"]
        assert item["id"] == "i1"
        assert item["label"] == "cat"
        assert [vote["annotator"] for vote in item["votes"]] == ["ann"]
        assert item["guess"] is None
    one = client.get("/api/item", params={"id": "i1"}).json()
    assert "bob" not in str(one)
    page = client.get("/items", headers={"accept": "text/html"}).text
    assert "bob" not in page
    assert "i1" in page
    refused = client.get("/api/answers", params={"annotator": "bob"})
    assert refused.status_code == 403
    reading = client_of(project, reader)
    assert reading.get("/api/items", params={"shown": "labeled"}).json()["total"] == 2
    assert reading.post("/api/bulk", json=sent(items=["i9"], label="cat")).status_code == 403


def test_several_items_get_one_label_and_none_twice(project):
    client = client_of(project)
    answer(project.store, "i1", "dog", "bob")
    body = sent(items=["i0", "i1", "i9", "i9"], label="cat")
    for _ in range(2):  # the same again, as after a lost connection
        assert client.post("/api/bulk", json=body).json() == {"labeled": 2, "left_out": ["i1"]}
        labels = {(row.id, row.label, row.annotator, row.round) for row in project.store.labels()}
        assert labels == {
            ("i0", "cat", "ann", 0),
            ("i9", "cat", "ann", -1),
            ("i1", "dog", "bob", 0),
        }
    assert client.post("/api/bulk", json=sent(items=["i3"], label="cow")).status_code == 422
    assert client.post("/api/bulk", json=sent(items=[], label="cat")).status_code == 422
    own = client.get("/api/answers", params={"annotator": "ann"}).json()["items"]
    assert {each["id"]: each["label"] for each in own} == {"i0": "cat", "i9": "cat"}
    project.store.undo("ann", str(uuid.uuid4()))
    assert client.post("/api/bulk", json=body).json()["labeled"] == 2


def test_the_items_page_takes_whatever_a_form_sends(project):
    client = client_of(project)
    empty = {"text": "", "label": "", "annotator": "", "round": "", "shown": "all"}
    assert "<b>12</b>" in client.get("/items", params=empty).text
    for wrong in ({"round": "x"}, {"page": "0"}, {"text": "x" * 300}):
        assert client.get("/items", params=wrong).status_code == 422
    assert "Nothing here" in client.get("/items", params={"page": "9"}).text
    assert client.get("/disagreements").url.path == "/items"


def test_the_first_person_is_a_lead_and_nobody_removes_themselves(project):
    client = client_of(project)

    def change(asks=client, **body):
        return asks.post("/api/people", json=body)

    assert change(action="add", name="Bob", role="annotator").status_code == 400
    assert change(action="add", name="Bob").status_code == 400
    token = change(action="add", name="Ada", role="lead").json()["token"]
    assert change(action="add", name="Bob").status_code == 401, "personal links only, from now on"
    lead = client_of(project, token)
    added = change(lead, action="add", name="Bob").json()
    assert added["people"] == [
        {"name": "Ada", "role": "lead"},
        {"name": "Bob", "role": "annotator"},
    ]
    bob = client_of(project, added["token"])
    assert change(bob, action="add", name="Eve").status_code == 403
    assert bob.get("/project").status_code == 403
    assert change(lead, action="remove", name="Ada").status_code == 400
    assert change(lead, action="add", name="bob").status_code == 400
    renewed = change(lead, action="renew", name="Bob").json()["token"]
    assert bob.get("/api/me").status_code == 401
    assert client_of(project, renewed).get("/api/me").json()["name"] == "Bob"
    assert change(lead, action="remove", name="Bob").json()["token"] is None
    assert client_of(project, renewed).get("/api/me").status_code == 401


def test_guidelines_are_read_and_do_nothing_else(project):
    text = "# A\n\n<b onclick=x>b</b> ![i](/x.png) [j](javascript:x) [k](https://k.example) `c`"
    project.store.set_guideline(text)
    project.store.set_guideline("**furry**", "cat")
    html = client_of(project).get("/help").text
    guidelines = html[html.index('<div class="guidelines">') : html.index("<h2>Keys")]
    assert "<h3>A</h3>" in guidelines
    assert "<strong>furry</strong>" in guidelines
    assert 'href="https://k.example"' in guidelines
    for forbidden in ("<b ", "<img", 'href="javascript'):
        assert forbidden not in guidelines
