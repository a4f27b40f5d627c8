"""Numbered migrations from an empty database to the current tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import sqlalchemy as sa

from sabal.errors import FileError
from sabal.labeling.store import schema
from sabal.labeling.store.database import Database


class Migration(NamedTuple):
    """One step; neither its number nor what it does ever changes."""

    number: int
    name: str
    apply: Callable[[sa.Connection], None]


def _create(*tables: sa.Table) -> Callable[[sa.Connection], None]:
    return lambda connection: schema.metadata.create_all(connection, tables)


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        1,
        "first tables",
        _create(
            schema.settings, schema.items, schema.rounds, schema.batch_items, schema.answers,
            schema.leases, schema.trainings, schema.metrics, schema.states,
        ),
    ),
    Migration(2, "people and decisions", _create(schema.people, schema.decisions)),
    Migration(3, "changes of classes", _create(schema.class_changes, schema.guidelines)),
    Migration(4, "sources of added items", _create(schema.sources)),
    Migration(5, "assessments of models", _create(schema.assessments)),
    Migration(6, "other columns of items", _create(schema.item_details)),
    Migration(7, "claims of tasks", _create(schema.task_claims)),
    Migration(8, "predictions of the latest model", _create(schema.predictions)),
)  # fmt: skip


def migrate(database: Database) -> None:
    """Apply the migrations that are not recorded yet; refuse a database of a later version."""
    with database.read() as connection:
        applied = _applied(connection)
    if applied == {step.number for step in MIGRATIONS}:
        return
    if database.read_only and applied < {step.number for step in MIGRATIONS}:
        raise FileError(
            f"a database of version {MIGRATIONS[-1].number}, since {database.location} cannot be "
            "written",
            f"version {max(applied, default=0)}",
            "make a copy of the project that can be written, and use that",
        )
    with database.write() as connection:
        # Read again: another process may have migrated in the meantime.
        applied = _applied(connection)
        later = applied - {step.number for step in MIGRATIONS}
        if later:
            raise FileError(
                f"a database of at most version {MIGRATIONS[-1].number}",
                f"version {max(later)}",
                "install a newer sabal",
            )
        schema.migrations.create(connection, checkfirst=True)
        for step in MIGRATIONS:
            if step.number not in applied:
                step.apply(connection)
                connection.execute(
                    schema.migrations.insert().values(
                        number=step.number, name=step.name, applied_at=database.now_text()
                    )
                )


def _applied(connection: sa.Connection) -> set[int]:
    if not sa.inspect(connection).has_table("migrations"):
        return set()
    return set(connection.scalars(sa.select(schema.migrations.c.number)))
