"""The routes of a team: who one is, and what the lead decides."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request

from sabal.errors import InputError
from sabal.labeling.project import Project
from sabal.labeling.store.records import ANNOTATOR, LEAD, MANAGE, REVIEW, Submission
from sabal.labeling.web.api_types import (
    DecisionResponse,
    DisagreementsResponse,
    LabelBody,
    MeResponse,
    PeopleResponse,
    PersonBody,
    PersonResponse,
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

    @routes.post("/people", responses=error_schemas(WRITING), dependencies=[Depends(may(MANAGE))])
    def change_people(request: Request, body: PersonBody) -> PersonResponse:
        """Give a person a link with a role, another link, or none; the link is told once."""
        person, known = person_of(request), store.people()
        if body.action == "remove":
            if person is not None and person.name == body.name:
                raise InputError("somebody else", "yourself", "let another lead remove you")
            store.remove_person(body.name)
            return PersonResponse(store.people(), None)
        if body.action == "renew":
            return PersonResponse(store.people(), store.renew_person(body.name, body.role))
        if not known and body.role != LEAD:
            raise InputError(
                "a lead as the first person",
                body.role or ANNOTATOR,
                "add yourself first: nobody gets in without a personal link any more",
            )
        token = store.add_person(body.name, body.role or ANNOTATOR)
        return PersonResponse(store.people(), token)

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
