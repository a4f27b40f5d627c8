"""The routes of the classes and their guidelines."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request

from sabal.errors import InputError
from sabal.labeling.project import Project
from sabal.labeling.store.records import MANAGE
from sabal.labeling.web.api_types import (
    ClassChangeBody,
    ClassesResponse,
    GuidelineBody,
    refuse_repeated_parameters,
)
from sabal.labeling.web.error_responses import READING, WRITING, error_schemas
from sabal.labeling.web.rights import may, person_of


def class_routes(project: Project) -> APIRouter:
    """Return the routes `/api/classes` and `/api/guidelines`."""
    routes = APIRouter(
        prefix="/api", tags=["classes"], dependencies=[Depends(refuse_repeated_parameters)]
    )
    store, manage = project.store, Depends(may(MANAGE))

    @routes.get("/classes", responses=error_schemas(READING))
    def classes() -> ClassesResponse:
        """Return the classes, their guidelines and their changes."""
        return ClassesResponse(list(store.classes), store.guidelines(), store.class_changes())

    @routes.post("/classes", responses=error_schemas(WRITING), dependencies=[manage])
    def change(request: Request, body: ClassChangeBody) -> ClassesResponse:
        """Add, rename or merge a class; labels are kept, and count under the new name."""
        if (body.target is None) != (body.action == "add"):
            raise InputError(
                "a `target` to rename or merge, and none to add",
                f"{body.action} with target {body.target!r}",
                "send the two together",
            )
        project.change_classes(body.action, body.name, body.target, person=_name(request))
        return classes()

    @routes.post("/guidelines", responses=error_schemas(WRITING), dependencies=[manage])
    def guide(request: Request, body: GuidelineBody) -> ClassesResponse:
        """Replace the guideline of the project or of a class."""
        store.set_guideline(body.text, body.class_name, person=_name(request))
        return classes()

    return routes


def _name(request: Request) -> str:
    person = person_of(request)
    return "" if person is None else person.name
