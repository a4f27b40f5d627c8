"""Attacks on the labelling app: who comes, from where, with which token and how much.

Files and texts are attacked in test_security_content.py; test_security_source.py reads the source.
"""

from __future__ import annotations

import ast
import asyncio
import http.client
import json
import re
import signal
import subprocess
import sys
import uuid
import warnings
from pathlib import Path

import pytest
from starlette.datastructures import Headers
from starlette.websockets import WebSocketDisconnect

import sabal
from sabal.errors import InputError
from sabal.labeling.web import create_app, security, server
from sabal.labeling.web.security import MAX_BODY, MAX_LOGIN_BODY
from sabal.labeling.web.tokens import MAX_ADDRESSES, MAX_WRONG, WINDOW_SECONDS, TokenGate, Verdict
from security_helpers import HERE, client_of, label, text_project

with warnings.catch_warnings():
    # With the older httpx it works as well, and says so.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

PACKAGE = Path(sabal.__file__).parent
WEB = PACKAGE / "labeling" / "web"
TOKEN = "a-token-of-some-length"  # noqa: S105


@pytest.fixture
def project(tmp_path):
    with text_project(tmp_path / "texts") as project:
        yield project


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """A project that every attack leaves as it was."""
    with text_project(tmp_path_factory.mktemp("untouched")) as project:
        yield project
        assert project.store.history() == []


@pytest.fixture
def client(project):
    with client_of(project) as client:
        yield client


@pytest.fixture(scope="module")
def doors(untouched):
    """Clients of an app without a token, and of one with a token: the cookie is there."""
    with client_of(untouched) as plain, client_of(untouched, token=TOKEN) as entered:
        assert entered.post("/login", data={"token": TOKEN}).status_code == 200
        yield plain, entered


# Who may come, and from where.


@pytest.mark.parametrize(
    "host",
    [
        "attacker.example",
        "attacker.example:8760",
        "127.0.0.1.attacker.example",
        "localhost.attacker.example:8760",
        "127.0.0.1@attacker.example",
        "127.0.0.1:8760@attacker.example",
        "127.0.0.1:8760:80",
        "127.0.0.1:port",
        "localhost.",
        "[::1",
        "[::1].attacker.example",
        "127.0.0.1, attacker.example",
        "127.1",
        " ",
    ],
)
def test_a_name_that_was_pointed_at_this_machine_is_refused(doors, host):
    client = doors[0]
    assert client.get("/api/export", headers={"host": host}).status_code == 400
    assert client.post("/api/labels", json=label(), headers={"host": host}).status_code == 400


def test_two_names_are_not_one_of_ours(doors):
    twice = [("host", "127.0.0.1:8760"), ("host", "attacker.example")]
    for headers in (twice, twice[::-1]):
        assert doors[0].get("/api/status", headers=headers).status_code == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://attacker.example"},
        {"origin": "http://127.0.0.1"},
        {"origin": "http://127.0.0.1:8761"},
        {"origin": "http://127.0.0.1:87600"},
        {"origin": "http://localhost:8760"},
        {"origin": "http://evil.127.0.0.1:8760"},
        {"origin": "http://127.0.0.1:8760.attacker.example"},
        {"origin": "http://127.0.0.1:8760@attacker.example"},
        {"origin": "ftp://127.0.0.1:8760"},
        {"origin": "http://127.0.0.1:8760, http://attacker.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "same-origin-not"},
        {"origin": HERE, "sec-fetch-site": "cross-site"},
    ],
)
def test_another_site_neither_writes_nor_reads(doors, headers):
    for client in doors:
        for path in ("/api/labels", "/api/undo"):
            assert client.post(path, json=label(), headers=headers).status_code == 403
        for path in ("/api/next?annotator=ada", "/api/export", "/api/batch", "/media/t0"):
            assert client.get(path, headers=headers).status_code == 403


def test_two_origins_are_not_ours(doors):
    headers = [("origin", HERE), ("origin", "http://attacker.example")]
    assert doors[0].post("/api/labels", json=label(), headers=headers).status_code == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_form_of_another_site_is_no_answer(doors, kind):
    """What a page may send without being asked for permission first."""
    sent = doors[1].post(
        "/api/labels", content=json.dumps(label()), headers={"content-type": kind, "origin": "null"}
    )
    assert sent.status_code == 403


def test_nothing_allows_other_origins(doors):
    client = doors[1]
    asked = {"origin": "http://attacker.example", "access-control-request-method": "POST"}
    for answer in (client.options("/api/labels", headers=asked), client.get("/", headers=asked)):
        assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_a_websocket_is_turned_away(doors):
    for path in ("/", "/static/label.js", "/api/next"):
        with (
            pytest.raises(WebSocketDisconnect) as turned_away,
            doors[1].websocket_connect(path, headers={"host": "127.0.0.1"}),
        ):
            pass
        assert turned_away.value.code == 1008


# The token.


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104
@pytest.mark.parametrize(
    "token", ["", "short", "fifteen letters", "with a blank in it", "ümläute" * 3]
)
def test_outside_of_this_machine_a_good_token_is_needed(untouched, host, token):
    with pytest.raises(InputError, match="token"):
        server.serve(untouched, host=host, port=0, browser=False, token=token)


