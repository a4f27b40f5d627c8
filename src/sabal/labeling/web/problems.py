"""What went wrong, as JSON: what was expected, what came, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from sabal.errors import FileError, MissingPackageError, SabalError, UnknownNameError
from sabal.labeling.store.answers import UnknownClassError
from sabal.labeling.web.messages import Problem

STATUS: tuple[tuple[type[SabalError], int], ...] = (
    (UnknownClassError, 422),  # the address exists, and what was sent to it makes no sense
    (UnknownNameError, 404),
    (FileError, 503),  # the database: whoever sent an answer keeps it and tries again
    (MissingPackageError, 409),
    (SabalError, 400),
)

MEANINGS = {
    400: "Not possible as things are, or another host.",
    401: "The token is missing, or another one.",
    403: "From a page of another site.",
    404: "No such thing.",
    408: "The body took too long.",
    413: "The body is too large.",
    422: "Not as described here.",
    429: "Too many wrong tokens.",
    503: "Not stored: the database cannot be used now. Send it again later.",
}
READING = (400, 401, 403, 422, 429, 503)
WRITING = (*READING, 404, 408, 413)
"""How a call that reads, or one that writes, may say no."""


def may_say(codes: Iterable[int]) -> dict[int | str, dict[str, Any]]:
    """The answers that say no, for the description of the interface."""
    return {code: {"model": Problem, "description": MEANINGS[code]} for code in sorted(codes)}


def problem(status: int, expected: str, got: str, fix: str) -> JSONResponse:
    """An answer that says no."""
    return JSONResponse(
        {"error": {"expected": expected, "got": got, "fix": fix}}, status_code=status
    )


def tell_problems(app: FastAPI) -> None:
    """Have every error of `app` told in this form."""

    @app.exception_handler(SabalError)
    def ours(request: Request, error: SabalError) -> Response:
        status = next(code for kind, code in STATUS if isinstance(error, kind))
        return problem(status, error.expected, error.got, error.fix)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "body"
        return problem(
            422,
            f"a request as in /api/openapi.json ({place})",
            str(first["msg"]),
            f"correct {place} and send it again",
        )

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        answer = problem(
            error.status_code, "an address of this app", str(error.detail), "go to /help"
        )
        answer.headers.update(error.headers or {})
        return answer
