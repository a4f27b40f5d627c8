"""The routes that only read: status, batch, learning curve and export."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from sabal.labeling.exchange.exporting import export_bytes
from sabal.labeling.exchange.formats import ENDINGS, FORMATS, MEDIA_TYPES, check_format
from sabal.labeling.project import Project
from sabal.labeling.stop_advice import stop_advice
from sabal.labeling.store.records import REVIEW, Status
from sabal.labeling.store.schema import MAX_INTEGER
from sabal.labeling.web.api_types import (
    BatchResponse,
    CurveResponse,
    refuse_repeated_parameters,
    shown_batch_item,
)
from sabal.labeling.web.error_responses import READING, error_schemas
from sabal.labeling.web.rights import may
from sabal.labeling.web.slow_reads import Paced, SlowReads


def read_routes(project: Project) -> APIRouter:
    """Return the routes `/api/status`, `/api/batch`, `/api/curve` and `/api/export`."""
    routes = APIRouter(
        prefix="/api",
        tags=["reading"],
        dependencies=[Depends(refuse_repeated_parameters)],
        responses=error_schemas(READING),
    )
    store, review = project.store, Depends(may(REVIEW))
    status_reads, paced_status = SlowReads(1), Paced(store.status)
    slow = SlowReads()

    @routes.get("/status")
    async def status() -> Status:
        """Return round, labels, budget, classes, the worker's state and its latest metrics."""
        return await status_reads.run(paced_status)

    @routes.get("/batch", dependencies=[review])
    def batch(
        number: Annotated[
            int | None,
            Query(alias="round", ge=-1, le=MAX_INTEGER, description="Left out: the latest."),
        ] = None,
    ) -> BatchResponse:
        """Return a batch with the reason for every item; guesses and labels once they are given."""
        overlap = project.settings.overlap
        return BatchResponse([shown_batch_item(item, overlap) for item in store.batch(number)])

    @routes.get("/curve", dependencies=[review])
    def curve() -> CurveResponse:
        """Return the accuracy after every training, and whether more labels still help."""
        points = store.curve()
        advice = stop_advice(store)
        return CurveResponse(points, advice.verdict, advice.text)

    @routes.get(
        "/export",
        dependencies=[review],
        response_class=Response,
        responses={
            200: {"content": {kind: {} for kind in MEDIA_TYPES.values()}},
            **error_schemas((404,)),
        },
    )
    async def export(
        name: Annotated[
            str,
            Query(
                alias="format",
                description="csv, jsonl, parquet or label-studio.",
                json_schema_extra={"enum": list(FORMATS)},
            ),
        ] = "csv",
    ) -> Response:
        """Return the current labels as a file."""
        check_format(name)
        headers = {"content-disposition": f'attachment; filename="labels{ENDINGS[name]}"'}
        data = await slow.run(lambda: export_bytes(store, name))
        return Response(data, 200, headers, MEDIA_TYPES[name])

    return routes
