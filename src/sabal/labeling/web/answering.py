"""The calls that answer: what to label next, a label or a skip, an undo."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from sabal.labeling.project import Project
from sabal.labeling.store import Submission
from sabal.labeling.web.messages import (
    MOST_ITEMS,
    Annotator,
    Answered,
    AnswerOut,
    LabelBody,
    NextItems,
    UndoBody,
    Undone,
)
from sabal.labeling.web.problems import READING, WRITING, may_say
from sabal.labeling.web.queries import each_once
from sabal.labeling.web.reveal import guess_of, next_item


def answering_routes(project: Project) -> APIRouter:
    """`/api/next`, `/api/labels` and `/api/undo`."""
    routes = APIRouter(prefix="/api", tags=["answering"], dependencies=[Depends(each_once)])
    store = project.store

    @routes.get("/next", responses=may_say(READING))
    def next_items(
        annotator: Annotated[Annotator, Query(description="Who asks.")],
        count: Annotated[int, Query(ge=1, le=MOST_ITEMS)] = 1,
    ) -> NextItems:
        """Items leased to a person for a while: those they hold already, then free ones."""
        return NextItems(items=[next_item(leased) for leased in store.next(annotator, count)])

    @routes.post("/labels", responses=may_say(WRITING))
    def label(body: LabelBody) -> Answered:
        """Store a label or a skip; success means that it is on the disk."""
        answer = store.submit(
            Submission(
                submission=str(body.submission),
                annotator=body.annotator,
                item=body.item,
                label=body.label,
                skip=body.skip,
                seconds=body.seconds,
            )
        )
        tell = project.settings.show_guess and answer.label is not None
        guess = guess_of(store, answer.item) if tell else None
        before = store.replaced(answer)
        return Answered(
            answer=AnswerOut.model_validate(answer),
            replaces=AnswerOut.model_validate(before) if before else None,
            guess=guess,
        )

    @routes.post("/undo", responses=may_say(WRITING))
    def undo(body: UndoBody) -> Undone:
        """Take back a person's latest answer; the item is theirs to answer again."""
        answer = store.undo(body.annotator, str(body.submission))
        return Undone(answer=AnswerOut.model_validate(answer) if answer else None)

    return routes
