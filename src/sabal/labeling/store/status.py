"""Where a project is: what is labelled, what is open, what stands."""

from __future__ import annotations

import sqlalchemy as sa

from sabal.labeling.settings import Settings
from sabal.labeling.store import schema
from sabal.labeling.store.items import count_items
from sabal.labeling.store.records import LABEL, SKIP, LabelRow, Status
from sabal.labeling.store.rounds import all_metrics, all_trainings, get_state, latest_round
from sabal.labeling.store.standing import answered_items, stands


def status(connection: sa.Connection, settings: Settings) -> Status:
    """Everything a page shows at a glance."""
    counts = count_answers(connection, settings.overlap)
    state, progress, error = get_state(connection)
    items = count_items(connection)
    metrics = all_metrics(connection)
    measured = [t.id for t in all_trainings(connection) if t.id in metrics]
    number = latest_round(connection)
    batch = {"chosen": 0, "open": 0}
    if number is not None:
        batch = count_answers(connection, settings.overlap, number)
    return Status(
        round=number,
        labelled=counts["labelled"],
        skipped=counts["skipped"],
        remaining=counts["open"],
        partly=counts["partly"],
        overlap=settings.overlap,
        budget=settings.budget,
        classes=settings.classes,
        items=items,
        training=state,
        progress=progress,
        error=error,
        metrics=metrics[measured[-1]] if measured else {},
        finished=counts["chosen"] > 0
        and not counts["open"]
        and (counts["labelled"] >= settings.budget or counts["chosen"] == items),
        batch_size=batch["chosen"],
        batch_answered=batch["chosen"] - batch["open"],
    )


def count_answers(
    connection: sa.Connection, overlap: int, number: int | None = None
) -> dict[str, int]:
    """Items that were chosen, and of these the labelled, skipped and open ones.

    An item is open until `overlap` people have answered it; those that some have answered are
    counted as partly answered, too. `number` narrows it to one round.
    """
    b, found = schema.batch_items, answered_items()
    answers = sa.func.coalesce(found.c.answers, 0)
    labels = sa.func.coalesce(found.c.labels, 0)

    def count(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
        return sa.func.coalesce(sa.func.sum(sa.case((condition, 1), else_=0)), 0)

    query = sa.select(
        sa.func.count(),
        count(labels > 0),
        count(sa.and_(labels == 0, answers >= overlap)),
        count(answers < overlap),
        count(sa.and_(answers > 0, answers < overlap)),
    ).select_from(b.outerjoin(found, found.c.item_id == b.c.item_id))
    if number is not None:
        query = query.where(b.c.round == number)
    row = connection.execute(query).one()
    names = ("chosen", "labelled", "skipped", "open", "partly")
    return dict(zip(names, map(int, row), strict=True))


def label_rows(
    connection: sa.Connection, *, skipped: bool = False, until: int | None = None
) -> list[LabelRow]:
    """Labels (or skips) that stand, in the order they were given."""
    a, b, i = schema.answers, schema.batch_items, schema.items
    query = (
        sa.select(
            i.c.key, a.c.label, a.c.annotator, a.c.round, b.c.weight, a.c.answered_at, b.c.role
        )
        .join(b, b.c.item_id == a.c.item_id)
        .join(i, i.c.id == a.c.item_id)
        .where(a.c.action == (SKIP if skipped else LABEL), stands(until=until))
        .order_by(a.c.id)
    )
    return [LabelRow(*row) for row in connection.execute(query)]
