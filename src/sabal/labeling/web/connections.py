"""Connections: their number is limited, and each has to send its request in time.

Nobody is refused. Beyond a limit the connection that has kept the server waiting for the longest
time is closed instead, so that any number of silent connections cannot keep out a client that sends
its request at once.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Sequence

from uvicorn.protocols.http.h11_impl import H11Protocol

from sabal.errors import InputError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_CONNECTIONS = 800  # in all; often a process may open no more than 1,024 files
MAX_PER_ADDRESS = 200  # of one address: people may share it
HEADER_SECONDS = 10.0  # for the line and the headers of a request; the guard limits bodies
# For the next request. A client that sends it just when the connection is closed sees an error, so
# this is longer than clients keep theirs: httpx 5 seconds, Caddy as long as deploy/Caddyfile says.
KEEP_ALIVE_SECONDS = 9
IPV6_PREFIX = 64  # the bits of an IPv6 address that its owner cannot choose


class BoundedConnection(H11Protocol):
    """An HTTP connection of a limited number; `proxies` may have more than other addresses."""

    proxies: tuple[Network, ...] = ()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, and close others that are too many."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        self.owner = owner_of(address)
        self._deadline: asyncio.TimerHandle | None = None
        self._wait_for_request()
        if not _is_in(address, self.proxies):
            own = [each for each in self._all() if each.owner == self.owner]
            _close_longest_waiting(own, MAX_PER_ADDRESS)
        _close_longest_waiting(self._all(), MAX_CONNECTIONS)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._wait_for_request()

    def shutdown(self) -> None:
        """End the connection after the response that is under way, if any."""
        if self.is_waiting:
            self.close_now()
        else:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _all(self) -> list[BoundedConnection]:
        return [each for each in self.connections if isinstance(each, BoundedConnection)]

    @property
    def is_waiting(self) -> bool:
        """Whether the client has not sent all of a request."""
        return not self._is_answering or self.cycle.more_body

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_request(self) -> None:
        self._stop_waiting()
        self.waiting_since = self.loop.time()
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _give_up(self) -> None:
        if not self._is_answering:
            self.close_now()

    def close_now(self) -> None:
        """Close without sending what is left: the client may not read it."""
        self.connections.discard(self)
        self.transport.abort()


def _close_longest_waiting(connections: list[BoundedConnection], limit: int) -> None:
    if len(connections) > limit:
        waiting = [each for each in connections if each.is_waiting]
        min(waiting, key=lambda each: each.waiting_since).close_now()


def owner_of(address: str) -> str:
    """Return what stands for the owner of an address: an IPv6 network, or the address itself."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip, IPV6_PREFIX), strict=False).network_address)


def parse_proxies(proxies: Sequence[str]) -> tuple[Network, ...]:
    """Return the addresses or networks of proxies, checked."""
    try:
        networks = [ipaddress.ip_network(each, strict=False) for each in proxies]
    except ValueError as error:
        raise InputError(
            "a proxy by its address, such as 127.0.0.1 or 10.0.0.0/24",
            str(error),
            "name the proxy whose X-Forwarded-For is to be believed",
        ) from None
    mapped = [_as_ipv6(each) for each in networks if isinstance(each, ipaddress.IPv4Network)]
    return (*networks, *mapped)


def _as_ipv6(network: ipaddress.IPv4Network) -> ipaddress.IPv6Network:
    """Return an IPv4 network as a server that listens on IPv6 sees it."""
    return ipaddress.IPv6Network(f"::ffff:{network.network_address}/{96 + network.prefixlen}")


def _is_in(address: str, networks: Sequence[Network]) -> bool:
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(ip in network for network in networks)
