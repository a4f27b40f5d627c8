"""Connections that keep a real server waiting, and what a proxy may say."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from sabal.errors import InputError
from sabal.labeling.web import connections, create_app, server
from sabal.labeling.web.connections import owner_of, parse_proxies
from sabal.labeling.web.slow_reads import PAUSE, Paced
from sabal.labeling.web.tokens import MAX_WRONG
from security_helpers import text_project

DEPLOY = Path(__file__).parents[2] / "deploy"

TOKEN = "a-token-of-some-length"  # noqa: S105
PATIENCE = 60  # seconds; a test that waits for so long has failed
HALF_HEADER = b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
HALF_BODY = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999\r\n\r\ntoken="


@pytest.fixture
def project(tmp_path):
    with text_project(tmp_path / "texts") as project:
        yield project


@contextlib.contextmanager
def serving(project, proxies=()):
    """Serve on a free port of this machine, in a thread; yield the port."""
    listening = threading.Event()
    app = create_app(project, token=TOKEN, worker=False)
    with server._bind("127.0.0.1", 0) as listener:
        running = server._Server(app, listening.set, lambda: None, parse_proxies(proxies))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            assert listening.wait(PATIENCE)
            yield listener.getsockname()[1]
        finally:
            running.should_exit = True
            thread.join()


def ask(port, path="/api/status", address="127.0.0.1", token=TOKEN, **headers):
    """Return the response to a request of its own connection."""
    connection = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=PATIENCE, source_address=(address, 0)
    )
    with contextlib.closing(connection):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", path, headers={"authorization": f"Bearer {token}", **headers})
        answer = connection.getresponse()
        answer.read()
        return answer


@pytest.fixture
def connect():
    """Return a function that connects and sends something; the sockets are closed at the end."""
    with contextlib.ExitStack() as sockets:

        def opened(port, sent=b"", address="127.0.0.1"):
            made = socket.create_connection(("127.0.0.1", port), PATIENCE, (address, 0))
            sockets.enter_context(made).sendall(sent)
            return made

        yield opened


def is_closed(opened):
    """Wait until the server closes a connection; False if it does not."""
    try:
        while opened.recv(4096):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("sent", [b"", HALF_HEADER, HALF_BODY])
def test_unfinished_requests_keep_nobody_out(project, connect, monkeypatch, sent):
    monkeypatch.setattr(connections, "MAX_PER_ADDRESS", 10)
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 25)
    with serving(project) as port:
        halves = [connect(port, sent, f"127.0.0.{2 + n % 5}") for n in range(100)]
        for address in ("127.0.0.1", "127.0.0.2"):
            assert ask(port, address=address).status == 200
        # The first ones of every address had to make room.
        assert all(is_closed(each) for each in halves[:50])


def test_an_address_only_closes_connections_of_its_own(project, connect, monkeypatch):
    monkeypatch.setattr(connections, "MAX_PER_ADDRESS", 10)
    with serving(project) as port:
        slow = connect(port, b"GET /login HTTP/1.1\r\n")
        halves = [connect(port, HALF_HEADER, "127.0.0.2") for _ in range(30)]
        assert all(is_closed(each) for each in halves[:20])
        slow.sendall(b"Host: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert slow.recv(20).startswith(b"HTTP/1.1 200")


def test_many_addresses_together_have_a_limit_too(project, connect, monkeypatch):
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 25)
    monkeypatch.setattr(connections, "HEADER_SECONDS", 10 * PATIENCE)
    with serving(project) as port:
        halves = [connect(port, HALF_HEADER, f"127.0.0.{2 + k % 6}") for k in range(36)]
        assert all(is_closed(each) for each in halves[:11])
        assert ask(port).status == 200


@pytest.mark.parametrize("first", [b"", HALF_HEADER, b"GET /login HTTP/1.1\r\nHost: ?\r\n\r\nGET"])
def test_a_header_that_never_ends_is_given_up(project, connect, monkeypatch, first):
    """Bytes that keep coming do not extend the time."""
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    with serving(project) as port:
        opened = connect(port, first)
        opened.settimeout(0.05)
        for _ in range(PATIENCE * 20):
            try:
                if first:
                    opened.sendall(b"x")
                if not opened.recv(4096):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("the connection stays open")
        assert ask(port).status == 200


def test_a_connection_serves_one_request_after_another(project, monkeypatch):
    """The time for a header begins anew after every response."""
    monkeypatch.setattr(connections, "MAX_PER_ADDRESS", 2)
    with serving(project) as port:
        kept = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        with contextlib.closing(kept):
            kept.connect()
            first = kept.sock
            for _ in range(3):
                kept.request("GET", "/api/status", headers={"authorization": f"Bearer {TOKEN}"})
                answer = kept.getresponse()
                answer.read()
                assert answer.status == 200
                assert kept.sock is first


def test_clients_close_idle_connections_before_the_server_does():
    # Otherwise a request that is sent at that moment is lost.
    running = server._Server(None, print, print)
    by_caddy = re.search(r"keepalive (\d+)s", (DEPLOY / "Caddyfile").read_text())[1]
    for client in (httpx.Limits().keepalive_expiry, int(by_caddy)):
        assert client < running.config.timeout_keep_alive < connections.HEADER_SECONDS


def test_guesses_never_lock_out_the_right_token(project):
    with serving(project) as port:
        cross = {"sec_fetch_site": "cross-site"}
        statuses = [
            ask(port, f"/login?token=wrong{n}", token="", **cross).status
            for n in range(2 * MAX_WRONG)
        ]
        assert statuses == [401] * MAX_WRONG + [429] * MAX_WRONG
        assert ask(port).status == 200
        assert ask(port, f"/login?token={TOKEN}", token="").status == 303


def test_only_a_named_proxy_says_where_a_request_comes_from(project, monkeypatch):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    forwarded = [f"198.51.100.{n}" for n in range(2 * MAX_WRONG)]
    with serving(project) as port:
        assert [ask(port, token=f, x_forwarded_for=f).status for f in forwarded] == (
            [401] * MAX_WRONG + [429] * MAX_WRONG
        )
        entered = ask(port, f"/login?token={TOKEN}", x_forwarded_proto="https")
        assert "Secure" not in entered.headers["set-cookie"]
    with serving(project, proxies=["127.0.0.2"]) as port:
        for address, last in (("127.0.0.1", 429), ("127.0.0.2", 401)):
            asked = [ask(port, token=f, address=address, x_forwarded_for=f) for f in forwarded]
            assert asked[-1].status == last
        entered = ask(port, f"/login?token={TOKEN}", address="127.0.0.2", x_forwarded_proto="https")
        assert "Secure" in entered.headers["set-cookie"]


def test_a_named_proxy_may_have_many_connections(project, connect, monkeypatch):
    monkeypatch.setattr(connections, "MAX_PER_ADDRESS", 2)
    with serving(project, proxies=["127.0.0.0/30"]) as port:
        opened = [connect(port, HALF_HEADER) for _ in range(9)]
        assert ask(port).status == 200
        for each in opened:
            each.sendall(b"x\r\nConnection: close\r\n\r\n")
            assert each.recv(20).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("proxy", ["*", "", "proxy.example.org", "10.0.0.0/33", "127.0.0.1:80"])
def test_a_proxy_is_named_by_its_address(project, proxy):
    with pytest.raises(InputError, match="proxy"):
        server.serve(project, port=0, browser=False, proxies=[proxy])


def test_with_a_proxy_other_machines_can_reach_the_app(project, monkeypatch):
    monkeypatch.setattr(server._Server, "run", lambda self, sockets: self._on_started())
    said = []
    server.serve(project, port=0, browser=False, proxies=["127.0.0.1"], announce=said.append)
    assert re.search(r"/login\?token=\S{32}", said[0])


@pytest.mark.parametrize(
    ("address", "owner"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
        ("unix", "unix"),
    ],
)
def test_an_owner_cannot_choose_another_address(address, owner):
    assert owner_of(address) == owner


@pytest.mark.parametrize(
    ("path", "slow"),
    [("/api/status", "status"), ("/api/export", "labels"), ("/dashboard", "class_balance")],
)
def test_reads_that_take_long_leave_threads_for_labels(project, monkeypatch, path, slow):
    released = threading.Event()

    def read_later():
        released.wait(2 * PATIENCE)
        raise InputError("something", "nothing", "end the test soon")

    monkeypatch.setattr(project.store, slow, read_later)
    with serving(project) as port, ThreadPoolExecutor(60) as people:
        asked = [people.submit(ask, port, path) for _ in range(50)]
        try:
            # With a thread for each of them, this would wait for the others.
            assert people.submit(ask, port, "/api/next?annotator=ann").result().status == 200
            assert not any(each.done() for each in asked)
        finally:
            released.set()
        assert {each.result().status for each in asked} == {400}


def test_what_took_long_is_used_again_for_a_while():
    now, took, made = [0.0], [0.1], []

    def read():
        now[0] += took[0]
        made.append(len(made))
        return made[-1]

    paced = Paced(read, lambda: now[0])
    assert [paced(), paced()] == [0, 1]
    took[0] = 2.0
    assert [paced(), paced()] == [2, 2]
    now[0] += PAUSE * took[0] - 0.01
    assert paced() == 2
    now[0] += 0.02
    assert paced() == 3
