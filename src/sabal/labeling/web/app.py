"""The web app: its routes, its guard and the worker that it keeps alive."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from sabal.errors import InputError
from sabal.labeling.project import Project
from sabal.labeling.web.error_responses import add_error_handlers
from sabal.labeling.web.login import login_routes
from sabal.labeling.web.media import media_routes
from sabal.labeling.web.pages import Pages, page_routes
from sabal.labeling.web.pages_project import project_pages
from sabal.labeling.web.pages_review import review_pages
from sabal.labeling.web.routes_classes import class_routes
from sabal.labeling.web.routes_read import read_routes
from sabal.labeling.web.routes_review import own_routes, review_routes
from sabal.labeling.web.routes_team import team_routes
from sabal.labeling.web.routes_write import write_routes
from sabal.labeling.web.security import Guard
from sabal.labeling.web.tokens import TokenGate
from sabal.labeling.worker_process import start_worker

HERE = Path(__file__).parent
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
CHECK_SECONDS = 1.0
MAX_PAUSE_SECONDS = 60.0


def create_app(
    project: Project,
    *,
    token: str | None = None,
    allowed_hosts: tuple[str, ...] = LOOPBACK,
    public_url: str | None = None,
    worker: bool = True,
) -> FastAPI:
    """Return the web app of a project.

    Every request must present the token, as `Authorization: Bearer` or as the cookie that
    `/login?token=` sets; without a token the app is for this machine only. Once people have
    personal links, theirs are the only tokens that are accepted. `allowed_hosts` are the
    host names of the app, without ports. `public_url` is where a web server in front of it
    publishes it: requests to that host and from that origin are its own. `worker` starts the
    process that trains and chooses.
    """
    if "*" in allowed_hosts and not token:
        raise InputError("a token for an app that any host may reach", "none", "give a token")
    # FastAPI's documentation pages load scripts from other sites: only the schema is served.
    app = FastAPI(
        title=f"Sabal: {project.settings.name}",
        version=version("sabal"),
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=(lambda app: worker_kept_alive(project)) if worker else None,
    )
    cookie, gate = f"sabal_{project_mark(project)}", TokenGate(token, project.store)
    page = Pages(project, project_mark(project))
    add_error_handlers(app)
    app.include_router(write_routes(project))
    app.include_router(team_routes(project))
    app.include_router(class_routes(project))
    app.include_router(read_routes(project))
    app.include_router(review_routes(project))
    app.include_router(own_routes(project))
    app.include_router(media_routes(project))
    app.include_router(page_routes(project, page))
    app.include_router(review_pages(project, page))
    app.include_router(project_pages(project, page))
    app.include_router(
        login_routes(page, gate, cookie, secure=(public_url or "").startswith("https:"))
    )
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    describe = app.openapi

    def with_classes() -> dict[str, Any]:
        described = describe()
        schemas = described["components"]["schemas"]
        one_of = {"type": "string", "enum": list(project.classes)}
        schemas["LabelBody"]["oneOf"][0]["properties"]["label"] = one_of
        schemas["BulkBody"]["properties"]["label"] = one_of
        return described

    app.openapi = with_classes  # type: ignore[method-assign]
    app.add_middleware(Guard, hosts=allowed_hosts, gate=gate, cookie=cookie, origin=public_url)
    return app


def project_mark(project: Project) -> str:
    """Return a mark of the project, under which a browser keeps the labels it has not sent."""
    where = str(project.folder.resolve())
    return hashlib.sha256(where.encode("utf-8", "surrogateescape")).hexdigest()[:12]


@asynccontextmanager
async def worker_kept_alive(project: Project) -> AsyncIterator[None]:
    """Run a worker for the duration of the block; restart it after longer and longer pauses."""
    handle = start_worker(project)

    async def watch() -> None:
        nonlocal handle
        pause = CHECK_SECONDS
        while True:
            await asyncio.sleep(pause)
            if handle.alive:
                pause = CHECK_SECONDS
                continue
            handle = await asyncio.to_thread(start_worker, project)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.to_thread(handle.stop)
