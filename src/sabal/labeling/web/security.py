"""The guard in front of every request: who may come, from where, and with how much.

- The `Host` header must be a name of ours, so that no other name can be pointed at this machine.
- What changes or reads something must come from our own page (`Origin`, `Sec-Fetch-Site`), or from
  no page at all; only the pages themselves may be linked to from elsewhere.
- With a token, every request shows it; the comparison takes the same time whatever is wrong.
- Bodies end at one megabyte.
- Answers may load nothing from elsewhere, be framed by nobody and be taken for nothing else.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sabal.labeling.web.problems import problem

LARGEST_BODY = 1_000_000
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
OWN_PATHS = ("/api/", "/media/")
"""What only our own pages and programs may read: asking for items leases them."""
OPEN_PATHS = ("/login", "/static/")
"""What is served without a token: the page that asks for it, and what that page looks like."""

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

    def __init__(
        self, app: ASGIApp, *, hosts: tuple[str, ...], token: str | None, cookie: str
    ) -> None:
        self.app = app
        self.hosts = {host.lower() for host in hosts}
        self.token = token
        self.cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        marked = _marking(send, scope["path"])
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is None and scope["method"] not in SAFE_METHODS:
            body = await _read(receive)
            if body is None:
                refusal = problem(
                    413,
                    f"a body of at most {LARGEST_BODY} bytes",
                    "a larger one",
                    "send fewer things at once",
                )
            else:
                receive = _replaying(body, receive)
        await (refusal or self.app)(scope, receive, marked)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if "*" not in self.hosts and _name_of(host) not in self.hosts:
            return problem(
                400,
                f"one of the hosts {', '.join(sorted(self.hosts))}",
                host or "no Host header",
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
        if self.token is not None and not self._may_enter(scope["path"], headers):
            if "text/html" in headers.get("accept", ""):
                return RedirectResponse("/login", status_code=303)
            return problem(
                401,
                "the token of this app",
                "none, or another one",
                "send `Authorization: Bearer TOKEN`, or open /login?token=TOKEN",
            )
        return None

    def _may_enter(self, path: str, headers: Headers) -> bool:
        if path == OPEN_PATHS[0] or path.startswith(OPEN_PATHS[1]):
            return True
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and same_token(shown.strip(), self.token):
            return True
        return same_token(_cookie(headers, self.cookie), self.token)


def same_token(shown: str | None, token: str | None) -> bool:
    """Compare in constant time; nothing equals no token."""
    if not shown or not token:
        return False
    return hmac.compare_digest(shown.encode(), token.encode())


def _from_ourselves(headers: Headers) -> bool:
    """Whether the browser says that the page is ours; programs say nothing and are let in."""
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site", "none") in ("same-origin", "none")
    return origin in {f"{scheme}://{headers.get('host', '')}" for scheme in ("http", "https")}


def _name_of(host: str) -> str:
    """The name in a Host header: without the port, brackets of IPv6 kept."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()


def _cookie(headers: Headers, name: str) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return found.value if found else None


async def _read(receive: Receive) -> bytes | None:
    """The body, or None as soon as it is too long."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return body


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
            cache = "no-cache" if path.startswith("/static/") else "no-store"
            headers.setdefault("cache-control", cache)
        await send(message)

    return marked
