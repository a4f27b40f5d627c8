"""The pages: label, dashboard, help, and the door when a token is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response
from starlette.templating import Jinja2Templates

from sabal.labeling.exchange import FORMATS
from sabal.labeling.features import learns_with
from sabal.labeling.project import Project
from sabal.labeling.web.charts import curve_chart
from sabal.labeling.web.reveal import batch_item
from sabal.labeling.web.security import address_of, too_many
from sabal.labeling.web.shortcuts import ONE_KEY, layout_of, shortcuts
from sabal.labeling.web.tokens import Door, Verdict

A_MONTH = 30 * 24 * 3600


def page_routes(project: Project, mark: str, door: Door, cookie: str) -> APIRouter:
    """`/`, `/dashboard`, `/help` and `/login`."""
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

    # The link that was printed, and the form: neither leaves the token in an address.
    @routes.get("/login")
    async def follow(request: Request) -> Response:
        return enter(request, request.query_params.get("token"))

    @routes.post("/login")
    async def login(request: Request) -> Response:
        sent = (await request.body()).decode("utf-8", "replace")
        return enter(request, parse_qs(sent).get("token", [None])[0])

    def enter(request: Request, shown: str | None) -> Response:
        if door.token is None:
            return RedirectResponse("/", status_code=303)
        verdict = door.judge(address_of(request.scope), shown)
        if verdict is Verdict.WAIT:
            return too_many()
        if verdict is Verdict.WRONG:
            return page(request, "login.html", code=401 if shown else 200, wrong=bool(shown))
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            cookie,
            door.token,
            max_age=A_MONTH,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
        return answer

    return routes


def dashboard_context(project: Project) -> dict[str, Any]:
    """Everything the dashboard shows, read at one time."""
    store, settings = project.store, project.settings
    curve = store.curve()
    balance = store.class_balance()
    batch = [batch_item(item, settings.overlap) for item in store.batch()]
    return {
        "status": store.status(),
        "learns_with": learns_with(project),
        "settings": settings,
        "curve": curve,
        "chart": curve_chart(curve),
        "advice": store.advice(),
        "balance": balance,
        "most_of_a_class": max(balance.values(), default=0),
        "pace": store.pace(),
        "agreement": store.agreement(),
        "batch": batch,
        "formats": FORMATS,
    }
