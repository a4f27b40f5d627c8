"""The pages for a review: all items, searched and filtered, and those to decide."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from sabal.labeling.project import Project
from sabal.labeling.store.item_pages import SHOWN, ItemFilter
from sabal.labeling.store.schema import MAX_INTEGER
from sabal.labeling.web.api_types import reviewed_item
from sabal.labeling.web.pages import ONE_KEY, Pages, layout_of, shortcuts
from sabal.labeling.web.routes_review import only_own, visible

ITEMS_PER_PAGE = 48
WORDS = {
    "all": "All items",
    "labeled": "Labelled",
    "unlabeled": "Not answered",
    "skipped": "Skipped",
    "disputed": "Disagreements to decide",
    "decided": "Decided",
    "model": "Model disagrees with the label",
}
OWN = ("all", "labeled", "skipped")  # what somebody may filter by who sees their own answers only


def review_pages(project: Project, page: Pages) -> APIRouter:
    """Return the routes `/items` and `/disagreements`."""
    routes = APIRouter(include_in_schema=False)
    store = project.store

    @routes.get("/items")
    def items(
        request: Request,
        text: Annotated[str, Query(max_length=200)] = "",
        label: str = "",
        annotator: str = "",
        number: Annotated[str, Query(alias="round", pattern=r"^(-1|[0-9]{0,9})$")] = "",
        shown: str = "all",
        sheet: Annotated[int, Query(alias="page", ge=1, le=MAX_INTEGER // ITEMS_PER_PAGE)] = 1,
    ) -> Response:
        wanted = ItemFilter(
            text=text,
            label=label or None,
            annotator=annotator or None,
            round=int(number) if number else None,
            shown=shown if shown in SHOWN else "all",
        )
        name, classes = only_own(request), project.classes
        first = ITEMS_PER_PAGE * (sheet - 1)
        found, total = store.item_page(visible(request, wanted), first, ITEMS_PER_PAGE)
        return page(
            request,
            "items.html",
            items=[reviewed_item(item, name) for item in found],
            wanted=wanted,
            shown={each: WORDS[each] for each in (SHOWN if name is None else OWN)},
            classes=classes,
            annotators=store.annotators() if name is None else [],
            rounds=[each.number for each in store.rounds()],
            **sheets(request, sheet, total),
            shortcuts=shortcuts(classes),
            many=len(classes) > len(ONE_KEY),
            layout=layout_of(classes),
        )

    @routes.get("/disagreements")
    def disagreements() -> Response:
        return RedirectResponse("/items?shown=disputed&queue=1", status_code=303)

    return routes


def sheets(request: Request, sheet: int, total: int) -> dict[str, Any]:
    """Return what the links between the sheets of a list need."""
    last = max(1, -(-total // ITEMS_PER_PAGE))
    kept = {name: value for name, value in request.query_params.items() if name != "page"}

    def address(number: int) -> str | None:
        inside = 1 <= number <= last
        return f"/items?{urlencode({**kept, 'page': number})}" if inside else None

    return {
        "total": total,
        "sheet": sheet,
        "last_sheet": last,
        "sheet_before": address(sheet - 1),
        "sheet_after": address(sheet + 1),
    }
