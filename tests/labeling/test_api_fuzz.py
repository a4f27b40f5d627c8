"""Bad input over HTTP: requests made from the app's own description, and a few by hand.

Schemathesis reads /api/openapi.json and makes requests that follow it and requests that break it.
Whatever comes is answered as described: no error of ours, no status that is not listed, no body
that is not as promised; what breaks the description is refused, what follows it is not.
"""

from __future__ import annotations

import json
import uuid
import warnings

import pytest
import schemathesis
from schemathesis.engine import Status, events, from_schema

from sabal.labeling.project import Project
from sabal.labeling.store.records import NewBatchItem
from sabal.labeling.web import create_app

with warnings.catch_warnings():
    # With the older httpx it works as well, and says so.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

ITEMS = 200
MIN_CASES = 400
CONFIG = {
    "seed": 20,
    "suppress-health-check": ["all"],  # how busy the machine is decides nothing
    "generation": {"max-examples": 30, "database": "none"},
    # Calls that follow one another are tested by hand: here they would only take time.
    "phases": {"stateful": {"enabled": False}},
    "checks": {
        # 400: not now, for instance an item that somebody else has answered. 404: no such item.
        "positive_data_acceptance": {"expected-statuses": ["2xx", 400, 404]},
    },
}


@pytest.fixture
def project(tmp_path):
    data = tmp_path / "texts.csv"
    data.write_text("id,text\n" + "".join(f"i{n},text {n}\n" for n in range(ITEMS)))
    with Project.create(tmp_path / "p", data=data, classes=["cat", "dog <&>"]) as project:
        chosen = [NewBatchItem(row, why={"uncertainty": 0.5}) for row in range(ITEMS)]
        project.store.add_round(0, chosen, strategy="random")
        yield project


def app_of(project):
    # Schemathesis goes by the name of "testserver".
    return create_app(project, worker=False, allowed_hosts=("testserver", "127.0.0.1"))


def test_requests_made_from_the_description(project):
    schema = schemathesis.openapi.from_asgi(
        "/api/openapi.json", app_of(project), config=schemathesis.Config.from_dict(CONFIG)
    )
    # The first person with a link shuts everybody else out.
    schema = schema.exclude(method="POST", path="/api/people")

    @schema.hook
    def map_body(context, body):
        """Names an item of the project in most bodies, or none of them would be stored."""
        if isinstance(body, dict) and isinstance(body.get("item"), str) and len(body["item"]) < 9:
            body["item"] = f"i{sum(map(ord, body['item'])) % ITEMS}"
        return body

    cases, failures, labels = 0, [], set()
    for event in from_schema(schema).execute():
        assert not isinstance(event, events.NonFatalError | events.FatalError), event
        if isinstance(event, events.ScenarioFinished):
            labels.add(event.label)
            for checks in event.recorder.checks.values():
                cases += 1
                failures += [
                    (each.name, each.failure_info.failure.message, each.failure_info.code_sample)
                    for each in checks
                    if each.status is Status.FAILURE
                ]
    assert failures == []
    described = schema.raw_schema["paths"].values()
    assert len(labels) == sum(map(len, described)) - 1
    assert cases >= MIN_CASES
    print(f"\n{cases} requests, {len(project.store.history())} of them stored an answer")
    assert {"label", "undo"} <= {each.action for each in project.store.history()}


def body(**more):
    return {
        "submission": str(uuid.uuid4()),
        "annotator": "ada",
        "item": "i0",
        "label": "cat",
    } | more


