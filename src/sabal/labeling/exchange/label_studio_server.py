"""A project of a running Label Studio, over its HTTP interface."""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

from sabal.errors import InputError, ServerError

SECONDS = 60.0  # for the answer to a request
MAX_BYTES = 2**28  # of an answer
TASKS_PER_PAGE = 500
MAX_READS = 5  # of all tasks, while others add and delete some
NEWEST_FIRST = json.dumps({"ordering": ["-tasks:updated_at"]})
WHY_NOT = {
    401: "the token is not accepted; copy it from Account & Settings in Label Studio",
    403: "the token does not allow this; use that of somebody who may change the project",
    404: "there is no such project; check the number in the address of its page",
}


def server_and_project(url: str, number: int | None) -> tuple[str, int]:
    """Return the address of a server and the number of a project there.

    The address of a page of the project has both; `number` is for the address of the server alone.
    """
    server, found, rest = url.partition("/projects/")
    in_url = re.match(r"\d+", rest)
    if found and in_url and number in (None, int(in_url[0])):
        return server, int(in_url[0])
    if found and number is not None:
        named = f"project {in_url[0]}" if in_url else "a page of no project"
        raise InputError(
            f"the address of project {number}", f"{url!r}, {named}", "leave out one of them"
        )
    if number is None:
        raise InputError(
            "the project of Label Studio", repr(url), "add --project and the number in its address"
        )
    return url, number


class RefusedError(ServerError):
    """A request that the server refused: nothing was changed by it."""


class LabelStudioServer:
    """One project of one server; `token` is an access token of either kind that it has."""

    def __init__(self, url: str, project: int, token: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise InputError(
                "the address of Label Studio", repr(url), "for instance http://localhost:8080"
            )
        if not token.isascii() or not token.isprintable() or not token:
            raise InputError("an access token of Label Studio", "none", "set LABEL_STUDIO_API_KEY")
        self.url, self.number, self._token = url.rstrip("/"), project, token
        self._access: str | None = None
        self._opener = urllib.request.build_opener(_NoRedirects)

    @property
    def place(self) -> str:
        """The address of the project."""
        return f"{self.url}/projects/{self.number}"

    def project(self) -> dict[str, Any]:
        """Return the settings of the project."""
        return self._call("GET", f"/api/projects/{self.number}/")

    def change(self, **settings: Any) -> None:
        """Change settings of the project."""
        self._call("PATCH", f"/api/projects/{self.number}/", settings)

    def revision(self) -> tuple[Any, ...]:
        """Return a value that changes with every task and annotation."""
        found = self._page(1, page_size=1, query=NEWEST_FIRST)
        newest = [task.get("updated_at") for task in found["tasks"]]
        return found["total"], found.get("total_annotations"), *newest

    def tasks(self) -> list[dict[str, Any]]:
        """Return all tasks with their annotations."""
        for _ in range(MAX_READS):
            tasks, total = self._read_pages()
            # A task that is deleted between two pages moves another one to a page read already.
            if len({task["id"] for task in tasks}) == total:
                return tasks
        raise ServerError(
            f"{total} tasks in {self.place}", f"{len(tasks)}", "wait until nobody changes them"
        )

    def add(self, tasks: Sequence[dict[str, Any]]) -> None:
        """Add tasks, all of them or, if they are refused, none."""
        self._call("POST", f"/api/projects/{self.number}/import", list(tasks))

    def _read_pages(self) -> tuple[list[dict[str, Any]], int]:
        tasks: list[dict[str, Any]] = []
        number, total = 1, 1
        while (number - 1) * TASKS_PER_PAGE < total:
            found = self._page(number, page_size=TASKS_PER_PAGE, fields="all")
            tasks, total, number = tasks + found["tasks"], found["total"], number + 1
            if not found["tasks"]:
                break
        return tasks, total

    def _page(self, number: int, **options: Any) -> dict[str, Any]:
        query = {"project": self.number, "page": number, "resolve_uri": "false", **options}
        found = self._call("GET", f"/api/tasks?{urlencode(query)}")
        total, tasks = found.get("total"), found.get("tasks")
        if isinstance(total, int) and isinstance(tasks, list):
            have_ids = (
                isinstance(each, dict) and isinstance(each.get("id"), int) for each in tasks
            )
            if all(have_ids):
                return found
        raise self._no_label_studio("an answer without tasks")

    def _call(self, method: str, path: str, content: Any = None) -> dict[str, Any]:
        try:
            return self._send(method, path, content, self._authorization())
        except RefusedError:
            if self._access is None:
                raise
        # The access that a personal token gives lasts for minutes.
        self._access = None
        return self._send(method, path, content, self._authorization())

    def _authorization(self) -> str:
        if self._token.count(".") != 2:
            return f"Token {self._token}"
        if self._access is None:
            # A personal token is a JSON web token, which only obtains another one.
            found = self._send("POST", "/api/token/refresh", {"refresh": self._token}, None)
            self._access = str(found.get("access"))
        return f"Bearer {self._access}"

    def _send(self, method: str, path: str, content: Any, access: str | None) -> dict[str, Any]:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if access is not None:
            headers["Authorization"] = access
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(  # noqa: S310  # the scheme was checked
            self.url + path, data=data, headers=headers, method=method
        )
        try:
            with self._opener.open(request, timeout=SECONDS) as response:
                answer = response.read(MAX_BYTES + 1)
            if len(answer) > MAX_BYTES:
                raise self._no_label_studio(f"an answer of more than {MAX_BYTES} bytes")
            found = json.loads(answer or b"{}")
        except urllib.error.HTTPError as error:
            raise self._failure(error) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            got = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            raise ServerError(
                f"Label Studio at {self.url}", got, "check that it runs, and its address"
            ) from None
        except (ValueError, RecursionError):
            raise self._no_label_studio("an answer that is no JSON") from None
        if not isinstance(found, dict):
            raise self._no_label_studio("another answer")
        return found

    def _failure(self, error: urllib.error.HTTPError) -> ServerError:
        """Return the error for a response that reports one."""
        if error.code in (301, 302, 303, 307, 308):
            return self._no_label_studio(f"a redirection to {error.headers.get('Location')}")
        expected = f"Label Studio to accept a request about {self.place}"
        if error.code in WHY_NOT:
            got, fix = WHY_NOT[error.code].split("; ")
            return RefusedError(expected, got, fix)
        if error.code >= 500 or error.code in (408, 429):
            return ServerError(expected, f"{error.code} {error.reason}", "look into its log")
        return RefusedError(expected, f"{error.code}: {_detail(error)}", "see its log for more")

    def _no_label_studio(self, got: str) -> ServerError:
        return RefusedError(f"Label Studio at {self.url}", got, "check the address")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirections: the token is meant for one server only."""

    def redirect_request(self, *arguments: Any) -> None:
        return None


def _has_id(task: Any) -> bool:
    return isinstance(task, dict) and isinstance(task.get("id"), int)


def _detail(error: urllib.error.HTTPError) -> str:
    """Return what a server says about an error, shortened."""
    try:
        found = json.loads(error.read())
        text = json.dumps(found.get("validation_errors") or found.get("detail"))
    except (OSError, ValueError, AttributeError):
        text = str(error.reason)
    return text[:200]
