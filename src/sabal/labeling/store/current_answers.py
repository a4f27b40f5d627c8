"""Which answers are current, and the label that an item has by them.

A label or a skip is current unless it was undone, or the same person answered the same item again
later. With `until`, the id of an answer, a query asks which answers were current right after that
one: the whole history can be replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from sabal.labeling.store.class_history import class_history
from sabal.labeling.store.records import (
    LABEL,
    SKIP,
    UNDO,
    Disagreement,
    LabelRow,
    TrainingLabel,
    Vote,
)
from sabal.labeling.store.schema import answers, batch_items, decisions, items
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
        """Return the label of each labelled item, in the order the items were chosen."""
        b = batch_items
        with self.database.read() as connection:
            votes = current_votes(connection, until)
            chosen = connection.execute(
                sa.select(b.c.item_id, b.c.weight, b.c.role).order_by(b.c.round, b.c.rank)
            ).all()
        return [
            TrainingLabel(row.item_id, label, row.weight, row.role)
            for row in chosen
            if (label := settled_label(votes.get(row.item_id, ()))) is not None
        ]

    def disagreements(self) -> list[Disagreement]:
        """Return the items with different labels that are not decided, in the order chosen."""
        b, i = batch_items, items
        with self.database.read() as connection:
            votes = {k: v for k, v in current_votes(connection).items() if _is_disputed(v)}
            found = connection.execute(
                sa.select(b.c.item_id, i.c.key, i.c.kind, i.c.content, b.c.rank, b.c.round)
                .join(i, i.c.id == b.c.item_id)
                .order_by(b.c.round, b.c.rank)
            )
            return [
                Disagreement(
                    item=row.key,
                    kind=row.kind,
                    content=row.content,
                    rank=row.rank,
                    round=row.round,
                    votes=tuple(votes[row.item_id]),
                )
                for row in found
                if row.item_id in votes
            ]

    def _rows(self, action: str, until: int | None) -> list[LabelRow]:
        a, b, i = answers, batch_items, items
        query = (
            sa.select(
                a.c.id, i.c.key, a.c.label, a.c.annotator, a.c.round, b.c.weight, a.c.answered_at,
                b.c.role, is_decision(),
            )
            .join(b, b.c.item_id == a.c.item_id)
            .join(i, i.c.id == a.c.item_id)
            .where(a.c.action == action, is_current(until))
            .order_by(a.c.id)
        )  # fmt: skip
        with self.database.read() as connection:
            names = class_history(connection)
            return [
                LabelRow(key, names.present_name(label, number), *rest)
                for number, key, label, *rest in connection.execute(query)
            ]


def current_votes(
    connection: sa.Connection, until: int | None = None, *conditions: sa.ColumnElement[bool]
) -> dict[int, list[Vote]]:
    """Return the current answers by item, the earliest first; conditions are on `answers`."""
    a = answers
    query = sa.select(a.c.id, a.c.item_id, a.c.annotator, a.c.label, is_decision())
    names = class_history(connection)
    votes: dict[int, list[Vote]] = {}
    for key, item, annotator, label, decides in connection.execute(
        query.where(is_current(until), *conditions).order_by(a.c.id)
    ):
        vote = Vote(annotator, names.present_name(label, key), decides)
        votes.setdefault(item, []).append(vote)
    return votes


def is_decision() -> sa.ColumnElement[bool]:
    """Return whether a row of `answers` decides the label of its item."""
    return answers.c.id.in_(sa.select(decisions.c.answer_id))


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
    """Count, by item, the current answers and the labels among them; none if a skip is decided."""
    is_label = sa.case((answers.c.action == LABEL, 1), else_=0)
    is_decided_skip = sa.case((sa.and_(answers.c.action == SKIP, is_decision()), 1), else_=0)
    labels = sa.case((sa.func.max(is_decided_skip) == 1, 0), else_=sa.func.sum(is_label))
    return (
        sa.select(answers.c.item_id, sa.func.count().label("answers"), labels.label("labels"))
        .where(is_current())
        .group_by(answers.c.item_id)
        .subquery()
    )


def settled_label(votes: Sequence[Vote]) -> str | None:
    """Return the label that an item has: the decided one, or else that of the majority."""
    for vote in votes:
        if vote.decides:
            return vote.label
    return majority(vote.label for vote in votes if vote.label is not None)


def _is_disputed(votes: Sequence[Vote]) -> bool:
    labels = {vote.label for vote in votes if vote.label is not None}
    return len(labels) > 1 and not any(vote.decides for vote in votes)


def majority(labels: Iterable[str]) -> str | None:
    """Return the most frequent label, the earliest of them on a tie; None without labels."""
    counts = Counter(labels)
    # A Counter keeps the order of first appearance, and max takes the first of equals.
    return max(counts, key=lambda label: counts[label]) if counts else None


def _up_to(table: sa.FromClause, until: int | None) -> list[sa.ColumnElement[bool]]:
    return [] if until is None else [table.c.id <= until]
