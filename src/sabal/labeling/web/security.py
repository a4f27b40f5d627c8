"""The guard in front of every request: who may come, from where, and with how much.

- The `Host` header must be a name of ours, so that no other name can be pointed at this machine.
- What changes or reads something must come from our own page (`Origin`, `Sec-Fetch-Site`), or from
  no page at all; only the pages themselves may be linked to from elsewhere.
- With a token, every request shows it; the comparison takes the same time whatever is wrong, and
  who shows many wrong ones has to wait.
- Bodies end at one megabyte, and come within half a minute.
- Answers may load nothing from elsewhere, be framed by nobody and be taken for nothing else.
"""

from __future__ import annotations

import asyncio
import re
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sabal.labeling.web.problems import problem
from sabal.labeling.web.tokens import WINDOW_SECONDS, Door, Verdict

LARGEST_BODY = 1_000_000
LARGEST_LOGIN = 10_000
"""The one body that anybody may send."""
LONGEST_BODY_SECONDS = 30.0
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
OWN_PATHS = ("/api/", "/media/")
"""What only our own pages and programs may read: asking for items leases them."""
LOGIN, STATIC = "/login", "/static/"
"""What is served without a token: the page that asks for it, and what that page looks like."""
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
    """ASGI middleware that refuses what must not come in and marks what goes out."""

    def __init__(self, app: ASGIApp, *, hosts: tuple[str, ...], door: Door, cookie: str) -> None:
        self.app = app
        self.hosts = {host.lower() for host in hosts}
        self.door = door
        self.cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        marked = _marking(send, scope["path"])
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is None and scope["method"] not in SAFE_METHODS:
            largest = LARGEST_LOGIN if scope["path"] == LOGIN else LARGEST_BODY
            body = await _read(receive, headers, largest)
            if isinstance(body, Response):
                refusal = body
            else:
                receive = _replaying(body, receive)
        await (refusal or self.app)(scope, receive, marked)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if "*" not in self.hosts and [_name_of(host) in self.hosts for host in hosts] != [True]:
            return problem(
                400,
                f"one of the hosts {', '.join(sorted(self.hosts))}",
                " and ".join(hosts) or "no Host header",
                "open the address that was printed when the app started",
            )
        own = scope["method"] not in SAFE_METHODS or scope["path"].startswith(OWN_PATHS)
        if own and not _from_ourselves(headers):
            return problem(
                403,
                "a request from a page of this app",
                headers.get("origin") or "another site",
                "use the app's own page, or a program that sends no Origin",
            )
        path = scope["path"]
        if self.door.token is None or path == LOGIN or path.startswith(STATIC):
            return None
        return self._token_refusal(scope, headers)

    def _token_refusal(self, scope: Scope, headers: Headers) -> Response | None:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        shown = [bearer.strip() if scheme.lower() == "bearer" else None]
        shown.append(_cookie(headers, self.cookie))
        address = address_of(scope)
        verdicts = [self.door.judge(address, each) for each in shown]
        if Verdict.RIGHT in verdicts:
            return None
        if Verdict.WAIT in verdicts:
            return too_many()
        if "text/html" in headers.get("accept", ""):
            return RedirectResponse(LOGIN, status_code=303)
        return problem(
            401,
            "the token of this app",
            "none, or another one",
            "send `Authorization: Bearer TOKEN`, or open /login?token=TOKEN",
        )


def address_of(scope: Scope) -> str:
    """Where a request comes from."""
    client = scope.get("client")
    return client[0] if client else ""


def too_many() -> Response:
    """The answer to who guesses tokens."""
    answer = problem(
        429, "the token of this app", "many wrong ones from this address", "wait a minute"
    )
    answer.headers["retry-after"] = str(int(WINDOW_SECONDS))
    return answer


def _from_ourselves(headers: Headers) -> bool:
    """Whether the browser says that the page is ours; programs say nothing and are let in."""
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return False
    host = headers.get("host", "")
    return set(headers.getlist("origin")) <= {f"http://{host}", f"https://{host}"}


def _name_of(host: str) -> str | None:
    """The name in a Host header: without the port, brackets of IPv6 kept."""
    found = HOST.fullmatch(host)
    return found[1].lower() if found else None


def _cookie(headers: Headers, name: str) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return found.value if found else None


async def _read(receive: Receive, headers: Headers, largest: int) -> bytes | Response:
    """The body; a refusal as soon as it is too long, or takes too long."""
    too_large = problem(
        413, f"a body of at most {largest} bytes", "a larger one", "send fewer things at once"
    )
    declared = headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > len(str(largest)) or int(declared) > largest):
        return too_large
    body = bytearray()
    try:
        async with asyncio.timeout(LONGEST_BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    # Whoever sent it is gone, and half of it means nothing.
                    return Response(status_code=400)
                body += message.get("body", b"")
                if len(body) > largest:
                    return too_large
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        return problem(
            408,
            f"a body within {LONGEST_BODY_SECONDS:.0f} seconds",
            f"{len(body)} bytes of it",
            "send it again",
        )


def _replaying(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _marking(send: Send, path: str) -> Send:
    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            # Ours may change with the next version; what people said must not stay in a cache.
            cache = "no-cache" if path.startswith(STATIC) else "no-store"
            headers.setdefault("cache-control", cache)
        await send(message)

    return marked
