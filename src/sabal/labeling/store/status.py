"""The state of a project: what is labelled, what is open, and whether it is finished."""

from __future__ import annotations

import sqlalchemy as sa

from sabal.labeling.store import schema
from sabal.labeling.store.batch_items import latest_round
from sabal.labeling.store.class_history import current_classes
from sabal.labeling.store.current_answers import answered_items
from sabal.labeling.store.pool_items import count_items
from sabal.labeling.store.records import AnswerCounts, BatchProgress, Status
from sabal.labeling.store.store_base import StoreBase, StoreSettings
from sabal.labeling.store.trainings import all_metrics, all_trainings, get_state


class StatusStore(StoreBase):
    """The part of the store that summarises a project."""

    def status(self) -> Status:
        """Return the state of the project."""
        settings = self.settings
        with self.database.read() as connection:
            counts = _count(connection, settings.overlap)
            state, progress, error = get_state(connection)
            items = count_items(connection)
            classes = current_classes(connection)
            metrics = all_metrics(connection)
            measured = [t.id for t in all_trainings(connection) if t.id in metrics]
            number = latest_round(connection)
            batch = AnswerCounts()
            if number is not None:
                batch = _count(connection, settings.overlap, number)
        used_up = counts.labeled >= settings.budget or counts.chosen == items
        finished = counts.chosen > 0 and not counts.open and used_up
        return Status(
            round=number,
            labeled=counts.labeled,
            skipped=counts.skipped,
            remaining=counts.open,
            partly=counts.partly,
            overlap=settings.overlap,
            waits_for=_waits_for(counts, settings),
            budget=settings.budget,
            classes=classes,
            items=items,
            training=state,
            progress=progress,
            error=error,
            metrics=metrics[measured[-1]] if measured else {},
            finished=finished,
            ended=_why_ended(counts, items, settings) if finished else None,
            batch=BatchProgress(size=batch.chosen, answered=batch.chosen - batch.open),
        )

    def revision(self) -> tuple[int, ...]:
        """Return a value that changes with every answer, item and change of the classes."""
        columns = (schema.answers.c.id, schema.items.c.id, schema.class_changes.c.id)
        with self.database.read() as connection:
            found = (connection.scalar(sa.select(sa.func.max(column))) for column in columns)
            return tuple(-1 if number is None else int(number) for number in found)

    def counts(self, round: int | None = None) -> AnswerCounts:
        """Return the numbers of chosen, labelled, skipped and open items, in all or in a round."""
        with self.database.read() as connection:
            return _count(connection, self.settings.overlap, round)


def _waits_for(counts: AnswerCounts, settings: StoreSettings) -> str | None:
    """Say how many items wait for another annotator; None if there are none."""
    if not counts.partly:
        return None
    items = "1 item waits" if counts.partly == 1 else f"{counts.partly} items wait"
    other = "a second annotator" if settings.overlap == 2 else "another annotator"
    return f"{items} for {other}: {settings.overlap} people answer every item"


def _why_ended(counts: AnswerCounts, items: int, settings: StoreSettings) -> str:
    if counts.labeled + counts.skipped == items:
        return f"all {items} items of the pool are answered"
    return (
        f"the budget of {settings.budget} labels is used up; "
        "with a larger one in sabal.toml it goes on"
    )


def _count(connection: sa.Connection, overlap: int, number: int | None = None) -> AnswerCounts:
    """Count items; an item is open until `overlap` people have answered it."""
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
    return AnswerCounts(*map(int, connection.execute(query).one()))
