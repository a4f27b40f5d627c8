"""The classes of a project now, and what earlier names of them mean.

An answer keeps the label that was given. Renaming and merging classes are events; a label means
what the events after its answer have made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from sabal.labeling.store import schema
from sabal.labeling.store.records import ClassChange


class ClassHistory(NamedTuple):
    """The changes of the classes, in order."""

    changes: Sequence[ClassChange]

    def present_name(self, label: str | None, answer_id: int = 0) -> str | None:
        """Return the present name of a label that was given in an answer."""
        return _follow(label, (each for each in self.changes if each.after_answer >= answer_id))

    def present_name_since(self, label: str, time: str) -> str:
        """Return the present name of a class that was recorded at a time."""
        later = (each for each in self.changes if each.recorded_at >= time)
        return _follow(label, later) or label


def class_history(connection: sa.Connection) -> ClassHistory:
    """Return all changes of the classes."""
    query = sa.select(schema.class_changes).order_by(schema.class_changes.c.id)
    return ClassHistory([ClassChange(**row) for row in connection.execute(query).mappings()])


def current_classes(connection: sa.Connection) -> tuple[str, ...]:
    """Return the classes that are recorded last."""
    return tuple(recorded_settings(connection)["classes"])


def recorded_settings(connection: sa.Connection) -> dict[str, Any]:
    """Return the settings that are recorded last; empty in a new database."""
    s = schema.settings
    return connection.scalar(sa.select(s.c.content).order_by(s.c.id.desc()).limit(1)) or {}


def _follow(label: str | None, changes: Iterable[ClassChange]) -> str | None:
    for each in changes:
        if each.name == label and each.target is not None:
            label = each.target
    return label
