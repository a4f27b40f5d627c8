"""The routes of a team: who one is, and what the lead decides."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request

from sabal.labeling.project import Project
from sabal.labeling.store.records import MANAGE, REVIEW, Submission
from sabal.labeling.web.api_types import (
    DecisionResponse,
    DisagreementsResponse,
    LabelBody,
    MeResponse,
    PeopleResponse,
    disputed_item,
    refuse_repeated_parameters,
)
from sabal.labeling.web.error_responses import READING, WRITING, error_schemas
from sabal.labeling.web.rights import check_own_name, may, person_of, rights_of


def team_routes(project: Project) -> APIRouter:
    """Return the routes `/api/me`, `/api/people`, `/api/disagreements` and `/api/decisions`."""
    routes = APIRouter(
        prefix="/api", tags=["team"], dependencies=[Depends(refuse_repeated_parameters)]
    )
    store = project.store

    @routes.get("/me", responses=error_schemas(READING))
    def me(request: Request) -> MeResponse:
        """Return whose personal link this is, and what it allows."""
        person = person_of(request)
        rights = sorted(rights_of(request))
        if person is None:
            return MeResponse(None, None, rights)
        return MeResponse(person.name, person.role, rights)

    @routes.get("/people", responses=error_schemas(READING), dependencies=[Depends(may(MANAGE))])
    def people() -> PeopleResponse:
        """Return the people who have a personal link."""
        return PeopleResponse(store.people())

    @routes.get(
        "/disagreements", responses=error_schemas(READING), dependencies=[Depends(may(REVIEW))]
    )
    def disagreements() -> DisagreementsResponse:
        """Return the items that people labelled differently and nobody has decided."""
        return DisagreementsResponse(list(map(disputed_item, store.disagreements())))

    @routes.post(
        "/decisions", responses=error_schemas(WRITING), dependencies=[Depends(may(MANAGE))]
    )
    def decide(request: Request, body: LabelBody) -> DecisionResponse:
        """Settle the label of an item, or that it has none, whatever others have answered."""
        check_own_name(request, body.annotator)
        return DecisionResponse(store.decide(Submission(**body.model_dump(mode="json"))))

    return routes
