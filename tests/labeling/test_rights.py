"""Personal links over HTTP: who may do what, and under which name."""

from __future__ import annotations

import uuid
import warnings

import pytest

from sabal.errors import FileError
from sabal.labeling.project import Project
from sabal.labeling.store.records import NewBatchItem
from sabal.labeling.web import create_app

with warnings.catch_warnings():
    # With the older httpx it works as well, and says so.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

HERE = "http://127.0.0.1:8760"
READS = ("/api/batch", "/api/curve", "/api/export", "/api/disagreements", "/dashboard")


@pytest.fixture
def project(tmp_path):
    texts = "".join(f"t{n},text {n}\n" for n in range(6))
    (tmp_path / "texts.csv").write_text(f"id,text\n{texts}")
    given = {"data": tmp_path / "texts.csv", "classes": ("cat", "dog"), "overlap": 2}
    with Project.create(tmp_path / "p", **given) as project:
        project.store.add_round(0, [NewBatchItem(row) for row in range(6)], strategy="random")
        yield project


@pytest.fixture
def client(project):
    """A client of the app; a call with a token is made with that one only."""
    with TestClient(create_app(project, worker=False), base_url=HERE) as client:
        yield client


@pytest.fixture
def tokens(project):
    roles = {"Ann": "annotator", "Bob": "annotator", "Lea": "lead", "Rob": "reader"}
    return {name: project.store.add_person(name, role) for name, role in roles.items()}


def get(client, address, token, **query):
    return client.get(address, params=query, headers={"authorization": f"Bearer {token}"})


def label(client, token, item, label, name, address="/api/labels"):
    body = {"submission": str(uuid.uuid4()), "annotator": name, "item": item, "label": label}
    return client.post(address, json=body, headers={"authorization": f"Bearer {token}"})


def test_without_personal_links_everybody_may_do_everything(client):
    assert client.get("/api/me").json() == {
        "name": None,
        "role": None,
        "rights": ["answer", "manage", "review"],
    }
    for address in (*READS, "/api/people"):
        assert client.get(address).status_code == 200


def test_with_personal_links_nothing_opens_without_one(client, tokens):
    for address in (*READS, "/api/status", "/api/me", "/media/t0"):
        assert client.get(address).status_code == 401
        assert get(client, address, "guess").status_code == 401
    asked = client.get("/", headers={"accept": "text/html"}, follow_redirects=False)
    assert asked.headers["location"] == "/login"


@pytest.mark.parametrize(
    ("name", "reads", "answers", "decides"),
    [("Ann", 403, 200, 403), ("Rob", 200, 403, 403), ("Lea", 200, 200, 200)],
)
def test_roles(client, tokens, name, reads, answers, decides):
    token = tokens[name]
    assert get(client, "/api/status", token).status_code == 200
    assert {get(client, address, token).status_code for address in READS} == {reads}
    assert get(client, "/api/next", token, annotator=name).status_code == answers
    assert label(client, token, "t0", "cat", name).status_code == answers
    undo = {"submission": str(uuid.uuid4()), "annotator": name}
    sent = client.post("/api/undo", json=undo, headers={"authorization": f"Bearer {token}"})
    assert sent.status_code == answers
    assert label(client, token, "t1", "dog", name, "/api/decisions").status_code == decides
    assert get(client, "/api/people", token).status_code == decides


def test_nobody_takes_the_name_of_another(client, tokens, project):
    for address in ("/api/labels", "/api/decisions"):
        refused = label(client, tokens["Lea"], "t0", "cat", "Ann", address)
        assert refused.status_code == 403
        assert "Lea" in refused.json()["error"]["expected"]
    assert get(client, "/api/next", tokens["Ann"], annotator="Bob").status_code == 403
    undo = {"submission": str(uuid.uuid4()), "annotator": "Bob"}
    as_ann = {"authorization": f"Bearer {tokens['Ann']}"}
    assert client.post("/api/undo", json=undo, headers=as_ann).status_code == 403
    assert project.store.history() == []


def test_a_link_logs_in_and_its_end_takes_effect_at_once(client, tokens, project):
    opened = client.get(f"/login?token={tokens['Ann']}", follow_redirects=False)
    assert (opened.status_code, opened.headers["location"]) == (303, "/")
    assert client.get("/api/me").json()["name"] == "Ann"
    assert client.get("/").status_code == 200
    project.store.renew_person("Ann")
    assert client.get("/api/me").status_code == 401
    assert client.get("/login?token=wrong").status_code == 401


def test_the_shared_token_ends_with_the_first_personal_link(project):
    shared = "a shared token".replace(" ", "-")
    with TestClient(create_app(project, token=shared, worker=False), base_url=HERE) as client:
        assert get(client, "/api/status", shared).status_code == 200
        token = project.store.add_person("Lea", "lead")
        assert get(client, "/api/status", shared).status_code == 401
        assert get(client, "/api/status", token).status_code == 200


def test_the_lead_decides_what_people_disagree_on(client, tokens):
    for name, given in (("Ann", "cat"), ("Bob", "dog")):
        assert label(client, tokens[name], "t3", given, name).status_code == 200
    [disputed] = get(client, "/api/disagreements", tokens["Lea"]).json()["items"]
    assert (disputed["id"], disputed["content"]) == ("t3", "text 3")
    assert [(vote["annotator"], vote["label"]) for vote in disputed["votes"]] == [
        ("Ann", "cat"),
        ("Bob", "dog"),
    ]
    decided = label(client, tokens["Lea"], "t3", "dog", "Lea", "/api/decisions")
    assert decided.json()["answer"]["decides"] is True
    assert get(client, "/api/disagreements", tokens["Lea"]).json() == {"items": []}
    batch = get(client, "/api/batch", tokens["Rob"]).json()["items"]
    assert batch[3]["label"] == "dog"


def test_a_database_that_fails_is_said_before_anybody_is_let_in(client, project, monkeypatch):
    def fails():
        raise FileError("a usable database", "none", "wait")

    monkeypatch.setattr(project.store, "people", fails)
    assert client.get("/api/status").status_code == 503
