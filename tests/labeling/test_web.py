"""The labelling room over HTTP: answers, what is told when, and who is let in."""

from __future__ import annotations

import asyncio
import io
import json
import re
import socket
import uuid
import warnings
from pathlib import Path

import pytest
from PIL import Image

from sabal.errors import FileError, InputError
from sabal.labeling.project import Project
from sabal.labeling.store.records import CurvePoint, NewBatchItem
from sabal.labeling.web import app as web_app
from sabal.labeling.web import charts, create_app, media, server
from sabal.labeling.web.pages import layout_of, shortcuts
from sabal.labeling.web.security import MAX_BODY

with warnings.catch_warnings():
    # With the older httpx it works as well, and says so.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

HERE = "http://127.0.0.1:8760"
TOKEN = "secret"  # noqa: S105
WEB = Path(server.__file__).parent
NASTY = "<script>alert(\"1\")</script> & 'ünï' 🙂\nsecond line"
WHY = {
    "uncertainty": 0.75,
    "represents": 4,
    "guess": {"label": "dog", "probability": 0.625},
    "neighbours": [{"item": "3", "label": "dog", "distance": 0.5}],
}


def text_project(folder, classes=("cat", "dog"), **settings):
    texts = [f"text number {n}" for n in range(8)]
    texts[1] = NASTY
    rows = [json.dumps({"id": str(n), "body": text}) for n, text in enumerate(texts)]
    (folder / "texts.jsonl").write_text("\n".join(rows), encoding="utf-8")
    project = Project.create(
        folder / "project",
        data=folder / "texts.jsonl",
        classes=classes,
        text_column="body",
        id_column="id",
        **settings,
    )
    chosen = [NewBatchItem(row, weight=1.0 + row, why=WHY if row else {}) for row in range(6)]
    project.store.add_round(0, chosen, strategy="random")
    return project


@pytest.fixture
def project(tmp_path):
    with text_project(tmp_path) as project:
        yield project


def client_of(project, **options):
    return TestClient(create_app(project, worker=False, **options), base_url=HERE)


@pytest.fixture
def client(project):
    with client_of(project) as client:
        yield client


def body(item, label=None, annotator="ada", **more):
    answer = {"skip": True} if label is None else {"label": label}
    return {
        "submission": str(uuid.uuid4()),
        "annotator": annotator,
        "item": item,
        **answer,
        **more,
    }


def problem_of(response):
    error = response.json()["error"]
    assert set(error) == {"expected", "got", "fix"}
    assert all(isinstance(part, str) and part for part in error.values())
    return error


def test_next_items_come_by_rank_and_stay_with_who_asked(client):
    first = client.get("/api/next", params={"annotator": "ada", "count": 2}).json()["items"]
    assert [item["id"] for item in first] == ["0", "1"]
    assert first[1]["content"] == NASTY
    assert first[0] == {
        "id": "0",
        "kind": "text",
        "content": "text number 0",
        "url": None,
        "rank": 1,
        "round": 0,
    }
    other = client.get("/api/next", params={"annotator": "bob", "count": 2}).json()["items"]
    assert [item["id"] for item in other] == ["2", "3"]
    again = client.get("/api/next", params={"annotator": "ada", "count": 2}).json()["items"]
    assert again == first