DEEP = "[" * 100_000 + "]" * 100_000
BY_HAND = {
    "half a character as annotator": json.dumps(body(annotator="\ud800")),
    "half a character as item": json.dumps(body(item="\udfff")),
    "half a character as label": json.dumps(body(label="\ud83d")),
    "half a character as a name": json.dumps({**body(), "\ud800": 1}),
    "NUL as annotator": json.dumps(body(annotator="a\0b")),
    "NUL as item": json.dumps(body(item="i0\0")),
    "NUL as label": json.dumps(body(label="cat\0")),
    "blanks as annotator": json.dumps(body(annotator=" \u00a0\u2003\t")),
    "no number": '{"seconds": NaN}',
    "without end": json.dumps(body(seconds=float("inf"))),
    "minus without end": json.dumps(body(seconds=float("-inf"))),
    "too large a number": json.dumps(body()).replace('"cat"', '"cat", "seconds": 1e400'),
    "a number of 400 digits": json.dumps(body(seconds=10**400)),
    "a number of 5,000 digits": json.dumps(body()).replace(
        '"cat"', '"cat", "seconds": ' + "9" * 5000
    ),
    "a number as item": json.dumps(body(item=10**30)),
    "true as seconds": json.dumps(body(seconds=True)),
    "a word as skip": json.dumps(body(label=None, skip="yes")),
    "one as skip": json.dumps(body(label=None, skip=1)),
    "deep lists": DEEP,
    "deep objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "a deep item": json.dumps(body())[:-1] + f', "x": {DEEP}}}',
    "a list": "[]",
    "a text": '"cat"',
    "null": "null",
    "nothing": "",
    "half a body": json.dumps(body())[:-5],
    "two bodies": json.dumps(body()) * 2,
    "a long item": json.dumps(body(item="x" * 900_000)),
    "not UTF-8": b'{"item": "\xff\xfe"}',
    "UTF-16": json.dumps(body(), ensure_ascii=False).encode("utf-16-be")[:-1],
}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("by-hand")
    data = folder / "texts.csv"
    data.write_text("id,text\ni0,zero\ni1,one\n")
    with Project.create(folder / "p", data=data, classes=["cat", "dog"]) as project:
        project.store.add_round(0, [NewBatchItem(0), NewBatchItem(1)], strategy="random")
        with TestClient(app_of(project), base_url="http://127.0.0.1") as client:
            yield client
        assert project.store.history() == []


@pytest.mark.parametrize("path", ["/api/labels", "/api/undo"])
@pytest.mark.parametrize("content", BY_HAND.values(), ids=BY_HAND)
def test_bodies_by_hand_are_refused_in_words(client, path, content):
    sent = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    answer = client.post(path, content=sent, headers={"content-type": "application/json"})
    assert 400 <= answer.status_code < 500
    error = answer.json()["error"]
    assert set(error) == {"expected", "got", "fix"}
    assert len(answer.content) < 2_000


@pytest.mark.parametrize(
    "query",
    [
        "next",
        "next?annotator=",
        "next?annotator=%20%09",
        "next?annotator=a%00b",
        "next?annotator=a&count=0",
        "next?annotator=a&count=-1",
        "next?annotator=a&count=101",
        f"next?annotator=a&count={'9' * 5000}",
        "next?annotator=a&count=1e9",
        "next?annotator=a&count=one",
        "next?annotator=a&annotator=b",
        f"next?annotator={'a' * 81}",
        "batch?round=99999999999999999999",
        "batch?round=-2",
        "batch?round=2147483648",
        f"batch?round={'1' * 5000}",
        "batch?round=NaN",
        "batch?round=%00",
        "export?format=%00",
        "export?format=csv&format=jsonl",
        f"export?format={'x' * 5000}",
        "export?format=..%2f..%2fetc%2fpasswd",
    ],
)
def test_questions_by_hand_are_refused_in_words(client, query):
    answer = client.get(f"/api/{query}")
    assert 400 <= answer.status_code < 500
    assert set(answer.json()["error"]) == {"expected", "got", "fix"}


@pytest.mark.parametrize("name", ["%ff%fe", "%ed%a0%80", "a%0ab", "%f0%9f%99%82", "👩‍🔬"])
def test_names_of_any_letters_are_names(client, name):
    assert client.get(f"/api/next?annotator={name}").status_code == 200
