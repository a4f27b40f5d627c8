"""Items page by page, for people who review: searched, filtered, and with what was answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from sabal.core.checks import check_choice
from sabal.errors import UnknownNameError
from sabal.labeling.store.answers import present_class
from sabal.labeling.store.class_history import ClassHistory, class_history
from sabal.labeling.store.current_answers import is_current_now, settled_label
from sabal.labeling.store.records import LABEL, SKIP, OwnAnswer, ReviewItem, Vote
from sabal.labeling.store.schema import (
    answers,
    batch_items,
    decisions,
    item_details,
    items,
    leases,
    predictions,
)
from sabal.labeling.store.store_base import StoreBase

SHOWN = ("all", "labeled", "unlabeled", "skipped", "disputed", "decided", "model")
"""Which items: `disputed` ones have different labels and no decision; `model` ones have another
label than the latest model predicts."""


@dataclass(frozen=True, kw_only=True)
class ItemFilter:
    """Which items to show; whatever is None or empty does not matter."""

    text: str = ""
    label: str | None = None
    annotator: str | None = None
    round: int | None = None
    shown: str = "all"

    def __post_init__(self) -> None:
        check_choice(self.shown, "shown", SHOWN)

    def narrowed_to(self, annotator: str) -> ItemFilter:
        """Return the filter for somebody who may see their own answers only."""
        shown = self.shown if self.shown in ("labeled", "skipped") else "all"
        return replace(self, annotator=annotator, shown=shown)


class ItemPageStore(StoreBase):
    """The part of the store that lists items with their answers."""

    def item_page(
        self, wanted: ItemFilter, first: int = 0, count: int = 50
    ) -> tuple[list[ReviewItem], int]:
        """Return `count` items from the one at `first` on, by row, and the number of all."""
        with self.database.read() as connection:
            conditions = _conditions(wanted, class_history(connection))
            total = sa.select(sa.func.count()).select_from(_JOINED).where(*conditions)
            found = _review_items(connection, conditions, first, count)
            return found, int(connection.scalar(total) or 0)

    def review_item(self, key: str) -> ReviewItem:
        """Return the item with a key, and what was answered."""
        with self.database.read() as connection:
            found = _review_items(connection, [items.c.key == key], 0, 1)
        if not found:
            raise UnknownNameError("the id of an item of this project", repr(key), "check the id")
        return found[0]

    def answers_of(self, annotator: str, before: int | None, count: int) -> list[OwnAnswer]:
        """Return current answers of a person, the latest first, from before the one with an id."""
        a, b, i = answers.alias(), batch_items, items
        query = (
            sa.select(a.c.id, i.c.key, i.c.kind, i.c.content, b.c.rank, b.c.round, a.c.label)
            .join(i, i.c.id == a.c.item_id)
            .join(b, b.c.item_id == a.c.item_id)
            .where(a.c.annotator == annotator, is_current_now(a))
            .order_by(a.c.id.desc())
            .limit(count)
        )
        if before is not None:
            query = query.where(a.c.id < before)
        with self.database.read() as connection:
            names = class_history(connection)
            found = [OwnAnswer(*row) for row in connection.execute(query)]
        return [replace(each, label=names.present_name(each.label, each.id)) for each in found]

    def details_of(self, key: str) -> dict[str, str]:
        """Return the other columns of an item; empty if its source has none."""
        d = item_details
        query = sa.select(d.c.content).join(items, items.c.id == d.c.item_id)
        with self.database.read() as connection:
            return dict(connection.scalar(query.where(items.c.key == key)) or {})

    def has_details(self) -> bool:
        """Return whether any item has other columns."""
        with self.database.read() as connection:
            return connection.scalar(sa.select(item_details.c.item_id).limit(1)) is not None

    def free_rows(self, annotator: str) -> set[int]:
        """Return the rows of items that nobody has answered and no other person holds."""
        held = self._held_by_others(annotator)
        query = sa.select(items.c.id).where(~_answered(lambda a: []), ~held)
        with self.database.read() as connection:
            return set(connection.scalars(query))

    def free_keys(self, annotator: str, keys: Sequence[str], label: str) -> set[str]:
        """Return the keys that a person may label: free items, and their own with this label."""
        free = sa.and_(~_answered(lambda a: []), ~self._held_by_others(annotator))
        with self.database.read() as connection:
            label = present_class(connection, label) or label
            names = class_history(connection)
            own = _answered(
                lambda a: [a.c.annotator == annotator, _present_label(a, names) == label]
            )
            query = sa.select(items.c.key).where(items.c.key.in_(keys), sa.or_(own, free))
            return set(connection.scalars(query))

    def keys_of(self, rows: Sequence[int]) -> dict[int, str]:
        """Return the keys of some items by row."""
        query = sa.select(items.c.id, items.c.key).where(items.c.id.in_(rows))
        with self.database.read() as connection:
            return {row.id: row.key for row in connection.execute(query)}

    def _held_by_others(self, annotator: str) -> sa.ColumnElement[bool]:
        lease, now = leases.c, self.database.now_text()
        return sa.exists().where(
            lease.item_id == items.c.id, lease.annotator != annotator, lease.expires_at > now
        )

    def annotators(self) -> list[str]:
        """Return the names of everybody who answered, sorted."""
        with self.database.read() as connection:
            return sorted(connection.scalars(sa.select(answers.c.annotator).distinct()))


_Conditions = Callable[[sa.FromClause], list[sa.ColumnElement[bool]]]
_JOINED = items.outerjoin(batch_items, batch_items.c.item_id == items.c.id).outerjoin(
    predictions, predictions.c.item_id == items.c.id
)


def _review_items(
    connection: sa.Connection, conditions: Sequence[sa.ColumnElement[bool]], first: int, count: int
) -> list[ReviewItem]:
    b, i, p = batch_items.c, items.c, predictions.c
    query = (
        sa.select(
            i.id, i.key, i.kind, i.content, b.round, b.rank, b.role,
            p.label, p.probability, p.predicted_at,
        )
        .select_from(_JOINED)
        .where(*conditions)
        .order_by(i.id)
        .offset(first)
        .limit(count)
    )  # fmt: skip
    names = class_history(connection)
    rows = connection.execute(query).all()
    votes = _votes(connection, names, [row.id for row in rows])
    return [_review_item(row, votes.get(row.id, []), names) for row in rows]


def _conditions(wanted: ItemFilter, names: ClassHistory) -> list[sa.ColumnElement[bool]]:
    """Return the conditions on items; those on answers look up the index of answers by item."""
    found: list[sa.ColumnElement[bool]] = []
    if wanted.text.strip():
        text = wanted.text.strip()
        found.append(
            sa.or_(
                items.c.key.icontains(text, autoescape=True),
                items.c.content.icontains(text, autoescape=True),
            )
        )
    if wanted.round is not None:
        found.append(batch_items.c.round == wanted.round)

    def given(a: sa.FromClause) -> list[sa.ColumnElement[bool]]:
        own = [] if wanted.annotator is None else [a.c.annotator == wanted.annotator]
        return own + ([] if wanted.label is None else [_present_label(a, names) == wanted.label])

    if wanted.annotator is not None or wanted.label is not None:
        found.append(_answered(given))
    if wanted.label is not None and wanted.annotator is None:
        found.append(~_answered(lambda a: [_decides(a), _is_other(a, names, wanted.label)]))
    return found + _states(names)[wanted.shown]


def _states(names: ClassHistory) -> dict[str, list[sa.ColumnElement[bool]]]:
    guess = _present_guess(names)
    other = answers.alias()
    return {
        "all": [],
        "labeled": [_answered(lambda a: [a.c.action == LABEL])],
        "unlabeled": [~_answered(lambda a: [])],
        "skipped": [_answered(lambda a: [a.c.action == SKIP])],
        "decided": [_answered(lambda a: [_decides(a)])],
        "disputed": [
            _answered(
                lambda a: [
                    sa.exists().where(
                        other.c.item_id == a.c.item_id,
                        _present_label(other, names) != _present_label(a, names),
                        is_current_now(other),
                    )
                ]
            ),
            ~_answered(lambda a: [_decides(a)]),
        ],
        "model": [guess.is_not(None), _answered(lambda a: [_present_label(a, names) != guess])],
    }


def _answered(conditions: _Conditions) -> sa.ColumnElement[bool]:
    """Return the condition that an item has a current answer with these conditions."""
    a = answers.alias()
    return sa.exists().where(a.c.item_id == items.c.id, *conditions(a), is_current_now(a))


def _decides(given: sa.FromClause) -> sa.ColumnElement[bool]:
    return sa.exists().where(decisions.c.answer_id == given.c.id)


def _is_other(
    given: sa.FromClause, names: ClassHistory, label: str | None
) -> sa.ColumnElement[bool]:
    return sa.or_(given.c.label.is_(None), _present_label(given, names) != label)


def _present_label(given: sa.FromClause, names: ClassHistory) -> sa.ColumnElement[Any]:
    """Return what the label of an answer is called now."""
    ends = [each.after_answer for each in names.changes]
    return _present(given.c.label, given.c.id, ends, names, names.present_name)


def _present_guess(names: ClassHistory) -> sa.ColumnElement[Any]:
    """Return what the class that the latest model predicts for an item is called now."""
    ends = [each.recorded_at for each in names.changes]
    p = predictions.c
    return _present(p.label, p.predicted_at, ends, names, names.present_name_since)


def _present(
    label: sa.ColumnElement[Any],
    moment: sa.ColumnElement[Any],
    ends: Iterable[Any],
    names: ClassHistory,
    present_name: Callable[[str, Any], str | None],
) -> sa.ColumnElement[Any]:
    """Return the present name of a label of some moment: until each end, names meant the same."""
    earlier = sorted({each.name for each in names.changes})
    cases = [
        (sa.and_(moment <= end, label == name), present_name(name, end))
        for end in sorted(set(ends))
        for name in earlier
    ]
    return sa.case(*cases, else_=label) if cases else label


def _votes(
    connection: sa.Connection, names: ClassHistory, rows: Sequence[int]
) -> dict[int, list[Vote]]:
    """Return the current answers to some items, the earliest first."""
    a = answers.alias()
    query = sa.select(
        a.c.item_id, a.c.annotator, a.c.label, _decides(a).label("decides"), a.c.id
    ).where(a.c.item_id.in_(rows), is_current_now(a))
    found: dict[int, list[Vote]] = {}
    for row in sorted(connection.execute(query), key=lambda row: row.id):
        vote = Vote(row.annotator, names.present_name(row.label, row.id), bool(row.decides))
        found.setdefault(row.item_id, []).append(vote)
    return found


def _review_item(row: Any, votes: Iterable[Vote], names: ClassHistory) -> ReviewItem:
    given = tuple(votes)
    guess = None
    if given and row.label is not None:
        label = names.present_name_since(row.label, row.predicted_at)
        guess = {"label": label, "probability": row.probability}
    return ReviewItem(
        item=row.key,
        kind=row.kind,
        content=row.content,
        round=row.round,
        rank=row.rank,
        role=row.role,
        label=settled_label(given),
        votes=given,
        guess=guess,
    )