def test_a_label_is_stored_once_however_often_it_is_sent(client, project):
    sent = body("0", "cat", seconds=1.5)
    answers = [client.post("/api/labels", json=sent) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert len({answer.json()["answer"]["id"] for answer in answers}) == 1
    assert [(row.id, row.label, row.annotator) for row in project.store.labels()] == [
        ("0", "cat", "ada")
    ]
    changed = client.post("/api/labels", json={**sent, "label": "dog"})
    assert changed.status_code == 400
    assert "new id" in problem_of(changed)["fix"]
    assert len(project.store.history()) == 1


def test_two_tabs_under_one_name_share_their_items_and_the_later_answer_stands(client, project):
    tabs = [client.get("/api/next?annotator=ada&count=2").json()["items"] for _ in range(2)]
    assert tabs[0] == tabs[1]
    first = client.post("/api/labels", json=body("0", "cat")).json()
    assert first["replaces"] is None
    sent = body("0", "dog")
    for _ in range(2):  # also when it is sent again
        second = client.post("/api/labels", json=sent)
        assert second.status_code == 200
        assert second.json()["replaces"] == first["answer"]
    assert [(row.id, row.label) for row in project.store.labels()] == [("0", "dog")]
    assert client.get("/api/status").json()["labeled"] == 1
    undo = {"submission": str(uuid.uuid4()), "annotator": "ada"}
    client.post("/api/undo", json=undo)
    third = client.post("/api/labels", json=body("0")).json()
    assert third["replaces"] is None  # nothing stood
    other = client.post("/api/labels", json=body("1", "cat", annotator="bob")).json()
    assert other["replaces"] is None


def test_skip_and_undo(client, project):
    client.post("/api/labels", json=body("0", "cat"))
    skipped = client.post("/api/labels", json=body("1")).json()
    assert skipped["answer"]["action"] == "skip"
    assert [row.id for row in project.store.skipped()] == ["1"]
    undo = {"submission": str(uuid.uuid4()), "annotator": "ada"}
    undone = [client.post("/api/undo", json=undo).json()["answer"] for _ in range(2)]
    assert undone[0] == undone[1]
    assert undone[0]["item"] == "1"
    assert project.store.skipped() == []
    assert client.get("/api/next", params={"annotator": "ada"}).json()["items"][0]["id"] == "1"
    client.post("/api/undo", json={**undo, "submission": str(uuid.uuid4())})
    empty = client.post("/api/undo", json={**undo, "submission": str(uuid.uuid4())})
    assert empty.json() == {"answer": None}
    assert project.store.labels() == []


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({**body("0", "cat"), "item": "no such item"}, 404),
        (body("0", "bird"), 422),
        (body("7", "cat"), 400),  # in the pool, but never chosen
        ({**body("0", "cat"), "skip": True}, 422),
        ({k: v for k, v in body("0", "cat").items() if k != "label"}, 422),
        ({**body("0", "cat"), "submission": "not a uuid"}, 422),
        (body("0", "cat", annotator="   "), 422),
        (body("0", "cat", annotator="a" * 81), 422),
        (body("0", "cat", seconds=-1), 422),
        (body("0", "cat", colour="red"), 422),
        ([], 422),
    ],
)
def test_what_cannot_be_an_answer_is_refused_in_one_form(client, project, sent, status):
    response = client.post("/api/labels", json=sent)
    assert response.status_code == status
    problem_of(response)
    assert project.store.history() == []


@pytest.mark.parametrize(
    "path",
    ["/api/next", "/api/next?annotator=a&count=0", "/api/next?annotator=a&count=101", "/api/x"],
)
def test_bad_questions_are_refused_in_the_same_form(client, path):
    response = client.get(path)
    assert 400 <= response.status_code < 500
    problem_of(response)


def test_an_answer_that_could_not_be_stored_may_be_sent_again(client, project, monkeypatch):
    def fails(submission):
        raise FileError("a usable database", "disk full", "make room")

    monkeypatch.setattr(project.store, "submit", fails)
    response = client.post("/api/labels", json=body("0", "cat"))
    assert response.status_code == 503
    assert problem_of(response)["got"] == "disk full"


def test_the_status_says_where_the_project_is(client):
    client.post("/api/labels", json=body("0", "cat"))
    client.post("/api/labels", json=body("1"))
    status = client.get("/api/status").json()
    assert status["classes"] == ["cat", "dog"]
    assert (status["round"], status["labeled"], status["skipped"]) == (0, 1, 1)
    assert (status["remaining"], status["items"], status["budget"]) == (4, 8, 500)
    assert status["batch"] == {"size": 6, "answered": 2}
    assert {"training", "progress", "error", "metrics", "finished"} <= set(status)


def test_nothing_tells_the_guess_before_the_answer(tmp_path):
    with text_project(tmp_path, show_guess=True) as project, client_of(project) as client:
        addresses = ["/api/next?annotator=ada&count=6", "/api/batch", "/dashboard", "/"]
        for address in [*addresses, "/api/status"]:
            assert "0.625" not in client.get(address).text, address
            assert "62 %" not in client.get(address).text, address
        before = client.get("/api/batch").json()["items"][2]
        assert before["why"] == {"uncertainty": 0.75, "represents": 4}
        assert (before["answered"], before["label"]) == (False, None)

        answer = client.post("/api/labels", json=body("2", "cat")).json()
        assert answer["guess"] == {"label": "dog", "probability": 0.625}
        assert client.post("/api/labels", json=body("0", "cat")).json()["guess"] is None
        assert client.post("/api/labels", json=body("3")).json()["guess"] is None
        after = client.get("/api/batch").json()["items"][2]
        assert after["why"] == WHY
        assert (after["answered"], after["label"]) == (True, "cat")


def test_a_project_that_does_not_show_guesses_never_sends_one(client):
    assert client.post("/api/labels", json=body("2", "cat")).json()["guess"] is None


