"""Answers: submitting and undoing them, and the history of both."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from sabal.errors import InputError, UnknownNameError, did_you_mean
from sabal.labeling.store import leases, schema
from sabal.labeling.store.class_history import class_history, current_classes
from sabal.labeling.store.current_answers import is_current_now, is_decision
from sabal.labeling.store.database import Database
from sabal.labeling.store.records import LABEL, SKIP, UNDO, Answer, Submission, check_name
from sabal.labeling.store.store_base import StoreBase


class UnknownClassError(UnknownNameError):
    """A label that is not a class of the project."""


class AnswerStore(StoreBase):
    """The part of the store that holds the answers of people."""

    def submit(self, given: Submission) -> Answer:
        """Store a label or a skip durably; the same submission again returns the stored answer."""
        return self._submit(given, decides=False)

    def decide(self, given: Submission) -> Answer:
        """Store an answer that settles the label of an item, also one that others have answered.

        It replaces an earlier decision of anybody. What people answered stays, and applies again
        if the decision is undone.
        """
        return self._submit(given, decides=True)

    def _submit(self, given: Submission, *, decides: bool) -> Answer:
        _check(given)
        action = SKIP if given.skip else LABEL
        with self.database.write() as connection:
            label = present_class(connection, given.label)
            first = _submitted(connection, given.submission)
            if first is not None:
                same = (first.annotator, first.item, first.action, first.label, first.decides)
                sent = (given.annotator, given.item, action, label, decides)
                return _repeated(first, same == sent)
            item_id, number = _row_and_round(connection, given.item)
            if decides:
                undo_decisions(connection, self.database, item_id, given.annotator)
            else:
                self._check_open(connection, item_id, given)
            values = {
                "submission": given.submission,
                "annotator": given.annotator,
                "item_id": item_id,
                "round": number,
                "action": action,
                "label": label,
                "seconds": given.seconds,
                "answered_at": self.database.now_text(),
            }
            connection.execute(schema.answers.insert().values(values))
            if decides:
                mark_decisions(connection, [given.submission])
            leases.end_lease(connection, item_id, given.annotator)
            return _stored(connection, given.submission)

    def undo(self, annotator: str, submission: str) -> Answer | None:
        """Undo the latest current answer of a person, and lease its item to them again.

        Return the undo as it is stored, or None if the person has no current answer. The same
        submission again returns the stored undo.
        """
        check_name(annotator, "annotator")
        check_name(submission, "submission")
        with self.database.write() as connection:
            first = _submitted(connection, submission)
            if first is not None:
                return _repeated(first, (first.annotator, first.action) == (annotator, UNDO))
            last = connection.execute(
                sa.select(schema.answers)
                .where(schema.answers.c.annotator == annotator, is_current_now(schema.answers))
                .order_by(schema.answers.c.id.desc())
                .limit(1)
            ).one_or_none()
            if last is None:
                return None
            now = self.database.clock()
            values = {
                "submission": submission,
                "annotator": annotator,
                "item_id": last.item_id,
                "round": last.round,
                "action": UNDO,
                "undoes": last.id,
                "answered_at": self.database.now_text(),
            }
            connection.execute(schema.answers.insert().values(values))
            until = now + timedelta(seconds=self.settings.lease_seconds)
            leases.add_lease(connection, last.item_id, annotator, last.round, now, until)
            return _stored(connection, submission)

    def replaced(self, answer: Answer) -> Answer | None:
        """Return the same person's previous answer to the item, if it was current until then."""
        a = schema.answers
        with self.database.read() as connection:
            own = _answers(
                connection, schema.items.c.key == answer.item, a.c.annotator == answer.annotator
            )
        current: Answer | None = None
        # Sorted here: with ORDER BY, SQLite would walk through all answers of that person.
        for each in sorted(own, key=lambda given: given.id):
            if each.id == answer.id:
                break
            current = None if each.action == UNDO else each
        return current

    def history(self) -> list[Answer]:
        """Return all answers in the order of submission, including undone ones."""
        with self.database.read() as connection:
            return sorted(_answers(connection), key=lambda given: given.id)

    def history_of(self, key: str) -> list[Answer]:
        """Return all answers to an item in the order of submission, including undone ones."""
        with self.database.read() as connection:
            return sorted(
                _answers(connection, schema.items.c.key == key), key=lambda given: given.id
            )

    def last_answer(self) -> int:
        """Return the id of the latest answer, or 0 if there is none."""
        with self.database.read() as connection:
            return int(connection.scalar(sa.select(sa.func.max(schema.answers.c.id))) or 0)

    def _check_open(self, connection: sa.Connection, item_id: int, given: Submission) -> None:
        """Refuse an answer that comes after a lease expired, when enough others have answered."""
        a = schema.answers
        others = sa.select(sa.func.count()).where(
            a.c.item_id == item_id, a.c.annotator != given.annotator, is_current_now(a)
        )
        if int(connection.scalar(others) or 0) >= self.settings.overlap:
            raise InputError(
                "an item that is still open",
                f"{given.item!r}, which others have answered in the meantime",
                "go on with the next item",
            )


