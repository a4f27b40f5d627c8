"""The login page: a token becomes a cookie."""

from __future__ import annotations

from urllib.parse import parse_qs

import anyio
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from sabal.labeling.web.pages import Pages
from sabal.labeling.web.security import address_of, too_many_tokens
from sabal.labeling.web.tokens import TokenGate, Verdict

A_MONTH = 30 * 24 * 3600


def login_routes(page: Pages, gate: TokenGate, cookie: str, *, secure: bool = False) -> APIRouter:
    """Return the route `/login`; with `secure`, its cookie travels over HTTPS only."""
    routes = APIRouter(include_in_schema=False)

    # For the printed link and for the form: both redirect, so no address keeps the token.
    @routes.get("/login")
    async def follow(request: Request) -> Response:
        return await anyio.to_thread.run_sync(enter, request, request.query_params.get("token"))

    @routes.post("/login")
    async def login(request: Request) -> Response:
        sent = (await request.body()).decode("utf-8", "replace")
        given = parse_qs(sent).get("token", [None])[0]
        return await anyio.to_thread.run_sync(enter, request, given)

    def enter(request: Request, given: str | None) -> Response:
        if gate.is_open:
            return RedirectResponse("/", status_code=303)
        verdict = gate.check(address_of(request.scope), given).verdict
        if verdict is Verdict.WAIT:
            return too_many_tokens()
        if verdict is Verdict.WRONG or given is None:
            return page(request, "login.html", code=401 if given else 200, wrong=bool(given))
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            cookie,
            given,
            max_age=A_MONTH,
            httponly=True,
            samesite="lax",
            secure=secure or request.url.scheme == "https",
        )
        return answer

    return routes