def test_with_overlap_the_first_answer_does_not_sway_the_second(tmp_path):
    with text_project(tmp_path, overlap=2) as project, client_of(project) as client:
        client.post("/api/labels", json=body("2", "cat"))
        item = client.get("/api/batch").json()["items"][2]
        assert (item["answered"], item["label"]) == (False, None)
        client.post("/api/labels", json=body("2", "dog", annotator="bob"))
        item = client.get("/api/batch").json()["items"][2]
        assert (item["answered"], item["label"]) == (True, "cat")
        client.post("/api/labels", json=body("3", "dog"))
        client.post("/api/labels", json=body("3", "dog", annotator="bob"))
        assert "Two people agree on <b>50 %</b>" in client.get("/dashboard").text


@pytest.mark.parametrize(("overlap", "whom"), [(2, "a second annotator"), (3, "another annotator")])
def test_what_another_person_is_to_answer_is_told(tmp_path, overlap, whom):
    with text_project(tmp_path, overlap=overlap) as project, client_of(project) as client:
        assert client.get("/api/status").json()["waits_for"] is None
        assert "annotator" not in client.get("/dashboard").text
        for item in ("2", "3"):
            client.post("/api/labels", json=body(item, "cat"))
        status = client.get("/api/status").json()
        words = f"2 items wait for {whom}: {overlap} people answer every item"
        assert (status["waits_for"], status["partly"], status["remaining"]) == (words, 2, 6)
        assert words in client.get("/dashboard").text
        client.post("/api/labels", json=body("2", "cat", annotator="bob"))
        if overlap == 2:
            assert client.get("/api/status").json()["waits_for"].startswith("1 item waits for a")


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet", "label-studio"])
def test_labels_leave_in_every_format(client, name):
    client.post("/api/labels", json=body("1", "cat"))
    response = client.get("/api/export", params={"format": name})
    assert response.status_code == 200
    assert response.headers["content-disposition"].startswith("attachment")
    assert b"cat" in response.content


def test_an_unknown_format_is_told(client):
    response = client.get("/api/export", params={"format": "xml"})
    assert response.status_code == 404
    assert "jsonl" in problem_of(response)["expected"]


def test_the_interface_is_described(client):
    paths = client.get("/api/openapi.json").json()["paths"]
    assert set(paths) == {
        "/api/next",
        "/api/labels",
        "/api/undo",
        "/api/me",
        "/api/people",
        "/api/disagreements",
        "/api/decisions",
        "/api/classes",
        "/api/guidelines",
        "/api/items",
        "/api/item",
        "/api/details",
        "/api/answers",
        "/api/similar",
        "/api/bulk",
        "/api/status",
        "/api/batch",
        "/api/curve",
        "/api/export",
    }


# Who is let in.


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8760", "", "[::2]"])
def test_other_hosts_are_refused(client, host):
    response = client.get("/api/status", headers={"host": host})
    assert response.status_code == 400
    problem_of(response)


