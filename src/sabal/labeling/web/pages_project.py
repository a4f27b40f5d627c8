"""The page for whoever leads a project: classes, guidelines and people."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from sabal.labeling.project import Project
from sabal.labeling.store.records import MANAGE, ROLES
from sabal.labeling.web.pages import Pages
from sabal.labeling.web.rights import may

MEANINGS = {
    "lead": "may do everything",
    "annotator": "labels, and sees their own answers",
    "reader": "sees the dashboard, all items and exports",
}


def project_pages(project: Project, page: Pages) -> APIRouter:
    """Return the route `/project`."""
    routes = APIRouter(include_in_schema=False)
    store = project.store

    @routes.get("/project", dependencies=[Depends(may(MANAGE))])
    def lead(request: Request) -> Response:
        return page(
            request,
            "project.html",
            balance=store.class_balance(),
            guidelines=store.guidelines(),
            changes=store.class_changes(),
            people=store.people(),
            roles={role: MEANINGS[role] for role in ROLES},
            items=store.status().items,
        )

    return routes
