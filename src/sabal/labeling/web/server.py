"""Starts the app on this machine: a port, a token where one is needed, and a browser."""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
import signal
import socket
import webbrowser
from collections.abc import Callable
from types import FrameType
from urllib.parse import quote

import uvicorn

from sabal.__main__ import end
from sabal.errors import InputError
from sabal.labeling.project import Project
from sabal.labeling.web.app import LOOPBACK, create_app
from sabal.labeling.web.tokens import LEAST_LETTERS, check_token

USUAL_PORT = 8760
MOST_CONNECTIONS = 1_000
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
    announce: Callable[[str], None] = print,
) -> None:
    """Run the app until it is interrupted.

    port: a port of your own; None takes the usual one, or any free one when that is taken.
    token: what whoever connects must show. Made up and announced when `host` can be reached from
        other machines and none is given; on this machine alone none is needed.
    """
    listener = _listen(host, port)
    # A name may lead elsewhere than it says: what counts is also where it led to.
    outside = not (_is_loopback(host) and _is_loopback(listener.getsockname()[0]))
    try:
        if outside and token is None:
            token = secrets.token_urlsafe(24)
        elif token is not None:
            check_token(token, LEAST_LETTERS if outside else 1)
        app = create_app(project, token=token, allowed_hosts=("*",) if outside else LOOPBACK)
    except BaseException:
        listener.close()
        raise
    address = _address(host, listener.getsockname()[1], token)

    def started() -> None:
        announce(f"Labelling {project.settings.name} at {address} (Ctrl+C ends it)")
        if outside:
            announce(NOT_ENCRYPTED)
        if browser:
            webbrowser.open(address)

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # the printed address has the token in it
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=2,
    )
    # An interrupt is how it ends, once everything is stored and the worker is gone.
    with listener, contextlib.suppress(KeyboardInterrupt):
        _Server(config, started, lambda: announce(STOPPING)).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Says when it listens, so that a browser does not come too early, and when it stops."""

    def __init__(
        self, config: uvicorn.Config, started: Callable[[], None], stopping: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._tell_started, self._tell_stopping = started, stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets)
        self._tell_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell, then stop: the worker may be in the middle of a step."""
        # Whoever listened may be gone; the worker has to be stopped all the same.
        with contextlib.suppress(OSError):
            self._tell_stopping()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first interrupt ends it in good order, a second one at once.

        Nothing is lost: what was acknowledged is on the disk, and the worker ends by itself.
        """
        if self.should_exit and sig == signal.SIGINT:
            end()
        super().handle_exit(sig, frame)


def _listen(host: str, port: int | None) -> socket.socket:
    """A listening socket; the usual port may give way to a free one, a port asked for may not."""
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
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_everywhere(host: str) -> bool:
    try:
        return not host or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _address(host: str, port: int, token: str | None) -> str:
    """Where a person goes: a machine that listens everywhere is reached by its name."""
    if _is_everywhere(host):
        host = socket.gethostname()
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/" + (f"login?token={quote(token, safe='')}" if token else "")
