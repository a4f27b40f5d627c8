"""Error responses as JSON: what was expected, what was received, and what to do."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Match

from sabal.errors import FileError, MissingPackageError, SabalError, UnknownNameError
from sabal.labeling.store.answers import UnknownClassError
from sabal.labeling.web.api_types import ErrorResponse


class NotAllowedError(SabalError):
    """Something that the role of a person does not include."""


METHOD_NOT_ALLOWED = 405

UNAVAILABLE = 503
STATUS: tuple[tuple[type[SabalError], int], ...] = (
    (NotAllowedError, 403),
    (UnknownClassError, 422),  # the address exists, but the content is not valid
    (UnknownNameError, 404),
    (FileError, UNAVAILABLE),  # the database: the client keeps the answer and tries again
    (MissingPackageError, 409),
    (SabalError, 400),
)

MEANINGS = {
    400: "Not possible as things are, or another host.",
    401: "The token is missing, or another one.",
    403: "From a page of another site, or not for this person.",
    404: "Not found.",
    408: "The body took too long.",
    413: "The body is too large.",
    422: "Not a valid request.",
    429: "Too many wrong tokens.",
    503: "Not stored: the database cannot be used now. Send it again later.",
}
READING = (400, 401, 403, 422, 429, 503)
WRITING = (*READING, 404, 408, 413)
"""The status codes of errors of a call that reads, and of one that writes."""


def error_schemas(codes: Iterable[int]) -> dict[int | str, dict[str, Any]]:
    """Return the error responses for the description of the interface."""
    return {code: {"model": ErrorResponse, "description": MEANINGS[code]} for code in sorted(codes)}


def error_response(status: int, expected: str, got: str, fix: str) -> JSONResponse:
    """Return an error in three parts as JSON."""
    return JSONResponse(
        {"error": {"expected": expected, "got": got, "fix": fix}}, status_code=status
    )


def add_error_handlers(app: FastAPI) -> None:
    """Make all errors of `app` responses of this form."""

    @app.exception_handler(SabalError)
    def known(request: Request, error: SabalError) -> Response:
        status = next(code for kind, code in STATUS if isinstance(error, kind))
        if status == UNAVAILABLE:
            # People in front of the page cannot help it; whoever runs the app can.
            logging.getLogger(__name__).error("sabal: %s", error)
        return error_response(status, error.expected, error.got, error.fix)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "body"
        return error_response(
            422,
            f"a request as in /api/openapi.json ({place})",
            str(first["msg"]),
            f"correct {place} and send it again",
        )

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        answer = error_response(
            error.status_code, "an address of this app", str(error.detail), "go to /help"
        )
        answer.headers.update(error.headers or {})
        if error.status_code == METHOD_NOT_ALLOWED:
            answer.headers["Allow"] = ", ".join(_methods(app, request))
        return answer


def _methods(app: FastAPI, request: Request) -> list[str]:
    """Return the methods of an address, which may have several routes."""
    matching = (route for route in app.routes if route.matches(request.scope)[0] != Match.NONE)
    return sorted(
        {method for route in matching for method in getattr(route, "methods", None) or ()}
    )
