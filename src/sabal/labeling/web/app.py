"""The app: routes, guard and worker put together."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from sabal.errors import InputError
from sabal.labeling.project import Project
from sabal.labeling.web.answering import answering_routes
from sabal.labeling.web.media import media_routes
from sabal.labeling.web.pages import page_routes
from sabal.labeling.web.problems import tell_problems
from sabal.labeling.web.reading import reading_routes
from sabal.labeling.web.security import Guard
from sabal.labeling.web.tokens import Door
from sabal.labeling.web.watch import kept_alive

HERE = Path(__file__).parent
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def create_app(
    project: Project,
    *,
    token: str | None = None,
    allowed_hosts: tuple[str, ...] = LOOPBACK,
    worker: bool = True,
) -> FastAPI:
    """The web app of a project.

    token: what every request must show, as `Authorization: Bearer` or the cookie that
        `/login?token=` sets. None: no token, for this machine alone.
    allowed_hosts: names this app goes by, without ports; `("*",)` needs a token.
    worker: whether to start the process that trains and chooses.
    """
    if "*" in allowed_hosts and not token:
        raise InputError("a token for an app that any host may reach", "none", "give a token")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if not worker:
            yield
            return
        async with kept_alive(project):
            yield

    # The documentation pages that FastAPI offers load scripts from elsewhere: only the schema is
    # served.
    app = FastAPI(
        title=f"Sabal: {project.settings.name}",
        version=version("sabal"),
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
    )
    cookie, door = f"sabal_{project_mark(project)}", Door(token)
    tell_problems(app)
    app.include_router(answering_routes(project))
    app.include_router(reading_routes(project))
    app.include_router(media_routes(project))
    app.include_router(page_routes(project, project_mark(project), door, cookie))
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    _describe_classes(app, project.settings.classes)
    app.add_middleware(Guard, hosts=allowed_hosts, door=door, cookie=cookie)
    return app


def _describe_classes(app: FastAPI, classes: tuple[str, ...]) -> None:
    """Say in the description of the interface which labels there are."""
    label_or_skip = app.openapi()["components"]["schemas"]["LabelBody"]["oneOf"]
    label_or_skip[0]["properties"]["label"] = {"type": "string", "enum": list(classes)}


def project_mark(project: Project) -> str:
    """Tells projects apart that are served at one address, one after the other.

    A browser keeps unsent labels under this mark, so they never reach another project.
    """
    where = str(project.folder.resolve())
    return hashlib.sha256(where.encode("utf-8", "surrogateescape")).hexdigest()[:12]
