"""Which answers are current, and the majority label of an item.

A label or a skip is current unless it was undone, or the same person answered the same item again
later. With `until`, the id of an answer, a query asks which answers were current right after that
one: the whole history can be replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import sqlalchemy as sa

from sabal.labeling.store.records import LABEL, SKIP, UNDO, LabelRow, TrainingLabel
from sabal.labeling.store.schema import answers, batch_items, items
from sabal.labeling.store.store_base import StoreBase


class CurrentAnswerStore(StoreBase):
    """The part of the store that reads current answers."""

    def labels(self, until: int | None = None) -> list[LabelRow]:
        """Return the current labels in the order of submission."""
        return self._rows(LABEL, until)

    def skipped(self, until: int | None = None) -> list[LabelRow]:
        """Return the current skips in the order of submission."""
        return self._rows(SKIP, until)

    def training_labels(self, until: int | None = None) -> list[TrainingLabel]:
        """Return the majority label of each labelled item, in the order the items were chosen."""
        b = batch_items
        query = (
            sa.select(b.c.item_id, b.c.weight, b.c.role, answers.c.label)
            .join(answers, answers.c.item_id == b.c.item_id)
            .where(answers.c.action == LABEL, is_current(until))
            .order_by(b.c.round, b.c.rank, answers.c.id)
        )
        votes: dict[int, list[str]] = {}
        details: dict[int, tuple[float, str]] = {}
        with self.database.read() as connection:
            for item, weight, role, label in connection.execute(query):
                votes.setdefault(item, []).append(label)
                details[item] = (weight, role)
        return [
            TrainingLabel(item, label, *details[item])
            for item, labels in votes.items()
            if (label := majority(labels)) is not None
        ]

    def _rows(self, action: str, until: int | None) -> list[LabelRow]:
        a, b, i = answers, batch_items, items
        query = (
            sa.select(
                i.c.key, a.c.label, a.c.annotator, a.c.round, b.c.weight, a.c.answered_at, b.c.role
            )
            .join(b, b.c.item_id == a.c.item_id)
            .join(i, i.c.id == a.c.item_id)
            .where(a.c.action == action, is_current(until))
            .order_by(a.c.id)
        )
        with self.database.read() as connection:
            return [LabelRow(*row) for row in connection.execute(query)]


def is_current(until: int | None = None) -> sa.ColumnElement[bool]:
    """Return the condition that a row of `answers` is current."""
    last, undo = answers.alias(), answers.alias()
    # Each subquery is evaluated once per query, whatever the number of answers.
    latest = sa.select(sa.func.max(last.c.id)).where(last.c.action != UNDO, *_up_to(last, until))
    undone = sa.select(undo.c.undoes).where(undo.c.action == UNDO, *_up_to(undo, until))
    return sa.and_(
        answers.c.id.in_(latest.group_by(last.c.item_id, last.c.annotator)),
        answers.c.id.not_in(undone),
    )


def is_current_now(given: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the condition that a row of `given`, an alias of `answers`, is current.

    Equivalent to `is_current()`, but correlated: it looks at the answers to one item only.
    """
    later, undo = answers.alias(), answers.alias()
    return sa.and_(
        given.c.action != UNDO,
        ~sa.exists().where(
            later.c.item_id == given.c.item_id,
            later.c.annotator == given.c.annotator,
            later.c.action != UNDO,
            # As a difference: otherwise SQLite walks through all later answers of that person.
            later.c.id - given.c.id > 0,
        ),
        ~sa.exists().where(undo.c.undoes == given.c.id),
    )


def answered_items() -> sa.Subquery:
    """Count, by item, the current answers and the labels among them."""
    is_label = sa.case((answers.c.action == LABEL, 1), else_=0)
    return (
        sa.select(
            answers.c.item_id,
            sa.func.count().label("answers"),
            sa.func.sum(is_label).label("labels"),
        )
        .where(is_current())
        .group_by(answers.c.item_id)
        .subquery()
    )


def majority(labels: Iterable[str]) -> str | None:
    """Return the most frequent label, the earliest of them on a tie; None without labels."""
    counts = Counter(labels)
    # A Counter keeps the order of first appearance, and max takes the first of equals.
    return max(counts, key=lambda label: counts[label]) if counts else None


def _up_to(table: sa.FromClause, until: int | None) -> list[sa.ColumnElement[bool]]:
    return [] if until is None else [table.c.id <= until]
