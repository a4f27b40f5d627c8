"""Fixtures for the tests that use a real browser, or a PostgreSQL server."""

from __future__ import annotations

import itertools
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from PIL import Image

from browsing import CHROMIUM, FLAGS, PATIENCE, SERVE, Room, digit_project
from postgresql_server import running_postgresql, server_programs
from sabal.labeling.engine import Engine
from sabal.labeling.project import Project
from sabal.labeling.web import create_app


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip("no /usr/bin/chromium: run scripts/install-chromium.sh as root")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def digits(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """A folder of small images, and what each shows."""
    from sklearn.datasets import load_digits

    folder = tmp_path_factory.mktemp("digits")
    images, targets = load_digits().images[:150], load_digits().target[:150]
    truth = {}
    for number, (image, target) in enumerate(zip(images, targets, strict=True)):
        name = f"{number:03d}.png"
        Image.fromarray((image * 15).astype("uint8")).save(folder / name)
        truth[name] = str(target)
    return folder, truth


@pytest.fixture
def open_room():
    """Serves projects for the duration of a test, as `sabal label` does: with a worker."""
    running = []

    def start(project: Project) -> Room:
        project.close()
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(project.folder)], stdout=subprocess.PIPE, text=True
        )
        running.append(process)
        line = process.stdout.readline()
        return Room(re.search(r"http://[^/]+/", line)[0], project.folder)

    yield start
    for process in running:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        process.stdout.close()


@pytest.fixture
def open_quickly():
    """Serves projects from this process, whose batch is chosen before and which learn nothing.

    A process and a worker for every test would take most of its time.
    """
    running = []

    def start(project: Project) -> Room:
        engine = Engine(project)
        while engine.step():
            pass
        listener = socket.create_server(("127.0.0.1", 0))
        app = create_app(project, worker=False)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        running.append((project, listener, server, thread))
        return Room(f"http://127.0.0.1:{listener.getsockname()[1]}/", project.folder)

    yield start
    for project, listener, server, thread in running:
        server.should_exit = True
        thread.join(timeout=30)
        listener.close()
        project.close()


@pytest.fixture(scope="module")
def begun(digits, tmp_path_factory) -> Path:
    """The folder of a project of digits whose first batch is chosen."""
    with digit_project(tmp_path_factory.mktemp("begun"), digits) as project:
        engine = Engine(project)
        while engine.step():
            pass
        return project.folder


@pytest.fixture
def room(open_quickly, begun, tmp_path) -> Room:
    return open_quickly(Project.open(shutil.copytree(begun, tmp_path / "project")))


@pytest.fixture
def visit(browser):
    """Opens a page in a fresh profile; fails the test for any error or any foreign request."""
    contexts, trouble = [], []

    def open_page(room: Room, name: str | None = "ada", **options):
        context = browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()

        def asked(request):
            if not request.url.startswith(room.address):
                trouble.append(f"a request to {request.url}")

        def complained(said):
            # A page of an error has no icon of its own, and the browser asks for the usual one.
            if said.type == "error" and not said.location.get("url", "").endswith("/favicon.ico"):
                trouble.append(f"{said.text} {said.location.get('url', '')}")

        page.on("request", asked)
        page.on("pageerror", lambda error: trouble.append(f"an error: {error}"))
        page.on("console", complained)
        page.goto(room.address)
        if name is not None:
            page.fill("#name", name)
            page.keyboard.press("Enter")
        page.trouble = trouble
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert trouble == []


@pytest.fixture(scope="session")
def postgresql():
    """A private PostgreSQL server."""
    if server_programs() is None:
        pytest.skip("PostgreSQL is not installed: run scripts/install-postgresql.sh")
    with running_postgresql() as server:
        yield server


@pytest.fixture
def new_server_database(postgresql):
    """Return a function that makes a database on a server and returns its URL.

    Unless it is to be `empty`, it has the tables of a store.
    """
    made = []

    def new(*, empty=False):
        made.append(postgresql.new_database(empty=empty))
        return made[-1]

    yield new
    for url in made:
        postgresql.give_back(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def new_database(request, tmp_path):
    """Return a function that returns the path or URL of a new database, on either engine."""
    if request.param == "postgresql":
        return request.getfixturevalue("new_server_database")
    numbers = itertools.count()
    return lambda *, empty=False: tmp_path / f"s{next(numbers)}.db"


@pytest.fixture
def database(new_database):
    """Return the path or URL of a new database, on either engine."""
    return new_database()
