"""The calls that only read: where the project is, its batch, its curve, its labels as a file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from sabal.labeling.exchange import FORMATS, MEDIA_TYPES, export_bytes
from sabal.labeling.exchange.formats import ENDINGS, check_format
from sabal.labeling.project import Project
from sabal.labeling.web.messages import (
    LARGEST_ROUND,
    Batch,
    BatchProgress,
    Curve,
    CurvePointOut,
    StatusOut,
)
from sabal.labeling.web.problems import READING, may_say
from sabal.labeling.web.queries import each_once
from sabal.labeling.web.reveal import batch_item


def reading_routes(project: Project) -> APIRouter:
    """`/api/status`, `/api/batch`, `/api/curve` and `/api/export`."""
    routes = APIRouter(
        prefix="/api",
        tags=["reading"],
        dependencies=[Depends(each_once)],
        responses=may_say(READING),
    )
    store = project.store
    files = MEDIA_TYPES.values()

    @routes.get("/status")
    def status() -> StatusOut:
        """Round, labels, budget, classes, what the worker does, and its latest figures."""
        now = store.status()
        batch = BatchProgress(size=now.batch_size, answered=now.batch_answered)
        return StatusOut(**asdict(now), waits_for=now.waits_for, ended=now.ended, batch=batch)

    @routes.get("/batch")
    def batch(
        number: Annotated[
            int | None,
            Query(alias="round", ge=-1, le=LARGEST_ROUND, description="Left out: the latest."),
        ] = None,
    ) -> Batch:
        """A batch with the reason for every item; guesses and labels once they are given."""
        overlap = project.settings.overlap
        return Batch(items=[batch_item(item, overlap) for item in store.batch(number)])

    @routes.get("/curve")
    def curve() -> Curve:
        """Accuracy after every training, and whether more labels still help."""
        advice = store.advice()
        points = [CurvePointOut.model_validate(point) for point in store.curve()]
        return Curve(points=points, verdict=advice.verdict, advice=advice.text)

    @routes.get(
        "/export",
        response_class=Response,
        responses={200: {"content": {kind: {} for kind in files}}, **may_say((404,))},
    )
    def export(
        name: Annotated[
            str,
            Query(
                alias="format",
                description="csv, jsonl, parquet or label-studio.",
                json_schema_extra={"enum": list(FORMATS)},
            ),
        ] = "csv",
    ) -> Response:
        """The labels that stand, as a file."""
        check_format(name)
        attachment = f'attachment; filename="labels{ENDINGS[name]}"'
        return Response(
            export_bytes(store, name),
            media_type=MEDIA_TYPES[name],
            headers={"content-disposition": attachment},
        )

    return routes
