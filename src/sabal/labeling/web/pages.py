"""The pages: label, dashboard and help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import RedirectResponse, Response
from starlette.templating import Jinja2Templates

from sabal.labeling.exchange.formats import FORMATS
from sabal.labeling.features.describe import learns_with
from sabal.labeling.project import Project
from sabal.labeling.stop_advice import stop_advice
from sabal.labeling.store.item_pages import ItemFilter
from sabal.labeling.store.records import ANSWER, REVIEW
from sabal.labeling.web.api_types import shown_batch_item
from sabal.labeling.web.charts import curve_chart
from sabal.labeling.web.guidelines import shown_guidelines
from sabal.labeling.web.rights import may, person_of, rights_of
from sabal.labeling.web.slow_reads import SlowReads

ONE_KEY = "1234567890"
SHORT = 4  # names of at most this length fit five to a row on a phone


@dataclass(frozen=True)
class ClassShortcut:
    """A class and the digits to press for it."""

    label: str
    keys: str


class Pages:
    """Renders the templates of a project."""

    def __init__(self, project: Project, mark: str) -> None:
        self._common = {"project": project.settings.name, "mark": mark}
        self._templates = Jinja2Templates(directory=Path(__file__).parent / "templates")

    def __call__(self, request: Request, name: str, code: int = 200, **context: Any) -> Response:
        """Return a page, which knows who asks for it."""
        who = {"person": person_of(request), "rights": rights_of(request)}
        return self._templates.TemplateResponse(
            request, name, self._common | who | context, status_code=code
        )


def page_routes(project: Project, page: Pages) -> APIRouter:
    """Return the routes `/`, `/dashboard` and `/help`."""
    routes = APIRouter(include_in_schema=False)
    slow = SlowReads()

    @routes.get("/")
    def label(request: Request) -> Response:
        if ANSWER not in rights_of(request):
            return RedirectResponse("/dashboard", status_code=303)
        classes = project.classes
        return page(
            request,
            "label.html",
            shortcuts=shortcuts(classes),
            many=len(classes) > len(ONE_KEY),
            layout=layout_of(classes),
            settings=project.settings,
            details=project.store.has_details(),
        )

    @routes.get("/dashboard", dependencies=[Depends(may(REVIEW))])
    async def dashboard(request: Request) -> Response:
        context = await slow.run(lambda: dashboard_context(project))
        return page(request, "dashboard.html", **context)

    @routes.get("/help")
    def help_page(request: Request) -> Response:
        return page(
            request,
            "help.html",
            many=len(project.classes) > len(ONE_KEY),
            guidelines=shown_guidelines(project.store.guidelines()),
        )

    return routes


def dashboard_context(project: Project) -> dict[str, Any]:
    """Return what the dashboard shows."""
    store, settings = project.store, project.settings
    curve = store.curve()
    balance = store.class_balance()
    batch = [shown_batch_item(item, settings.overlap) for item in store.batch()]
    return {
        "status": store.status(),
        "learns_with": learns_with(project),
        "settings": settings,
        "curve": curve,
        "chart": curve_chart(curve),
        "advice": stop_advice(store),
        "balance": balance,
        "max_of_a_class": max(balance.values(), default=0),
        "pace": store.pace(),
        "agreement": store.agreement(),
        "disputed": store.item_page(ItemFilter(shown="disputed"), count=1)[1],
        "batch": batch,
        "formats": FORMATS,
    }


def shortcuts(classes: Sequence[str]) -> list[ClassShortcut]:
    """Return the keys in the order of the classes.

    Classes that are single digits are their own keys. Up to ten others take 1 to 9 and then 0, as
    on the keyboard; with more, every class has a number of the same length, such as 07.
    """
    if all(len(name) == 1 and name in ONE_KEY for name in classes):
        return [ClassShortcut(name, name) for name in classes]
    if len(classes) <= len(ONE_KEY):
        return [ClassShortcut(*pair) for pair in zip(classes, ONE_KEY, strict=False)]
    width = len(str(len(classes)))
    return [ClassShortcut(name, f"{number:0{width}d}") for number, name in enumerate(classes, 1)]


def layout_of(classes: Sequence[str]) -> str:
    """Return the layout of the buttons: "few", "ten" (two rows of five), "ten short" or "many"."""
    if len(classes) > len(ONE_KEY):
        return "many"
    if len(classes) <= len(ONE_KEY) // 2:
        return "few"
    return "ten short" if max(map(len, classes)) <= SHORT else "ten"
