"""Import, start and stop Ray; the only module that imports it."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from sabal.core.extras import missing_package
from sabal.errors import ClusterError

CONNECT_SECONDS = 10.0  # the timeout of a connection test; Ray itself would retry for minutes

RESOLVED_BY_RAY = ("auto", "local")
"""Addresses that Ray resolves itself."""


def ray_module() -> Any:
    """Return Ray; raise if it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise missing_package("ray", "ray", "to work on a cluster", error) from None
    return ray


def ray_data_module() -> Any:
    """Return Ray Data; raise if it or its dependencies are not installed."""
    ray_module()
    try:
        import ray.data
    except ImportError as error:
        raise missing_package(error.name or "ray.data", "ray", "for Ray Data", error) from None
    return ray.data


@contextlib.contextmanager
def session(address: str | None = None, *, cpus: int | None = None) -> Iterator[None]:
    """Connect to Ray for a block; an existing connection of this process is reused.

    Parameters
    ----------
    address : str, optional
        The cluster to join ("auto" for the one on this machine). By default the address in
        RAY_ADDRESS, or else Ray is started on this machine.
    cpus : int, optional
        The minimum number of CPUs if Ray is started here; those of the machine by default.
    """
    ray = ray_module()
    if ray.is_initialized():
        _check_same(ray, address)
        yield
        return
    try:
        _connect(ray, address or os.environ.get("RAY_ADDRESS") or "local", cpus)
        yield
    finally:
        ray.shutdown()


def cpus_of_cluster() -> int:
    """Return the number of CPUs of the cluster, busy or not."""
    return max(1, int(ray_module().cluster_resources().get("CPU", 1)))


def reason_of(error: BaseException) -> str:
    """Return the first line of an error message; Ray's messages are whole reports."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _connect(ray: Any, address: str, cpus: int | None) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    settings = {}
    if address == "local":
        # Ray was not requested explicitly: no dashboard, and no usage statistics.
        options["include_dashboard"] = False
        settings = {"RAY_USAGE_STATS_ENABLED": "0"}
        if cpus is not None:
            options["num_cpus"] = max(cpus, os.cpu_count() or 1)
    _check_listens(address)
    try:
        with _environment(settings), _interrupts_later(), warnings.catch_warnings():
            # Hide hints that are meant for direct users of Ray.
            warnings.simplefilter("ignore")
            ray.init(address=address, **options)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise _unreachable(address, reason_of(error)) from None


@contextlib.contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """Set environment variables for a block, unless they are set already."""
    ours = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


@contextlib.contextmanager
def _interrupts_later() -> Iterator[None]:
    """Delay an interrupt to the end of the block; a half-started Ray cannot be stopped cleanly."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if interrupts:
            raise KeyboardInterrupt


def _check_same(ray: Any, address: str | None) -> None:
    """Raise if the process is connected to another cluster than `address`."""
    if address is None or address in RESOLVED_BY_RAY or "://" in address:
        return
    joined = ray.get_runtime_context().gcs_address
    if joined != address:
        raise ClusterError(
            f"a process that is connected to {address}, or to no Ray yet",
            f"one that is connected to {joined}",
            "call ray.shutdown() first, or leave the address out",
        )


def _check_listens(address: str) -> None:
    host, found, port = address.rpartition("://")[2].rpartition(":")
    if address in RESOLVED_BY_RAY or not found or not port.isdigit():
        return  # Ray rejects malformed addresses itself
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, reason_of(error)) from None


def _unreachable(address: str, reason: str) -> ClusterError:
    if address == "local":
        return ClusterError("to start Ray on this machine", reason, "see what `ray start` says")
    return ClusterError(
        f"a Ray cluster at {address}", reason, "check the address, or start one with `ray start`"
    )
