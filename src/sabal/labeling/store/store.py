"""The store: everything that people and the engine did, as rows of a database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import sqlalchemy as sa

from sabal.errors import FileError
from sabal.labeling.store import schema
from sabal.labeling.store.batch_items import BatchStore
from sabal.labeling.store.class_history import current_classes, recorded_settings
from sabal.labeling.store.current_answers import current_votes
from sabal.labeling.store.database import Clock, Database, can_be_written, is_url, utc_now
from sabal.labeling.store.imports import ImportStore
from sabal.labeling.store.item_pages import ItemPageStore
from sabal.labeling.store.leases import LeaseStore
from sabal.labeling.store.migrations import migrate
from sabal.labeling.store.people import PeopleStore
from sabal.labeling.store.personal_links import PersonalLinkStore
from sabal.labeling.store.pool_items import PoolItemStore
from sabal.labeling.store.status import StatusStore
from sabal.labeling.store.store_base import StoreSettings
from sabal.labeling.store.task_claims import TaskClaimStore
from sabal.labeling.store.trainings import TrainingStore


class Store(
    PoolItemStore,
    BatchStore,
    LeaseStore,
    PeopleStore,
    PersonalLinkStore,
    ImportStore,
    ItemPageStore,
    TrainingStore,
    StatusStore,
    TaskClaimStore,
):
    """The database of one project; its parts are split by subject over the modules beside it."""

    @classmethod
    def open(
        cls,
        url_or_path: str | Path,
        settings: StoreSettings | None = None,
        *,
        clock: Clock = utc_now,
        to_read: bool = False,
    ) -> Store:
        """Open a database, migrate it to the current tables, and record settings that are new.

        Without settings the latest recorded ones apply, and the database has to exist. With
        `to_read` nothing is written, and permission to read is enough.
        """
        if settings is None and not is_url(url_or_path) and not Path(url_or_path).is_file():
            raise FileError("a database", f"no file at {url_or_path}", "run `sabal init` first")
        read_only = to_read and not can_be_written(url_or_path)
        database = Database(url_or_path, clock, read_only=read_only)
        try:
            migrate(database)
            return cls(database, _recorded(database, settings))
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Close the database."""
        self.database.close()


def _recorded(database: Database, given: StoreSettings | None) -> StoreSettings:
    """Return the settings that apply, after recording those that are new."""
    s = schema.settings
    with database.read() as connection:
        stored = recorded_settings(connection)
    if given is None:
        if not stored:
            raise FileError("the settings of a project", "none", "run `sabal init` first")
        return StoreSettings.from_record(stored)
    if stored:
        with database.read() as connection:
            _check_classes_agree(connection, given.classes)
    if not database.read_only and stored != given.as_dict():
        with database.write() as connection:
            connection.execute(
                s.insert().values(content=given.as_dict(), recorded_at=database.now_text())
            )
    return given


def _check_classes_agree(connection: sa.Connection, given: Sequence[str]) -> None:
    """Refuse settings with other classes than the store has, or without one that labels have."""
    votes = current_votes(connection).values()
    used = {vote.label for each in votes for vote in each if vote.label is not None}
    if lost := sorted(used - set(given)):
        raise FileError(
            "every class that labels have among the classes of sabal.toml",
            f"no {lost[0]!r}",
            f"add {lost[0]!r} there again; then `sabal classes` can rename or merge it",
        )
    recorded = current_classes(connection)
    expected = (*recorded, *sorted(used - set(recorded)))
    if set(given) != set(expected):
        # JSON is TOML here.
        line = json.dumps(expected, ensure_ascii=False)
        raise FileError(
            "the classes of the project in sabal.toml",
            json.dumps(list(given), ensure_ascii=False),
            f"set classes = {line} there, and change them with `sabal classes`",
        )
