"""The routes that write: next items, labels and skips, and undo."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from sabal.labeling.project import Project
from sabal.labeling.store.records import ANSWER, Submission
from sabal.labeling.web.api_types import (
    MAX_ITEMS,
    Annotator,
    Guess,
    LabelBody,
    LabelResponse,
    NextItemsResponse,
    UndoBody,
    UndoResponse,
    next_item,
    refuse_repeated_parameters,
)
from sabal.labeling.web.error_responses import READING, WRITING, error_schemas
from sabal.labeling.web.rights import check_own_name, may


def write_routes(project: Project) -> APIRouter:
    """Return the routes `/api/next`, `/api/labels` and `/api/undo`."""
    routes = APIRouter(
        prefix="/api",
        tags=["answering"],
        dependencies=[Depends(refuse_repeated_parameters), Depends(may(ANSWER))],
    )
    store = project.store

    @routes.get("/next", responses=error_schemas(READING))
    def next_items(
        request: Request,
        annotator: Annotated[Annotator, Query(description="The person who asks.")],
        count: Annotated[int, Query(ge=1, le=MAX_ITEMS)] = 1,
    ) -> NextItemsResponse:
        """Lease items to a person: those they hold already, then free ones."""
        check_own_name(request, annotator)
        return NextItemsResponse(list(map(next_item, store.next_items(annotator, count))))

    @routes.post("/labels", responses=error_schemas(WRITING))
    def label(request: Request, body: LabelBody) -> LabelResponse:
        """Store a label or a skip; success means that it is on the disk."""
        check_own_name(request, body.annotator)
        answer = store.submit(Submission(**body.model_dump(mode="json")))
        guess = None
        if project.settings.show_guess and answer.label is not None:
            guess = store.reasons(answer.item).get("guess")
        return LabelResponse(answer, store.replaced(answer), Guess(**guess) if guess else None)

    @routes.post("/undo", responses=error_schemas(WRITING))
    def undo(request: Request, body: UndoBody) -> UndoResponse:
        """Undo a person's latest answer; the item is leased to them again."""
        check_own_name(request, body.annotator)
        return UndoResponse(store.undo(body.annotator, str(body.submission)))

    return routes
