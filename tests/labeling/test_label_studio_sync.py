"""Claims of tasks, and what can be wrong before Label Studio is asked anything.

The sync itself is tested against a real Label Studio, in tests_label_studio.
"""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from sabal.errors import InputError, ServerError
from sabal.labeling.exchange import label_studio_server
from sabal.labeling.exchange.exporting import export_bytes, open_rows
from sabal.labeling.exchange.label_studio import Interface, make_tasks
from sabal.labeling.exchange.label_studio_server import LabelStudioServer, server_and_project
from sabal.labeling.settings import Settings
from sabal.labeling.store import Store
from sabal.labeling.store.records import CHECK, NewBatchItem, PoolItem
from sabal.labeling.store.task_claims import CLAIM_SECONDS

KEYS = ("a", "b", "c")
HERE, ELSEWHERE = "http://x/projects/1", "http://x/projects/2"


class Clock:
    def __init__(self):
        self.now = datetime(2026, 1, 31, tzinfo=UTC)

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(database, clock):
    settings = Settings.from_dict(
        {"name": "p", "classes": ["cat", "dog"], "kind": "text", "data": "/data"}
    )
    with_items = Store.open(database, settings, clock=clock)
    with_items.add_items(PoolItem(k, key, "text", f"text {key}") for k, key in enumerate(KEYS))
    yield with_items
    with_items.close()


def test_an_item_is_claimed_once_for_a_while(store, clock):
    assert store.claim_tasks(HERE, ["a", "b"]) == {"a", "b"}
    assert store.claim_tasks(HERE, KEYS) == {"c"}
    assert store.claim_tasks(ELSEWHERE, KEYS) == set(KEYS)
    clock.now += timedelta(seconds=CLAIM_SECONDS - 1)
    assert store.claim_tasks(HERE, KEYS) == set()
    clock.now += timedelta(seconds=2)
    assert store.claim_tasks(HERE, KEYS) == set(KEYS)
    assert store.claim_tasks(HERE, KEYS) == set()


def test_a_claim_can_be_given_up(store):
    store.claim_tasks(HERE, KEYS)
    store.release_tasks(HERE, ["b", "unknown"])
    assert store.claim_tasks(HERE, [*KEYS, "unknown"]) == {"b"}
    assert store.claim_tasks(HERE, []) == set()


def test_a_claim_of_the_future_holds_nobody_up(store, clock):
    clock.now += timedelta(days=1)
    store.claim_tasks(HERE, KEYS)
    clock.now -= timedelta(days=1)
    assert store.claim_tasks(HERE, KEYS) == set(KEYS)


def test_tasks_have_priority_and_prediction_but_check_items_no_prediction(store):
    why = {"guess": {"label": "dog", "probability": 0.75}}
    batch = [NewBatchItem(0, why=why), NewBatchItem(1, role=CHECK, why=why), NewBatchItem(2)]
    store.add_round(0, batch, strategy="sabal")
    first, check, last = make_tasks(open_rows(store), interface=Interface("mood", "shown", "body"))
    assert first["data"]["body"] == "text a"
    assert first["predictions"] == [
        {
            "model_version": "sabal",
            "score": 0.75,
            "result": [
                {
                    "type": "choices",
                    "from_name": "mood",
                    "to_name": "shown",
                    "value": {"choices": ["dog"]},
                }
            ],
        }
    ]
    assert "predictions" not in check
    assert "predictions" not in last
    tasks = json.loads(export_bytes(store, "label-studio", batch=True))
    priorities = [task["data"]["sabal_priority"] for task in tasks]
    assert priorities == pytest.approx([1, 2 / 3, 1 / 3])


@pytest.mark.parametrize(
    ("url", "token"),
    [("localhost:8080", "t"), ("file:///etc/passwd", "t"), ("http://", "t"), ("http://x", ""),
     ("http://x", "two\nlines"), ("http://x", "é")],
)  # fmt: skip
def test_an_address_or_token_that_cannot_be_one_is_refused(url, token):
    with pytest.raises(InputError):
        LabelStudioServer(url, 1, token)


def test_a_server_that_is_not_there_is_one_line():
    with pytest.raises(ServerError, match="Connection refused") as caught:
        LabelStudioServer("http://127.0.0.1:9", 1, "a secret").revision()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "number", "expected"),
    [
        ("http://x:8080", 3, ("http://x:8080", 3)),
        ("http://x:8080/projects/3", None, ("http://x:8080", 3)),
        ("https://x/label/projects/12/data?tab=4&task=7", None, ("https://x/label", 12)),
        ("http://x/projects/3/settings/", 3, ("http://x", 3)),
    ],
)
def test_the_address_of_a_page_names_the_project(url, number, expected):
    assert server_and_project(url, number) == expected


@pytest.mark.parametrize(
    ("url", "number", "message"),
    [
        ("http://x", None, "add --project"),
        ("http://x/projects/", None, "add --project"),
        ("http://x/projects/3", 4, "project 4; got .*project 3"),
        ("http://x/projects/", 4, "a page of no project"),
    ],
)
def test_addresses_that_name_none_or_another(url, number, message):
    with pytest.raises(InputError, match=message):
        server_and_project(url, number)


@pytest.mark.parametrize(
    "answer",
    [b"[" * 100_000, b"{", b"[]", b"{}", b'{"total": 1, "tasks": [1]}',
     b'{"total": 1, "tasks": [{"id": []}]}', b'{"total": 1, "tasks": [{}]}',
     b'{"total": 1000000000000, "tasks": []}', b'{"total": 1, "tasks": [{"id": 1}]' + b" " * 999],
)  # fmt: skip
def test_whatever_a_server_answers_is_tasks_or_one_line(answer, monkeypatch):
    monkeypatch.setattr(label_studio_server, "MAX_BYTES", 900 if answer[-1:] == b" " else 2**20)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_address[1]}"
            with pytest.raises(ServerError):
                LabelStudioServer(address, 1, "token").tasks()
        finally:
            server.shutdown()
            thread.join()