def mark_decisions(connection: sa.Connection, submissions: Iterable[str]) -> None:
    """Record that stored answers decide the labels of their items."""
    a = schema.answers
    for submission in submissions:
        stored = sa.select(a.c.id).where(a.c.submission == submission)
        connection.execute(schema.decisions.insert().from_select(["answer_id"], stored))


def undo_decisions(
    connection: sa.Connection, database: Database, item_id: int, annotator: str
) -> None:
    """Undo what others than `annotator` decided on an item, so that it has one decision at most."""
    a = schema.answers
    earlier = sa.select(a.c.id, a.c.round).where(
        a.c.item_id == item_id, a.c.annotator != annotator, is_current_now(a), is_decision()
    )
    for row in connection.execute(earlier).all():
        values = {
            "submission": str(uuid.uuid4()),
            "annotator": annotator,
            "item_id": item_id,
            "round": row.round,
            "action": UNDO,
            "undoes": row.id,
            "answered_at": database.now_text(),
        }
        connection.execute(a.insert().values(values))


def present_class(connection: sa.Connection, label: str | None) -> str | None:
    """Return the present name of a label, which may be an earlier one; refuse any other.

    A page that was opened before a class was renamed sends the earlier name.
    """
    classes = current_classes(connection)
    if label is None or label in classes:
        return label
    present = class_history(connection).present_name(label)
    if present not in classes:
        raise UnknownClassError(
            f"a class out of {', '.join(classes)}", repr(label), did_you_mean(label, classes)
        )
    return present


def _check(given: Submission) -> None:
    check_name(given.submission, "submission")
    check_name(given.annotator, "annotator")
    if given.skip != (given.label is None):
        got = "both" if given.skip else "neither"
        raise InputError("either a label or a skip", got, "send one of them")
    seconds = given.seconds
    if seconds is not None and not (math.isfinite(seconds) and seconds >= 0):
        raise InputError("`seconds` of at least 0", str(seconds), "leave it out")


def _row_and_round(connection: sa.Connection, key: str) -> tuple[int, int]:
    """Return the row of an item and the round that it was chosen in."""
    i, b = schema.items, schema.batch_items
    found = connection.execute(
        sa.select(i.c.id, b.c.round)
        .select_from(i.outerjoin(b, b.c.item_id == i.c.id))
        .where(i.c.key == key)
    ).one_or_none()
    if found is None:
        raise UnknownNameError("the id of an item of this project", repr(key), "check the id")
    if found.round is None:
        raise InputError(
            "an item of a batch", f"{key!r}, which was not chosen", "ask for the next items"
        )
    return int(found.id), int(found.round)


def _repeated(first: Answer, same: bool) -> Answer:
    """Return the answer stored under a submission id, which must have the same content."""
    if not same:
        raise InputError(
            "an id of its own for every submission",
            f"{first.submission!r} again, with other content",
            "make a new id",
        )
    return first


def _submitted(connection: sa.Connection, submission: str) -> Answer | None:
    found = _answers(connection, schema.answers.c.submission == submission)
    return found[0] if found else None


def _stored(connection: sa.Connection, submission: str) -> Answer:
    found = _submitted(connection, submission)
    if found is None:
        raise RuntimeError("an answer that was just stored is missing")
    return found


def _answers(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Answer]:
    a = schema.answers
    query: sa.Select[Any] = sa.select(
        a.c.id, a.c.submission, a.c.annotator, schema.items.c.key, a.c.round, a.c.action,
        a.c.label, a.c.undoes, a.c.answered_at, is_decision(), a.c.seconds,
    ).join(schema.items, schema.items.c.id == a.c.item_id)  # fmt: skip
    names = class_history(connection)
    found = (Answer(*row) for row in connection.execute(query.where(*conditions)))
    return [replace(each, label=names.present_name(each.label, each.id)) for each in found]
