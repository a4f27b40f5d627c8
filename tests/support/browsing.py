"""What the tests of the pages share: a served project, and a person at a browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sabal.labeling.project import Project

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
SERVE = (
    "import sys; from sabal.labeling.project import Project; "
    "from sabal.labeling.web import serve; "
    "serve(Project.open(sys.argv[1]), port=0, browser=False, "
    "announce=lambda line: print(line, flush=True))"
)
PATIENCE = 60_000
"""Milliseconds until something is given up: a busy machine is slow, not wrong."""


@dataclass
class Room:
    """A served project."""

    address: str
    folder: Path

    def labels(self) -> list[tuple[str, str | None, str]]:
        with Project.open(self.folder) as project:
            return [(row.id, row.label, row.annotator) for row in project.store.labels()]

    def skipped(self) -> list[str]:
        with Project.open(self.folder) as project:
            return [row.id for row in project.store.skipped()]


def digit_project(tmp_path, digits, **settings) -> Project:
    chosen = {
        "classes": [str(n) for n in range(10)],
        "backbone": "pixels",
        "head": "linear",
        "initial": 6,
        "batch": 5,
        "budget": 60,
        "check_share": 0.2,
        **settings,
    }
    return Project.create(tmp_path / "project", data=digits[0], name="Digits", **chosen)


def shown(page, other_than: str = "") -> str:
    """The id of the item on the page, once there is one (another one)."""
    page.wait_for_selector(
        f"#stage[data-item]:not([data-item='']):not([data-item='{other_than}'])", state="attached"
    )
    return page.get_attribute("#stage", "data-item")


def all_saved(page) -> None:
    page.wait_for_selector("#saved[data-state=saved]")


def answer_all(page, truth, count: int) -> list[str]:
    """Label `count` items as they come."""
    seen = []
    for _ in range(count):
        item = shown(page, seen[-1] if seen else "")
        page.keyboard.press(truth[item])
        seen.append(item)
    all_saved(page)
    return seen


def violations(page) -> list[str]:
    """What axe-core finds wrong with a page for people who use a keyboard or a screen reader."""
    import axe_playwright_python

    axe = Path(axe_playwright_python.__file__).parent / "axe.min.js"
    page.evaluate(axe.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run().then((results) => results.violations)")
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]


def fits(page) -> bool:
    """Whether nothing is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")