@pytest.mark.parametrize("token", ["", "a b", "tab\t", "new\nline", "ü"])
def test_a_token_fits_into_a_header(untouched, token):
    with pytest.raises(InputError, match="token"):
        create_app(untouched, token=token)


def serve_in_a_process(project, host, token):
    script = (
        "import sys; from sabal.labeling.project import Project; "
        "from sabal.labeling.web import serve; "
        "serve(Project.open(sys.argv[1]), host=sys.argv[2], port=0, browser=False, "
        "token=sys.argv[3] or None, announce=lambda line: print(line, flush=True))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", script, str(project.folder), host, token],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_an_app_for_others_says_so_and_never_tells_its_token_again(project):
    """The real server: a token that was made up, a login by link and by form, wrong ones."""
    process = serve_in_a_process(project, "0.0.0.0", "")  # noqa: S104
    try:
        line = process.stdout.readline()
        port, token = re.search(r":(\d+)/login\?token=(\S+)", line).groups()
        warning = process.stdout.readline()
        assert "not encrypted" in warning
        assert len(token) >= 32

        def ask(method, path, body=None, **headers):
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer

        assert ask("GET", "/api/status").status == 401
        assert ask("GET", f"/api/status?token={token}").status == 401
        wrong = ask("GET", "/login?token=wrong")
        assert wrong.status == 401
        form = {"content-type": "application/x-www-form-urlencoded"}
        for answer in (
            ask("GET", f"/login?token={token}"),
            ask("POST", "/login", f"token={token}", **form),
        ):
            assert answer.status == 303
            assert answer.headers["location"] == "/"
            cookie = answer.headers["set-cookie"]
            assert re.search(r"HttpOnly.*SameSite=lax", cookie)
            assert "Secure" not in cookie  # it would not come back without encryption
            inside = ask("GET", "/api/status", cookie=cookie.partition(";")[0])
            assert inside.status == 200
            assert token not in str(inside.headers)
    finally:
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=300)
    assert token not in warning + rest
    assert "Traceback" not in rest


def test_by_default_only_this_machine_is_let_in(project, monkeypatch):
    listened = []

    class StopError(Exception):
        pass

    def stop(self, sockets):
        listened.append(sockets[0].getsockname()[0])
        raise StopError

    monkeypatch.setattr(server._Server, "run", stop)
    with pytest.raises(StopError):
        server.serve(project, port=0, browser=False)
    assert listened == ["127.0.0.1"]
    # A name that claims to be this machine, and leads elsewhere, gets a token too.
    monkeypatch.setattr(server, "_is_loopback", lambda host: host == "localhost")
    made = []
    monkeypatch.setattr(server, "create_app", lambda *a, **k: made.append(k))
    with pytest.raises(StopError):
        server.serve(project, host="localhost", port=0, browser=False)
    assert made[0]["allowed_hosts"] == ("*",)
    assert len(made[0]["token"]) >= 32


def test_the_form_does_not_put_the_token_into_an_address(project):
    with client_of(project, token=TOKEN) as client:
        form = client.get("/login").text
        assert 'method="post"' in form
        for content in (b"", b"token=", b"token=wrong", b"\xff\xfe", b"token=%ff%00", b"a=b&" * 99):
            assert client.post("/login", content=content).status_code in (200, 401)
            assert client.get("/api/status").status_code == 401
        elsewhere = {"origin": "http://attacker.example"}
        assert client.post("/login", data={"token": TOKEN}, headers=elsewhere).status_code == 403
        assert client.post("/login", content=b"x" * (MAX_LOGIN_BODY + 1)).status_code == 413
        entered = client.post("/login", data={"token": TOKEN})
        assert entered.url == f"{HERE}/"
        assert entered.status_code == 200
        assert TOKEN not in entered.text


def test_guesses_are_limited_and_the_right_token_is_not():
    now = [0.0]
    gate = TokenGate(TOKEN, clock=lambda: now[0])
    for guess in range(MAX_WRONG):
        assert gate.check("there", f"guess {guess}").verdict is Verdict.WRONG
    assert gate.check("there", "one more").verdict is Verdict.WAIT
    assert gate.check("elsewhere", "one more").verdict is Verdict.WRONG
    # Somebody else may share the address.
    assert gate.check("there", TOKEN).verdict is Verdict.RIGHT
    assert gate.check("there", "one more").verdict is Verdict.WAIT
    now[0] += WINDOW_SECONDS
    assert gate.check("there", "one more").verdict is Verdict.WRONG
    # A page with an old cookie asks again and again: that is one guess.
    for _ in range(10 * MAX_WRONG):
        assert gate.check("there", "old cookie").verdict is Verdict.WRONG
    assert gate.check("there", TOKEN).verdict is Verdict.RIGHT
    for number in range(MAX_ADDRESSES + 10):
        gate.check(str(number), "wrong")
    assert len(gate._wrong) == MAX_ADDRESSES


