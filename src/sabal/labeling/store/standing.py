"""Which answers stand, and what people say of an item together.

A label or a skip stands unless it was undone, or the same person answered the same item again
later. `until`, the id of an answer, asks how things stood when that answer had just come in: the
whole history can be replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import sqlalchemy as sa

from sabal.labeling.store.records import LABEL, UNDO, Lesson
from sabal.labeling.store.schema import answers, batch_items


def stands(until: int | None = None) -> sa.ColumnElement[bool]:
    """The condition that a row of `answers` stands."""
    last, undo = answers.alias(), answers.alias()
    # Each is worked out once for a whole query, whatever the number of answers.
    latest = sa.select(sa.func.max(last.c.id)).where(last.c.action != UNDO, *_known(last, until))
    undone = sa.select(undo.c.undoes).where(undo.c.action == UNDO, *_known(undo, until))
    return sa.and_(
        answers.c.id.in_(latest.group_by(last.c.item_id, last.c.annotator)),
        answers.c.id.not_in(undone),
    )


def stands_now(given: sa.FromClause) -> sa.ColumnElement[bool]:
    """The condition that a row of `given`, an alias of `answers`, stands.

    The same as `stands()`, found by looking at one item and not at all answers.
    """
    later, undo = answers.alias(), answers.alias()
    return sa.and_(
        given.c.action != UNDO,
        ~sa.exists().where(
            later.c.item_id == given.c.item_id,
            later.c.annotator == given.c.annotator,
            later.c.action != UNDO,
            # As a difference, or SQLite would walk through all later answers of that person.
            later.c.id - given.c.id > 0,
        ),
        ~sa.exists().where(undo.c.undoes == given.c.id),
    )


def _known(table: sa.FromClause, until: int | None) -> list[sa.ColumnElement[bool]]:
    return [] if until is None else [table.c.id <= until]


def answered_items() -> sa.Subquery:
    """By item: how many answers stand, and how many of these are labels."""
    is_label = sa.case((answers.c.action == LABEL, 1), else_=0)
    return (
        sa.select(
            answers.c.item_id,
            sa.func.count().label("answers"),
            sa.func.sum(is_label).label("labels"),
        )
        .where(stands())
        .group_by(answers.c.item_id)
        .subquery()
    )


def majority(labels: Iterable[str]) -> str | None:
    """The label that most people gave, out of labels in the order they came; ties: the earliest."""
    counts = Counter(labels)
    # A Counter keeps the order of first appearance, and max takes the first of equals.
    return max(counts, key=lambda label: counts[label]) if counts else None


def lessons(connection: sa.Connection, until: int | None = None) -> list[Lesson]:
    """What is known of every labelled item, in the order that the items were chosen in."""
    rows = connection.execute(
        sa.select(batch_items.c.item_id, batch_items.c.weight, batch_items.c.role, answers.c.label)
        .join(answers, answers.c.item_id == batch_items.c.item_id)
        .where(answers.c.action == LABEL, stands(until=until))
        .order_by(batch_items.c.round, batch_items.c.rank, answers.c.id)
    )
    votes: dict[int, list[str]] = {}
    known: dict[int, tuple[float, str]] = {}
    for item, weight, role, label in rows:
        votes.setdefault(item, []).append(label)
        known[item] = (weight, role)
    return [
        Lesson(item, label, *known[item])
        for item, labels in votes.items()
        if (label := majority(labels)) is not None
    ]
