"""Make the pictures of the labelling app in docs/images/labeling, in a real browser.

    python scripts/docs/labeling_pictures.py

It labels small projects as people would, and takes a picture of every page that the documentation
shows. Needs the extra `dev`, and /usr/bin/chromium (scripts/install-chromium.sh).
"""

from __future__ import annotations

import csv
import socket
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from PIL import Image
from playwright.sync_api import Page, sync_playwright
from sklearn.datasets import load_digits

from sabal.labeling.engine import Engine
from sabal.labeling.project import Project
from sabal.labeling.store.records import ImportedLabel, Submission
from sabal.labeling.web import create_app

OUT = Path(__file__).parents[2] / "docs" / "images" / "labeling"
CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True,
}  # fmt: skip
TEXTS = {
    "sport": "The home side won the final in extra time, after their goalkeeper saved two shots.",
    "money": "Shares fell after the central bank raised its rates for the third time this year.",
    "food": "Add the onions, let them soften, and leave the soup to simmer for half an hour.",
}


def digits(folder: Path, count: int = 400, **settings: Any) -> tuple[Project, dict[str, str]]:
    """Make a project of handwritten digits, and return what each of them shows."""
    data, truth = load_digits(), {}
    (folder / "digits").mkdir()
    for number in range(count):
        name = f"{number:03d}.png"
        picture = Image.fromarray((data.images[number] * 15).astype("uint8"))
        picture.save(folder / "digits" / name)
        truth[name] = str(data.target[number])
    project = Project.create(
        folder / "project",
        data=folder / "digits",
        name="Digits",
        **{"classes": [str(n) for n in range(10)], "backbone": "pixels", "head": "linear"}
        | settings,
    )
    return project, truth


def texts(folder: Path) -> tuple[Project, dict[str, str]]:
    """Make a project of short texts with another column."""
    with (folder / "news.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "text", "source"])
        for number in range(90):
            topic = list(TEXTS)[number % 3]
            rows.writerow([f"story-{number}", f"{TEXTS[topic]} (No. {number})", f"wire {number}"])
    project = Project.create(
        folder / "project",
        data=folder / "news.csv",
        name="News",
        classes=list(TEXTS),
        backbone="tfidf",
    )
    return project, {f"story-{number}": list(TEXTS)[number % 3] for number in range(90)}


def advance(project: Project) -> None:
    """Let the engine do what is due."""
    engine = Engine(project)
    while engine.step():
        pass


def answer(project: Project, truth: dict[str, str], who: str, count: int) -> list[str]:
    """Label items as they come."""
    items = [item.item for item in project.store.next_items(who, count)]
    for item in items:
        given = Submission(str(uuid.uuid4()), who, item, truth[item], seconds=1.5)
        project.store.submit(given)
    return items


@contextmanager
def served(project: Project) -> Iterator[str]:
    """Serve a project for the duration of the block."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(project, worker=False), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
        project.close()


def save(page: Page, name: str) -> None:
    """Take a picture once the page is at rest."""
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(400)
    page.screenshot(path=OUT / f"{name}.png")
    print(OUT / f"{name}.png")


def enter(page: Page, address: str, name: str = "Ada") -> None:
    """Open the labelling page under a name."""
    page.goto(address)
    page.fill("#name", name)
    page.keyboard.press("Enter")
    page.wait_for_load_state("networkidle")


def digit_pictures(new_page: Callable[..., Page]) -> None:
    """Take the pictures of labelling, the grid and the dashboard."""
    with tempfile.TemporaryDirectory() as place:
        project, truth = digits(Path(place))
        for count in (*[22] * 8, 8):
            advance(project)
            answer(project, truth, "Ada", count)
        with served(project) as address:
            page = new_page(**DESKTOP)
            enter(page, address)
            save(page, "label-desktop")
            page.keyboard.press("g")
            for _ in range(3):
                page.wait_for_timeout(200)
                page.keyboard.press(truth[page.get_attribute("#stage", "data-item") or ""])
            save(page, "grid-desktop")
            page.keyboard.press("b")
            shown = page.get_attribute("#stage", "data-item") or ""
            page.select_option("#bulk-class", truth[shown])
            page.wait_for_selector("#bulk-list li")
            for number in (1, 2, 4):
                page.click(f"#bulk-list li >> nth={number}")
            save(page, "similar-desktop")
            page.goto(address + "dashboard")
            save(page, "dashboard-desktop")


def text_pictures(new_page: Callable[..., Page]) -> None:
    """Take the pictures of texts, the items page and the lead's page."""
    with tempfile.TemporaryDirectory() as place:
        project, truth = texts(Path(place))
        advance(project)
        items = answer(project, truth, "Ada", 18)
        project.store.import_labels(ImportedLabel(item, "food", "Bob") for item in items[:9])
        advance(project)
        project.store.set_guideline("The **main** topic of a text counts.")
        with served(project) as address:
            page = new_page(**DESKTOP)
            enter(page, address, "Cleo")
            page.keyboard.press("g")
            save(page, "texts-desktop")
            page.goto(address + "items?shown=labeled")
            save(page, "items-desktop")
            page.goto(address + "disagreements")
            save(page, "decide-desktop")
            page.goto(address + "project")
            save(page, "project-desktop")
            phone = new_page(**PHONE)
            phone.goto(address + "items?shown=disputed")
            save(phone, "items-phone")


def other_pictures(new_page: Callable[..., Page]) -> None:
    """Take the pictures of thirty classes, of waiting for others, and of a lost connection."""
    with tempfile.TemporaryDirectory() as place:
        names = [f"Class {letter}{n}" for letter in "ABC" for n in range(10)]
        with served(digits(Path(place), 60, classes=names)[0]) as address:
            advance(Project.open(Path(place) / "project"))
            page = new_page(**PHONE)
            enter(page, address)
            save(page, "classes-phone")
            page.context.set_offline(True)
            while page.get_attribute("#stage", "data-item"):
                page.tap("#classes button >> nth=0")
            page.wait_for_timeout(1000)
            page.screenshot(path=OUT / "lost-phone.png")
    with tempfile.TemporaryDirectory() as place:
        project, truth = digits(Path(place), 60, overlap=2, initial=6, check_share=0.0)
        advance(project)
        answer(project, truth, "Ada", 6)
        with served(project) as address:
            page = new_page(**DESKTOP)
            enter(page, address)
            page.wait_for_selector("#message-title:has-text('Waiting')")
            save(page, "overlap-desktop")


def main() -> None:
    """Take all pictures."""
    OUT.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for pictures in (digit_pictures, text_pictures, other_pictures):
            pictures(lambda **options: browser.new_context(**options).new_page())
        browser.close()


if __name__ == "__main__":
    main()
