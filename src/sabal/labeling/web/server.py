"""Serves the app on this machine: a port, a token where one is needed, and a browser."""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
import signal
import socket
import webbrowser
from collections.abc import Callable, Sequence
from types import FrameType
from urllib.parse import quote, urlsplit

import uvicorn
from fastapi import FastAPI

from sabal.core.interrupts import end
from sabal.errors import InputError
from sabal.labeling.project import Project
from sabal.labeling.web.app import LOOPBACK, create_app
from sabal.labeling.web.connections import (
    KEEP_ALIVE_SECONDS,
    BoundedConnection,
    Network,
    parse_proxies,
)
from sabal.labeling.web.tokens import MIN_LENGTH, check_token

USUAL_PORT = 8760
STOPPING = "Stopping, up to ten seconds for a step that is under way (Ctrl+C again: at once) ..."

NOT_ENCRYPTED = (
    "Other machines can reach it, and the connection is not encrypted: put a web server with HTTPS "
    "in front of it unless you trust the network."
)


def serve(
    project: Project,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    browser: bool = True,
    token: str | None = None,
    proxies: Sequence[str] = (),
    public_url: str | None = None,
    announce: Callable[[str], None] = print,
) -> None:
    """Run the app until it is interrupted.

    The port is by default the usual one, or a free one if that is taken. If other machines can
    reach `host`, a token is made up and announced unless one is given; on this machine only, none
    is needed. `proxies` are the addresses of web servers in front of the app, whose headers
    X-Forwarded-For and X-Forwarded-Proto are believed; other machines reach the app through them.
    `public_url` is the address at which they publish it: with it, no other host is accepted.
    """
    public_url = None if public_url is None else check_public_url(public_url)
    networks = parse_proxies(proxies)
    listener = _listen(host, port)
    # A name may resolve to another address than it suggests: both must be loopback.
    alone = _is_loopback(host) and _is_loopback(listener.getsockname()[0])
    outside = bool(networks or public_url) or not alone
    try:
        if outside and token is None:
            token = secrets.token_urlsafe(24)
        elif token is not None:
            check_token(token, MIN_LENGTH if outside else 1)
        hosts = _hosts(outside, public_url)
        app = create_app(project, token=token, allowed_hosts=hosts, public_url=public_url)
        personal = bool(project.store.people())
    except BaseException:
        listener.close()
        raise
    # Where people have personal links, the shared token opens nothing.
    shown = None if personal else token
    address = _address(host, listener.getsockname()[1], shown, public_url)

    def started() -> None:
        announce(f"Labelling {project.settings.name} at {address} (Ctrl+C ends it)")
        if not alone and not public_url:
            announce(NOT_ENCRYPTED)
        if browser:
            webbrowser.open(address)

    # An interrupt is the regular end, after everything is stored and the worker is stopped.
    with listener, contextlib.suppress(KeyboardInterrupt):
        server = _Server(app, started, lambda: announce(STOPPING), networks)
        server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that reports when it listens, and when it stops."""

    def __init__(
        self,
        app: FastAPI,
        started: Callable[[], None],
        stopping: Callable[[], None],
        proxies: tuple[Network, ...] = (),
    ) -> None:
        config = uvicorn.Config(
            app,
            http=type("Connection", (BoundedConnection,), {"proxies": proxies}),
            proxy_headers=bool(proxies),
            forwarded_allow_ips=[str(each) for each in proxies],
            log_level="warning",
            access_log=False,  # the printed address has the token in it
            ws="none",
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=2,
        )
        super().__init__(config)
        self._on_started, self._on_stopping = started, stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then report it: a browser must not come earlier."""
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Report it, then stop: the worker may be in the middle of a step."""
        # The terminal may be gone; the worker has to be stopped all the same.
        with contextlib.suppress(OSError):
            self._on_stopping()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop gracefully on the first interrupt, and at once on the second: nothing is lost."""
        if self.should_exit and sig == signal.SIGINT:
            end()
        super().handle_exit(sig, frame)


def _listen(host: str, port: int | None) -> socket.socket:
    """Return a listening socket at `port`, or at the usual port or a free one if it is None."""
    if port is not None:
        return _bind(host, port)
    try:
        return _bind(host, USUAL_PORT)
    except InputError:
        return _bind(host, 0)


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError("a host to listen at", f"{host} ({error})", "try 127.0.0.1") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        raise InputError(
            f"a free port at {host}", f"{port} ({error})", "choose another port"
        ) from None
    return listener


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_everywhere(host: str) -> bool:
    try:
        return not host or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def check_public_url(url: str) -> str:
    """Return an address as an origin: scheme, host and port, in lower case."""
    try:
        parts = urlsplit(url.strip().lower())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
        raise InputError(
            "a public URL such as https://label.example.org, without a path", url, "correct it"
        )
    usual = {"http": 80, "https": 443}[parts.scheme]
    shown = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{shown}" + ("" if port in (None, usual) else f":{port}")


def _hosts(outside: bool, public_url: str | None) -> tuple[str, ...]:
    if public_url is not None:
        host = urlsplit(public_url).hostname or ""
        return (*LOOPBACK, f"[{host}]" if ":" in host else host)
    return ("*",) if outside else LOOPBACK


def _address(host: str, port: int, token: str | None, public_url: str | None = None) -> str:
    """Return the address to open; a server on all interfaces is reached by its host name."""
    login = f"login?token={quote(token, safe='')}" if token else ""
    if public_url is not None:
        return f"{public_url}/{login}"
    if _is_everywhere(host):
        host = socket.gethostname()
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/{login}"
