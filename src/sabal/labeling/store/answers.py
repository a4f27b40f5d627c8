"""Answers: submitting, undoing, and the history of both."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from sabal.errors import InputError, UnknownNameError, did_you_mean
from sabal.labeling.settings import Settings
from sabal.labeling.store import leases, schema
from sabal.labeling.store.connection import Database
from sabal.labeling.store.items import item_of
from sabal.labeling.store.records import LABEL, SKIP, UNDO, Answer, Submission
from sabal.labeling.store.standing import stands

LONGEST_NAME = 200


class UnknownClassError(UnknownNameError):
    """A label that is no class of the project."""


def submit(database: Database, settings: Settings, given: Submission) -> Answer:
    """Store an answer, once; returns when it is durable."""
    _check(given, settings)
    action = SKIP if given.skip else LABEL
    with database.write() as connection:
        first = _submitted(connection, given.submission)
        if first is not None:
            same = (first.annotator, first.item, first.action, first.label)
            return _repeated(first, same == (given.annotator, given.item, action, given.label))
        item = item_of(connection, given.item)
        _check_open(connection, settings, item.id, given)
        values = {
            "submission": given.submission,
            "annotator": given.annotator,
            "item_id": item.id,
            "round": _round_of(connection, item.id, item.key),
            "action": action,
            "label": given.label,
            "seconds": given.seconds,
            "answered_at": database.now_text(),
        }
        connection.execute(schema.answers.insert().values(values))
        leases.give_back(connection, item.id, given.annotator)
        return _stored(connection, given.submission)


def undo(database: Database, settings: Settings, annotator: str, submission: str) -> Answer | None:
    """Undo the latest standing answer of a person, and lease the item to them again."""
    check_name(annotator, "annotator")
    check_name(submission, "submission")
    with database.write() as connection:
        first = _submitted(connection, submission)
        if first is not None:
            return _repeated(first, (first.annotator, first.action) == (annotator, UNDO))
        last = connection.execute(
            sa.select(schema.answers)
            .where(schema.answers.c.annotator == annotator, stands())
            .order_by(schema.answers.c.id.desc())
            .limit(1)
        ).one_or_none()
        if last is None:
            return None
        now = database.clock()
        values = {
            "submission": submission,
            "annotator": annotator,
            "item_id": last.item_id,
            "round": last.round,
            "action": UNDO,
            "undoes": last.id,
            "answered_at": database.now_text(),
        }
        connection.execute(schema.answers.insert().values(values))
        until = now + timedelta(seconds=settings.lease_seconds)
        leases.take(connection, last.item_id, annotator, last.round, now, until)
        return _stored(connection, submission)


def replaced(connection: sa.Connection, by: Answer) -> Answer | None:
    """What the same person had said of the same item, and stood until `by` came in."""
    a = schema.answers
    own = _answers(
        connection,
        lambda query: query.where(schema.items.c.key == by.item, a.c.annotator == by.annotator),
    )
    stood: Answer | None = None
    # Sorted here: asked for in order, SQLite would walk through all answers of that person.
    for each in sorted(own, key=lambda answer: answer.id):
        if each.id == by.id:
            break
        stood = None if each.action == UNDO else each
    return stood


def history(connection: sa.Connection) -> list[Answer]:
    """Every answer, in the order they came."""
    return _answers(connection, lambda query: query.order_by(schema.answers.c.id))


def last_answer(connection: sa.Connection) -> int:
    """The id of the latest answer; 0 before the first."""
    return int(connection.scalar(sa.select(sa.func.max(schema.answers.c.id))) or 0)


def check_class(label: str | None, settings: Settings) -> None:
    """Refuse a label that is no class of the project."""
    if label not in settings.classes:
        raise UnknownClassError(
            f"a class out of {', '.join(settings.classes)}",
            repr(label),
            did_you_mean(str(label), settings.classes),
        )


def check_name(value: Any, name: str) -> None:
    """A text of a reasonable length."""
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_NAME:
        got = f"{len(value)} characters" if isinstance(value, str) else type(value).__name__
        raise InputError(
            f"`{name}` as a text of 1 to {LONGEST_NAME} characters", got, f"give a {name}"
        )


def _check(given: Submission, settings: Settings) -> None:
    check_name(given.submission, "submission")
    check_name(given.annotator, "annotator")
    if given.skip != (given.label is None):
        got = "both" if given.skip else "neither"
        raise InputError("either a label or a skip", got, "send one of them")
    if given.label is not None:
        check_class(given.label, settings)
    seconds = given.seconds
    if seconds is not None and not (math.isfinite(seconds) and seconds >= 0):
        raise InputError("`seconds` of at least 0", str(seconds), "leave it out")


def _check_open(connection: sa.Connection, settings: Settings, row: int, given: Submission) -> None:
    """Refuse an answer to an item that enough other people have answered.

    It comes from somebody whose lease ran out: the item went to another person, who was quicker.
    """
    a = schema.answers
    others = sa.select(sa.func.count()).where(
        a.c.item_id == row, a.c.annotator != given.annotator, stands()
    )
    if int(connection.scalar(others) or 0) >= settings.overlap:
        raise InputError(
            "an item that is still open",
            f"{given.item!r}, which others have answered in the meantime",
            "go on with the next item",
        )


def _round_of(connection: sa.Connection, row: int, key: str) -> int:
    query = sa.select(schema.batch_items.c.round).where(schema.batch_items.c.item_id == row)
    found = connection.scalar(query)
    if found is None:
        raise InputError(
            "an item of a batch", f"{key!r}, which was not chosen", "ask for the next items"
        )
    return int(found)


def _repeated(first: Answer, same: bool) -> Answer:
    """The answer that a submission id stands for already, if it is the same."""
    if not same:
        raise InputError(
            "an id of its own for every submission",
            f"{first.submission!r} again, with other content",
            "make a new id",
        )
    return first


def _submitted(connection: sa.Connection, submission: str) -> Answer | None:
    found = _answers(
        connection, lambda query: query.where(schema.answers.c.submission == submission)
    )
    return found[0] if found else None


def _stored(connection: sa.Connection, submission: str) -> Answer:
    found = _submitted(connection, submission)
    if found is None:
        raise RuntimeError("an answer that was just stored is not there")
    return found


def _answers(
    connection: sa.Connection, narrowed: Callable[[sa.Select[Any]], sa.Select[Any]]
) -> list[Answer]:
    a = schema.answers
    query = sa.select(
        a.c.id, a.c.submission, a.c.annotator, schema.items.c.key, a.c.round, a.c.action,
        a.c.label, a.c.undoes, a.c.answered_at, a.c.seconds,
    ).join(schema.items, schema.items.c.id == a.c.item_id)  # fmt: skip
    return [Answer(*row) for row in connection.execute(narrowed(query))]