@pytest.mark.parametrize("way", ["bearer", "cookie", "link", "form"])
def test_guessing_ends_whichever_way_it_is_tried(project, way):
    app = create_app(project, worker=False, token=TOKEN)
    with TestClient(app, base_url=HERE) as client:
        name = next(m for m in app.user_middleware).kwargs["cookie"]

        def guess(token):
            client.cookies.clear()
            if way == "bearer":
                headers = {"authorization": f"Bearer {token}"}
                return client.get("/api/status", headers=headers).status_code
            if way == "cookie":
                return client.get("/api/status", headers={"cookie": f"{name}={token}"}).status_code
            if way == "link":
                return client.get(f"/login?token={token}", follow_redirects=False).status_code
            return client.post("/login", data={"token": token}, follow_redirects=False).status_code

        assert guess(TOKEN) in (200, 303)
        assert [guess(f"guess{n}") for n in range(MAX_WRONG)] == [401] * MAX_WRONG
        assert [guess(f"more{n}") for n in range(3)] == [429] * 3
        assert guess(TOKEN) in (200, 303)


@pytest.mark.parametrize(
    "other",
    [
        "a[b]=1",
        '{"a": 1}',
        "foo",
        "=",
        "=;=",
        "ü=ü",
        "a b=c",
        "expires=1",
        "a=",
        'q="x',
        "sabal_=1",
    ],
)
def test_cookies_of_other_programs_hide_nothing(project, other):
    """Every program on a host shares its cookies, whatever their ports."""
    app = create_app(project, worker=False, token=TOKEN)
    name = app.user_middleware[0].kwargs["cookie"]
    own = f"{name}={TOKEN}"
    with TestClient(app, base_url=HERE) as client:
        for parts in ([other, own], [own, other], [other, own, other]):
            headers = {"cookie": "; ".join(parts).encode()}
            assert client.get("/api/status", headers=headers).status_code == 200
        several = [("cookie", other.encode()), ("cookie", own)]
        assert client.get("/api/status", headers=several).status_code == 200
        assert client.get("/api/status", headers={"cookie": other.encode()}).status_code == 401


@pytest.mark.parametrize("token", ['semi;colon"quote', "comma,back\\slash", "equals=x=;path=/"])
def test_any_token_survives_its_cookie(project, token):
    with client_of(project, token=token) as client:
        assert client.post("/login", data={"token": token}).status_code == 200
        assert client.get("/api/status").status_code == 200


def test_tokens_are_compared_in_constant_time():
    compared = [
        node
        for path in WEB.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare) and "token" in ast.unparse(node)
    ]
    kinds = {type(operator) for node in compared for operator in node.ops}
    assert not kinds & {ast.Eq, ast.NotEq, ast.In, ast.NotIn}, list(map(ast.unparse, compared))
    assert "hmac.compare_digest" in (WEB / "tokens.py").read_text(encoding="utf-8")


# Too much of anything.


def test_a_body_that_is_too_long_is_not_even_read():
    received = []

    async def receive():
        received.append(1)
        return {"type": "http.request", "body": b"x" * 1000, "more_body": True}

    async def read(**headers):
        given = Headers({name.replace("_", "-"): value for name, value in headers.items()})
        return await security._read(receive, given, MAX_BODY)

    for length in (str(MAX_BODY + 1), "9" * 5000):
        assert asyncio.run(read(content_length=length)).status_code == 413
    assert received == []
    # In pieces, without a length, it ends at the limit too.
    assert asyncio.run(read()).status_code == 413
    assert len(received) == MAX_BODY // 1000 + 1


def test_a_body_that_never_ends_is_given_up(monkeypatch):
    monkeypatch.setattr(security, "MAX_BODY_SECONDS", 0.01)

    async def never():
        await asyncio.sleep(60)

    refused = asyncio.run(security._read(never, Headers(), MAX_BODY))
    assert refused.status_code == 408

    async def gone():
        return {"type": "http.disconnect"}

    assert asyncio.run(security._read(gone, Headers(), MAX_BODY)).status_code == 400


# Names that look like SQL.


@pytest.mark.parametrize(
    "word", ["' OR '1'='1", "'; DROP TABLE answers; --", 'x" OR 1=1 --', "%", "_", "\\", "🙂'"]
)
def test_names_do_nothing_to_the_database(client, project, word):
    before = client.get("/api/status").json()
    assert client.get("/api/next", params={"annotator": word, "count": 2}).status_code == 200
    assert client.post("/api/labels", json=label(word)).status_code == 404
    assert client.post("/api/labels", json=label("t0", word)).status_code == 422
    assert client.get("/api/export", params={"format": word}).status_code == 404
    assert client.get("/api/batch", params={"round": word}).status_code == 422
    assert client.get(f"/media/{word}").status_code == 404
    assert client.post("/api/labels", json=label("t0", "cat", annotator=word)).status_code == 200
    undo = {"submission": str(uuid.uuid4()), "annotator": "%"}
    undone = client.post("/api/undo", json=undo).json()["answer"]
    assert (undone is None) == (word != "%")
    assert len(project.items) == before["items"]
