"""The recipes in deploy/ for nginx and Caddy, run for real, with HTTPS and a browser."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from browsing import CHROMIUM, FLAGS, PATIENCE, all_saved, shown
from sabal.labeling.project import Project
from sabal.labeling.web.security import MAX_BODY
from sabal.labeling.web.tokens import MAX_WRONG

DEPLOY = Path(__file__).parents[1] / "deploy"
HOST = "label.example.org"
NGINX_MAIN = """
user root;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/recipe.conf;
}}
"""
CADDY_MAIN = """
{{
    admin off
    local_certs
    skip_install_trust
    http_port {http}
    https_port {https}
    storage file_system {folder}/storage
}}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port: int, process: subprocess.Popen) -> None:
    while process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"{process.args[0]} ended with {process.returncode}")


@contextmanager
def running(command: list[str], port: int, **environment: str) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(command, env={**os.environ, **environment})  # noqa: S603
    try:
        wait_for(port, process)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def nginx(folder: Path, http: int, https: int, app: int):
    """The recipe, with ports and certificates of our own."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    command += ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    recipe = (DEPLOY / "nginx.conf").read_text()
    for old, new in {
        "listen 443 ssl": f"listen 127.0.0.1:{https} ssl",
        "listen 80;": f"listen 127.0.0.1:{http};",
        f"/etc/ssl/{HOST}.pem": f"{folder}/cert.pem",
        f"/etc/ssl/{HOST}.key": f"{folder}/key.pem",
        "127.0.0.1:8760": f"127.0.0.1:{app}",
    }.items():
        assert old in recipe, old
        recipe = recipe.replace(old, new)
    (folder / "recipe.conf").write_text(recipe)
    (folder / "nginx.conf").write_text(NGINX_MAIN.format(folder=folder))
    command = ["nginx", "-c", str(folder / "nginx.conf")]
    subprocess.run([*command, "-t"], check=True)  # noqa: S603
    return running(command, https)


def caddy(folder: Path, http: int, https: int, app: int):
    """The recipe as it is, with ports and a local authority of our own."""
    main = CADDY_MAIN.format(http=http, https=https, folder=folder)
    (folder / "Caddyfile").write_text(main + (DEPLOY / "Caddyfile").read_text())
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    given = {"SABAL_HOST": HOST, "SABAL_APP": f"127.0.0.1:{app}", "HOME": str(folder)}
    return running(command, https, **given)


@dataclass
class Site:
    """The app behind a web server."""

    proxy: str
    folder: Path
    http: int
    https: int
    app: int

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.https}"

    def serving(self):
        command = [sys.executable, "-m", "sabal", "label", str(self.folder), "--no-browser"]
        command += ["--port", str(self.app), "--proxy", "127.0.0.1", "--public-url", self.url]
        return running(command, self.app)

    def link(self, name: str, role: str = "annotator") -> str:
        """Make a personal link with the command."""
        command = [sys.executable, "-m", "sabal", "people", str(self.folder), "add", name]
        command += ["--role", role, "--public-url", self.url]
        told = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
        return re.search(r"https://\S+", told.stdout.replace("\n", ""))[0]

    def ask(self, method="GET", path="/api/status", body=None, source="127.0.0.1", **headers):
        """Send a request through the web server; return status, headers and body."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(HOST, self.https, timeout=60)
        plain = socket.create_connection(("127.0.0.1", self.https), 60, (source, 0))
        with plain, context.wrap_socket(plain, server_hostname=HOST) as connection.sock:
            connection.request(method, path, body, {"Host": f"{HOST}:{self.https}", **named})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()


@pytest.fixture(scope="module", params=[nginx, caddy], ids=["nginx", "caddy"])
def site(request, tmp_path_factory) -> Iterator[Site]:
    name = request.param.__name__
    if shutil.which(name) is None:
        pytest.skip(f"no {name}: run scripts/install-proxies.sh as root")
    folder = tmp_path_factory.mktemp(name)
    texts = "text\n" + "".join(f"The text number {k}\n" for k in range(60))
    (folder / "texts.csv").write_text(texts)
    Project.create(
        folder / "project", data=folder / "texts.csv", classes=["a", "b"], backbone="tfidf",
        initial=6, batch=5, check_share=0.0, budget=40,
    ).close()  # fmt: skip
    http_port, https_port, app = free_port(), free_port(), free_port()
    with request.param(folder, http_port, https_port, app):
        yield Site(name, folder / "project", http_port, https_port, app)