@pytest.mark.parametrize("host", ["localhost:1", "LOCALHOST", "[::1]:8760", "127.0.0.1"])
def test_names_of_this_machine_are_let_in(client, host):
    assert client.get("/api/status", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "file://127.0.0.1:8760"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_others_cannot_answer(client, project, headers):
    response = client.post("/api/labels", json=body("0", "cat"), headers=headers)
    assert response.status_code == 403
    problem_of(response)
    assert project.store.history() == []


@pytest.mark.parametrize("path", ["/api/next?annotator=ada", "/api/export", "/media/0"])
def test_pages_of_others_cannot_read(client, path):
    assert client.get(path, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 200


@pytest.mark.parametrize("headers", [{}, {"origin": HERE}, {"sec-fetch-site": "same-origin"}])
def test_our_page_and_programs_can(client, headers):
    response = client.post("/api/labels", json=body("0", "cat"), headers=headers)
    assert response.status_code == 200


def test_a_body_ends_at_one_megabyte(client, project):
    large = body("0", "cat", annotator="a" * MAX_BODY)
    assert client.post("/api/labels", json=large).status_code == 413

    def parts():
        for _ in range(3):
            yield b"x" * (MAX_BODY // 2)

    streamed = client.post("/api/labels", content=parts())
    assert streamed.status_code == 413
    problem_of(streamed)
    assert project.store.history() == []


def test_a_token_is_asked_for_everywhere_but_at_the_door(project):
    with client_of(project, token=TOKEN, allowed_hosts=("*",)) as client:
        for path in ("/", "/dashboard", "/api/status", "/api/openapi.json", "/media/0"):
            response = client.get(path, follow_redirects=False)
            assert response.status_code == 401, path
            problem_of(response)
        assert client.post("/api/labels", json=body("0", "cat")).status_code == 401
        door = client.get("/", headers={"accept": "text/html"}, follow_redirects=False)
        assert (door.status_code, door.headers["location"]) == (303, "/login")
        assert client.get("/login").status_code == 200
        assert client.get("/static/base.css").status_code == 200

        def with_token(value):
            return client.get("/api/status", headers={"authorization": value}).status_code

        assert with_token("Bearer secret") == 200
        assert with_token("bearer secret") == 200
        assert [with_token(v) for v in ("Bearer Secret", "Bearer ", "Basic secret")] == [401] * 3


def test_the_door_gives_a_cookie_for_the_right_token(project):
    with client_of(project, token=TOKEN) as client:
        wrong = client.get("/login", params={"token": "wrong"})
        assert wrong.status_code == 401
        assert "not the token" in wrong.text
        right = client.get("/login", params={"token": "secret"}, follow_redirects=False)
        cookie = right.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert client.get("/api/status").status_code == 200


def test_an_app_for_any_host_needs_a_token(project):
    with pytest.raises(InputError, match="token"):
        create_app(project, allowed_hosts=("*",))


def test_without_a_token_the_door_leads_in(client):
    response = client.get("/login", follow_redirects=False)
    assert response.headers["location"] == "/"


# Pages.

PAGES = ["/", "/dashboard", "/help"]


@pytest.mark.parametrize("path", [*PAGES, "/login", "/api/status", "/static/label.js", "/nowhere"])
def test_every_answer_is_marked(client, path):
    headers = client.get(path, follow_redirects=False).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] in ("no-store", "no-cache")


@pytest.mark.parametrize("path", PAGES)
def test_pages_have_nothing_inline(client, path):
    text = client.get(path).text
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", text)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))
    assert '<html lang="en">' in text
    assert text.count("<h1") == 1
    assert text.count("<main") == 1


def test_nothing_comes_from_elsewhere():
    files = [path for folder in ("templates", "static") for path in (WEB / folder).iterdir()]
    assert len(files) > 15
    for path in files:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|[\"'(]//", text), path.name


def test_whatever_people_wrote_is_only_text(tmp_path):
    names = ("<b>cat</b>", 'say "dog"')
    with (
        text_project(tmp_path, classes=names, name="<i>mine</i>") as project,
        client_of(project) as client,
    ):
        client.post("/api/labels", json=body("1", names[0], annotator="<u>ada</u>"))
        for path in PAGES:
            text = client.get(path).text
            for tag in ("<b>cat", "<i>", "<u>", "<script>alert"):
                assert tag not in text, (path, tag)
        assert "&lt;b&gt;cat&lt;/b&gt;" in client.get("/").text
        assert "&lt;u&gt;ada&lt;/u&gt;" in client.get("/dashboard").text
        assert client.get("/api/status").json()["classes"] == list(names)


def test_the_dashboard_tells_everything(client, project):
    for row in range(4):
        client.post("/api/labels", json=body(str(row), "cat", seconds=2.0))
    text = client.get("/dashboard").text
    for words in ("Too early", "4 <small>of 500", "2.0 s", "ada", "Nearest labelled"):
        assert words in text
    assert "62 %" in text  # the guess for what is answered


def test_the_dashboard_opens_before_anything_happened(tmp_path):
    (tmp_path / "a.csv").write_text("body\nx\ny\n", encoding="utf-8")
    data = tmp_path / "a.csv"
    with (
        Project.create(
            tmp_path / "empty", data=data, classes=["a", "b"], text_column="body"
        ) as project,
        client_of(project) as client,
    ):
        assert client.get("/dashboard").status_code == 200
        assert client.get("/api/batch").json() == {"items": []}
        assert client.get("/api/curve").json()["points"] == []
        status = client.get("/api/status").json()
        assert (status["round"], status["batch"]) == (None, {"size": 0, "answered": 0})


@pytest.mark.parametrize(
    ("classes", "keys"),
    [
        (["cat", "dog"], ["1", "2"]),
        (list("0123456789"), list("0123456789")),
        (["7", "1"], ["7", "1"]),
        (["1", "many"], ["1", "2"]),
        (list("abcdefghij"), list("1234567890")),
        (list("abcdefghijk"), [f"{n:02d}" for n in range(1, 12)]),
    ],
)
def test_keys_of_classes(classes, keys):
    assert [each.keys for each in shortcuts(classes)] == keys
    assert [each.label for each in shortcuts(classes)] == classes


@pytest.mark.parametrize(
    ("classes", "layout"),
    [
        (["cat", "dog"], "few"),
        (list("0123456789"), "ten short"),
        (["a long name", *"abcdef"], "ten"),
        (list("abcdefghijk"), "many"),
    ],
)
def test_layout_of_the_buttons(classes, layout):
    assert layout_of(classes) == layout


def test_no_key_begins_another():
    keys = [each.keys for each in shortcuts([f"class {n}" for n in range(150)])]
    assert len(set(keys)) == 150
    assert {len(each) for each in keys} == {3}


@pytest.mark.parametrize("counts", [[], [1], [7, 20, 33], [10, 500, 99_999]])
def test_the_curve_stays_in_its_frame(counts):
    points = [CurvePoint(n, labels, 0.5, 0.0, 1.0, 9) for n, labels in enumerate(counts)]
    chart = charts.curve_chart(points)
    assert len(chart.dots) == len(counts)
    assert 2 <= len(chart.x_marks) <= 8
    for dot in chart.dots:
        assert chart.left <= dot.x <= chart.right
        assert chart.top <= dot.high <= dot.y <= dot.low <= chart.bottom


# Images.


def image_project(folder):
    photos = folder / "photos"
    photos.mkdir()
    Image.new("L", (8, 8), 200).save(photos / "small digit #1.png")
    large = Image.new("RGB", (3000, 1500), "navy")
    exif = large.getexif()
    exif[0x010E] = "a secret place"
    large.save(photos / "photo.jpg", exif=exif)
    (photos / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n nothing")
    return Project.create(folder / "project", data=photos, classes=["a", "b"])


def test_images_are_drawn_anew_and_small(tmp_path):
    with image_project(tmp_path) as project:
        keys = {item.content: item.key for item in project.items}
        rows = {item.content: item.id for item in project.items}
        project.store.add_round(0, [NewBatchItem(row) for row in rows.values()], strategy="random")
        with client_of(project) as client:
            items = client.get("/api/next", params={"annotator": "a", "count": 9}).json()["items"]
            urls = {item["id"]: item["url"] for item in items}
            small = client.get(urls[keys["small digit #1.png"]])
            assert small.headers["content-type"] == "image/png"
            assert Image.open(io.BytesIO(small.content)).size == (8, 8)
            photo = client.get(urls[keys["photo.jpg"]])
            assert photo.headers["content-type"] == "image/jpeg"
            assert Image.open(io.BytesIO(photo.content)).size == (1024, 512)
            assert b"secret" not in photo.content
            for path in ("/media/none.png", "/media/..%2Fproject%2Fsabal.toml"):
                assert client.get(path).status_code == 404
            if "broken.png" in keys:
                broken = client.get(urls[keys["broken.png"]])
                assert broken.status_code == 404
                problem_of(broken)


def test_texts_have_no_image(client):
    assert client.get("/media/0").status_code == 404


def test_enormous_and_foreign_images_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(media, "MAX_PIXELS", 50)
    path = tmp_path / "a.png"
    Image.new("L", (8, 8)).save(path)
    with pytest.raises(FileError, match="50 pixels"):
        media.reencoded(path)
    path.write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    with pytest.raises(FileError, match="an image"):
        media.reencoded(path)


# Starting.


def test_a_port_that_is_taken_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match="another port"):
            server._listen("127.0.0.1", port)
    with pytest.raises(InputError):
        server._listen("no.such.host.invalid", 0)


def test_the_usual_port_gives_way(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(server, "USUAL_PORT", taken.getsockname()[1])
        with server._listen("127.0.0.1", None) as listener:
            assert listener.getsockname()[1] != server.USUAL_PORT


@pytest.mark.parametrize(
    ("host", "alone"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("::", False), ("lab", False)],
)
def test_only_this_machine_goes_without_a_token(host, alone):
    assert server._is_loopback(host) is alone


def test_the_address_brings_the_token_along():
    assert server._address("127.0.0.1", 80, None) == "http://127.0.0.1:80/"
    assert server._address("::1", 80, "t") == "http://[::1]:80/login?token=t"


def test_a_worker_that_died_is_replaced_and_the_last_one_is_stopped(project, monkeypatch):
    started = []

    class Handle:
        def __init__(self):
            self.alive = bool(started)  # the first one is dead from the beginning
            self.stopped = False

        def stop(self):
            self.stopped = True

    def start(of):
        assert of is project
        started.append(Handle())
        return started[-1]

    async def live():
        async with web_app.worker_kept_alive(project):
            while len(started) < 2:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)

    monkeypatch.setattr(web_app, "start_worker", start)
    monkeypatch.setattr(web_app, "CHECK_SECONDS", 0.01)
    asyncio.run(live())
    assert len(started) == 2
    assert started[-1].stopped
