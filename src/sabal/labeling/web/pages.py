"""The pages: label, dashboard, help, and login where a token is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response
from starlette.templating import Jinja2Templates

from sabal.labeling.exchange.formats import FORMATS
from sabal.labeling.features.describe import learns_with
from sabal.labeling.project import Project
from sabal.labeling.store.trainings import advice_on
from sabal.labeling.web.api_types import shown_batch_item
from sabal.labeling.web.charts import curve_chart
from sabal.labeling.web.security import address_of, too_many_tokens
from sabal.labeling.web.tokens import TokenGate, Verdict

A_MONTH = 30 * 24 * 3600
ONE_KEY = "1234567890"
SHORT = 4  # names of at most this length fit five to a row on a phone


@dataclass(frozen=True)
class ClassShortcut:
    """A class and the digits to press for it."""

    label: str
    keys: str


def page_routes(project: Project, mark: str, gate: TokenGate, cookie: str) -> APIRouter:
    """Return the routes `/`, `/dashboard`, `/help` and `/login`."""
    routes = APIRouter(include_in_schema=False)
    templates = Jinja2Templates(directory=Path(__file__).parent / "templates")
    classes = project.settings.classes

    def page(request: Request, name: str, code: int = 200, **context: Any) -> Response:
        common = {"project": project.settings.name, "mark": mark}
        return templates.TemplateResponse(request, name, common | context, status_code=code)

    @routes.get("/")
    def label(request: Request) -> Response:
        return page(
            request,
            "label.html",
            shortcuts=shortcuts(classes),
            many=len(classes) > len(ONE_KEY),
            layout=layout_of(classes),
            settings=project.settings,
        )

    @routes.get("/dashboard")
    def dashboard(request: Request) -> Response:
        return page(request, "dashboard.html", **dashboard_context(project))

    @routes.get("/help")
    def help_page(request: Request) -> Response:
        return page(request, "help.html", many=len(classes) > len(ONE_KEY))

    # For the printed link and for the form: both redirect, so no address keeps the token.
    @routes.get("/login")
    async def follow(request: Request) -> Response:
        return enter(request, request.query_params.get("token"))

    @routes.post("/login")
    async def login(request: Request) -> Response:
        sent = (await request.body()).decode("utf-8", "replace")
        return enter(request, parse_qs(sent).get("token", [None])[0])

    def enter(request: Request, given: str | None) -> Response:
        if gate.token is None:
            return RedirectResponse("/", status_code=303)
        verdict = gate.check(address_of(request.scope), given)
        if verdict is Verdict.WAIT:
            return too_many_tokens()
        if verdict is Verdict.WRONG:
            return page(request, "login.html", code=401 if given else 200, wrong=bool(given))
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            cookie,
            gate.token,
            max_age=A_MONTH,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
        return answer

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
        "advice": advice_on(curve),
        "balance": balance,
        "max_of_a_class": max(balance.values(), default=0),
        "pace": store.pace(),
        "agreement": store.agreement(),
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
