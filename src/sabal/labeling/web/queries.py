"""What every call of the interface asks of its address."""

from __future__ import annotations

from fastapi import Request

from sabal.errors import InputError


def each_once(request: Request) -> None:
    """Refuse a parameter that comes twice: nobody can tell which one was meant."""
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if names.count(name) > 1:
            raise InputError("every parameter once", f"{name!r} twice", "leave one of them out")
