"""The routes of a review: items with their answers, and items like a given one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from sabal.labeling.neighbors import similar_items
from sabal.labeling.project import Project
from sabal.labeling.store.item_pages import SHOWN, ItemFilter
from sabal.labeling.store.records import ANSWER, REVIEW
from sabal.labeling.store.schema import MAX_INTEGER
from sabal.labeling.web.api_types import (
    MAX_ITEMS,
    Annotator,
    BulkBody,
    BulkResponse,
    DetailsResponse,
    ItemResponse,
    ItemsResponse,
    Key,
    OwnAnswersResponse,
    SimilarResponse,
    own_answer,
    refuse_repeated_parameters,
    reviewed_item,
)
from sabal.labeling.web.error_responses import READING, WRITING, error_schemas
from sabal.labeling.web.rights import check_own_name, may, person_of, rights_of


def review_routes(project: Project) -> APIRouter:
    """Return the routes `/api/items`, `/api/item` and `/api/details`."""
    routes = APIRouter(
        prefix="/api", tags=["reviewing"], dependencies=[Depends(refuse_repeated_parameters)]
    )
    store = project.store
    unknown = error_schemas((*READING, 404))

    @routes.get("/items", responses=error_schemas(READING))
    def items(
        request: Request,
        text: Annotated[str, Query(max_length=200, description="In the text or the id.")] = "",
        label: Annotated[Key | None, Query(description="A class that somebody gave.")] = None,
        annotator: Annotated[Annotator | None, Query(description="Who answered.")] = None,
        number: Annotated[
            int | None, Query(alias="round", ge=-1, le=MAX_INTEGER, description="The batch.")
        ] = None,
        shown: Annotated[str, Query(json_schema_extra={"enum": list(SHOWN)})] = "all",
        first: Annotated[int, Query(ge=0, le=MAX_INTEGER)] = 0,
        count: Annotated[int, Query(ge=1, le=MAX_ITEMS)] = 50,
    ) -> ItemsResponse:
        """Return items by row with what was answered; an annotator gets their own answers only."""
        wanted = ItemFilter(
            text=text, label=label, annotator=annotator, round=number, shown=shown
        )  # fmt: skip
        found, total = store.item_page(visible(request, wanted), first, count)
        name = only_own(request)
        return ItemsResponse([reviewed_item(item, name) for item in found], total)

    @routes.get("/item", responses=unknown)
    def item(
        request: Request, key: Annotated[Key, Query(alias="id", description="Its id.")]
    ) -> ItemResponse:
        """Return an item with its other columns, its answers, and the history of these."""
        name = only_own(request)
        found = reviewed_item(store.review_item(key), name)
        history = [each for each in store.history_of(key) if name in (None, each.annotator)]
        return ItemResponse(found, history, store.details_of(key))

    @routes.get("/details", responses=unknown)
    def details(
        key: Annotated[Key, Query(alias="id", description="The id of an item.")],
    ) -> DetailsResponse:
        """Return the other columns of an item, and nothing that was answered."""
        return DetailsResponse(store.details_of(key))

    return routes


def own_routes(project: Project) -> APIRouter:
    """Return the routes `/api/answers`, `/api/similar` and `/api/bulk`, for people who answer."""
    routes = APIRouter(
        prefix="/api",
        tags=["answering"],
        dependencies=[Depends(refuse_repeated_parameters), Depends(may(ANSWER))],
    )
    store = project.store

    @routes.get("/answers", responses=error_schemas(READING))
    def answers(
        request: Request,
        annotator: Annotated[Annotator, Query(description="The person who asks.")],
        before: Annotated[int | None, Query(ge=0, le=MAX_INTEGER)] = None,
        count: Annotated[int, Query(ge=1, le=MAX_ITEMS)] = 20,
    ) -> OwnAnswersResponse:
        """Return a person's own current answers, the latest first, from before the id given."""
        check_own_name(request, annotator)
        return OwnAnswersResponse(list(map(own_answer, store.answers_of(annotator, before, count))))

    @routes.get("/similar", responses=error_schemas((*READING, 404)))
    def similar(
        request: Request,
        annotator: Annotated[Annotator, Query(description="The person who asks.")],
        key: Annotated[Key, Query(alias="item", description="The id of an item.")],
        count: Annotated[int, Query(ge=1, le=MAX_ITEMS)] = 24,
    ) -> SimilarResponse:
        """Return the items most like a given one that nobody has answered, the nearest first."""
        check_own_name(request, annotator)
        near = similar_items(project, key, annotator, count)
        return SimilarResponse([reviewed_item(store.review_item(each)) for each in near])

    @routes.post("/bulk", responses=error_schemas(WRITING))
    def bulk(request: Request, body: BulkBody) -> BulkResponse:
        """Give several items one label, also items of no batch; leave out what others answered."""
        check_own_name(request, body.annotator)
        keys = list(dict.fromkeys(body.items))
        free = store.label_free(body.annotator, keys, body.label)
        return BulkResponse(len(free), [key for key in keys if key not in free])

    return routes


def only_own(request: Request) -> str | None:
    """Return the name of a person who may see their own answers only; None for others."""
    person = person_of(request)
    return person.name if person is not None and REVIEW not in rights_of(request) else None


def visible(request: Request, wanted: ItemFilter) -> ItemFilter:
    """Return the filter, narrowed to what the person behind a request may see."""
    name = only_own(request)
    return wanted if name is None else wanted.narrowed_to(name)
