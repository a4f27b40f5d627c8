"""The guard in front of every request.

- The `Host` header must be a name of the app, against DNS rebinding.
- Requests to the interface must come from the app's own page (`Origin`, `Sec-Fetch-Site`) or from a
  program, against cross-site request forgery; only the pages may be linked to from other sites.
- With a token, or personal ones, every request must present it. It is compared in constant time,
  and an address that presents many wrong ones is told to wait; a right one is always accepted.
- Bodies are limited to one megabyte and half a minute.
- Responses may load nothing from other sites, may not be framed, and are not sniffed.
"""

from __future__ import annotations

import asyncio
import re

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sabal.errors import SabalError
from sabal.labeling.web.connections import owner_of
from sabal.labeling.web.error_responses import error_response
from sabal.labeling.web.tokens import WINDOW_SECONDS, TokenGate, Verdict

MAX_BODY = 1_000_000
MAX_LOGIN_BODY = 10_000  # the limit for the one body that is accepted without a token
MAX_BODY_SECONDS = 30.0
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
OWN_PATHS = (
    "/api/",
    "/media/",
)  # other sites may not even read these: asking for items leases them
LOGIN, STATIC = "/login", "/static/"  # served without a token
HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)(:[0-9]{1,5})?", re.IGNORECASE)

POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """ASGI middleware that refuses forbidden requests and adds security headers to responses."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: tuple[str, ...],
        gate: TokenGate,
        cookie: str,
        origin: str | None = None,
    ) -> None:
        self.app = app
        self.origin = origin
        self.hosts = {host.lower() for host in hosts}
        self.gate = gate
        self.cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        secured = _with_headers(send, scope["path"])
        headers = Headers(scope=scope)
        refusal = self._foreign(scope, headers)
        if refusal is None and not _is_public(scope["path"]):
            # In a thread: personal tokens are looked up in the database.
            refusal = await anyio.to_thread.run_sync(self._unknown, scope, headers)
        if refusal is None and scope["method"] not in SAFE_METHODS:
            largest = MAX_LOGIN_BODY if scope["path"] == LOGIN else MAX_BODY
            body = await _read(receive, headers, largest)
            if isinstance(body, Response):
                refusal = body
            else:
                receive = _replaying(body, receive)
        await (refusal or self.app)(scope, receive, secured)

    def _foreign(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse a request to another host, or from a page of another site."""
        hosts = headers.getlist("host")
        if "*" not in self.hosts and [_name_of(host) in self.hosts for host in hosts] != [True]:
            return error_response(
                400,
                f"one of the hosts {', '.join(sorted(self.hosts))}",
                " and ".join(hosts) or "no Host header",
                "open the address that was printed when the app started",
            )
        own = scope["method"] not in SAFE_METHODS or scope["path"].startswith(OWN_PATHS)
        if own and not _from_own_page(headers, self.origin):
            return error_response(
                403,
                "a request from a page of this app",
                headers.get("origin") or "another site",
                "use the app's own page, or a program that sends no Origin",
            )
        return None

    def _unknown(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse a request without a right token; note whose token it is."""
        try:
            return self._token_refusal(scope, headers)
        except SabalError as error:
            return error_response(503, error.expected, error.got, error.fix)

    def _token_refusal(self, scope: Scope, headers: Headers) -> Response | None:
        state = scope.setdefault("state", {})
        state["person"] = None
        if self.gate.is_open:
            return None
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given = [bearer.strip() if scheme.lower() == "bearer" else None]
        given.append(_cookie(headers, self.cookie))
        address = address_of(scope)
        found = [self.gate.check(address, each) for each in given]
        for admission in found:
            if admission.verdict is Verdict.RIGHT:
                state["person"] = admission.person
                return None
        verdicts = [admission.verdict for admission in found]
        if Verdict.WAIT in verdicts:
            return too_many_tokens()
        if "text/html" in headers.get("accept", ""):
            return RedirectResponse(LOGIN, status_code=303)
        return error_response(
            401,
            "the token of this app, or of a personal link",
            "none, or another one",
            "send `Authorization: Bearer TOKEN`, or open /login?token=TOKEN",
        )


def _is_public(path: str) -> bool:
    return path == LOGIN or path.startswith(STATIC)


def address_of(scope: Scope) -> str:
    """Return the address of the client, or what stands for it in the limit on guesses."""
    client = scope.get("client")
    return owner_of(client[0]) if client else ""


def too_many_tokens() -> Response:
    """Return the response to an address that presented too many wrong tokens."""
    answer = error_response(
        429, "the token of this app", "many wrong ones from this address", "wait a minute"
    )
    answer.headers["retry-after"] = str(int(WINDOW_SECONDS))
    return answer


def _from_own_page(headers: Headers, origin: str | None) -> bool:
    """Return whether the request is from a page of the app, or from no page at all.

    `origin` is that of the app's public address: the web server in front may pass another Host on.
    """
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return False
    host = headers.get("host", "")
    return set(headers.getlist("origin")) <= {f"http://{host}", f"https://{host}", origin}


def _name_of(host: str) -> str | None:
    """Return the name in a Host header without the port; IPv6 keeps its brackets."""
    found = HOST.fullmatch(host)
    return found[1].lower() if found else None


def _cookie(headers: Headers, name: str) -> str | None:
    # As browsers parse it: cookies of other programs on this host may have any form.
    return cookie_parser("; ".join(headers.getlist("cookie"))).get(name)


async def _read(receive: Receive, headers: Headers, largest: int) -> bytes | Response:
    """Return the body, or a refusal as soon as it is too large or takes too long."""
    declared = headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > len(str(largest)) or int(declared) > largest):
        return _too_large(largest)
    body = bytearray()
    try:
        async with asyncio.timeout(MAX_BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    # The client is gone, and half a body means nothing.
                    return Response(status_code=400)
                body += message.get("body", b"")
                if len(body) > largest:
                    return _too_large(largest)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        return error_response(
            408,
            f"a body within {MAX_BODY_SECONDS:.0f} seconds",
            f"{len(body)} bytes of it",
            "send it again",
        )


def _too_large(largest: int) -> Response:
    return error_response(
        413, f"a body of at most {largest} bytes", "a larger one", "send fewer things at once"
    )


def _replaying(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _with_headers(send: Send, path: str) -> Send:
    async def secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            # Static files change with the next version; answers must not stay in a cache.
            cache = "no-cache" if path.startswith(STATIC) else "no-store"
            headers.setdefault("cache-control", cache)
        await send(message)

    return secured