@pytest.fixture(scope="module")
def lea(site) -> str:
    """The personal link of the lead."""
    return site.link("Lea", "lead")


@pytest.fixture
def page(site):
    playwright = pytest.importorskip("playwright.sync_api")
    rules = f"--host-resolver-rules=MAP {HOST} 127.0.0.1"
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=[*FLAGS, rules])
        opened = browser.new_context(ignore_https_errors=True).new_page()
        opened.set_default_timeout(PATIENCE)
        yield opened
        browser.close()


def labels(site) -> list[tuple[str | None, str]]:
    with Project.open(site.folder) as project:
        return [(row.label, row.annotator) for row in project.store.labels()]


def test_a_person_labels_through_it_while_the_app_restarts(site, lea, page):
    with ExitStack() as stack:
        stack.enter_context(site.serving())
        page.goto(lea)
        assert page.url == f"{site.url}/"
        assert page.inner_text("#person").split() == ["Lea", "lead"]
        (cookie,) = page.context.cookies()
        assert cookie["secure"]
        assert cookie["httpOnly"]
        # More than a batch: the next one comes by itself.
        item = ""
        for _ in range(9):
            item = shown(page, item)
            page.keyboard.press("1")
        all_saved(page)
        assert labels(site) == [("a", "Lea")] * 9
        shown(page, item)
    # The web server answers for the app that is away: the page keeps what is answered meanwhile.
    assert site.ask()[0] == 502
    page.keyboard.press("2")
    page.wait_for_selector("#trouble:has-text('The web server does not reach the app')")
    with site.serving():
        all_saved(page)
        assert labels(site) == [*[("a", "Lea")] * 9, ("b", "Lea")]


def test_only_this_site_is_served(site, lea):
    token = {"Authorization": f"Bearer {lea.rpartition('=')[2]}"}
    undo = json.dumps({"submission": str(uuid.uuid4()), "annotator": "Lea"})
    post = {"method": "POST", "path": "/api/undo", "body": undo, "Content_Type": "application/json"}
    with site.serving():
        status, headers, _ = site.ask(**token)
        assert status == 200
        assert "default-src 'self'" in headers["Content-Security-Policy"]
        assert site.ask()[0] == 401
        for origin, expected in {site.url: 200, "https://evil.example": 403, "null": 403}.items():
            assert site.ask(**post, **token, Origin=origin)[0] == expected, origin
        # Caddy does not pass another host on, and answers nothing; nginx does, and the app refuses.
        status, _, body = site.ask(**token, Host="evil.example")
        assert (status, body != b"") == ((400, True) if site.proxy == "nginx" else (200, False))


def test_addresses_are_those_of_the_connection(site, lea):
    """What a client says of its address is not believed, and clients are told apart."""
    with site.serving():
        found = [
            site.ask(Authorization=f"Bearer wrong-{k}", X_Forwarded_For=f"10.0.0.{k}")[0]
            for k in range(MAX_WRONG + 1)
        ]
        assert found == [401] * MAX_WRONG + [429]
        assert site.ask(source="127.0.0.2", Authorization="Bearer wrong")[0] == 401
        assert site.ask(Authorization=f"Bearer {lea.rpartition('=')[2]}")[0] == 200


def test_bodies_are_limited(site, lea):
    token = {"Authorization": f"Bearer {lea.rpartition('=')[2]}"}
    post = {"method": "POST", "path": "/api/undo", "Content_Type": "application/json"}
    with site.serving():
        assert site.ask(**post, **token, body=b" " * (MAX_BODY - 10))[0] == 422
        # The app refuses before it has read everything, and Caddy may find the connection closed.
        refusals = (413,) if site.proxy == "nginx" else (413, 502)
        assert site.ask(**post, **token, body=b" " * (MAX_BODY + 10))[0] in refusals


def test_http_leads_to_https(site):
    connection = http.client.HTTPConnection("127.0.0.1", site.http, timeout=60)
    connection.request("GET", "/login", headers={"Host": HOST})
    answer = connection.getresponse()
    assert answer.status in (301, 308)
    assert answer.headers["Location"].startswith(f"https://{HOST}")
    connection.close()
