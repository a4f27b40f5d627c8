"""The store: everything that people and the engine did, as rows of a database."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from sabal.errors import FileError
from sabal.labeling.store import schema
from sabal.labeling.store.batch_items import BatchStore
from sabal.labeling.store.database import Clock, Database, can_be_written, is_url, utc_now
from sabal.labeling.store.imports import ImportStore
from sabal.labeling.store.leases import LeaseStore
from sabal.labeling.store.migrations import migrate
from sabal.labeling.store.people import PeopleStore
from sabal.labeling.store.personal_links import PersonalLinkStore
from sabal.labeling.store.pool_items import PoolItemStore
from sabal.labeling.store.status import StatusStore
from sabal.labeling.store.store_base import StoreSettings
from sabal.labeling.store.trainings import TrainingStore


class Store(
    PoolItemStore,
    BatchStore,
    LeaseStore,
    PeopleStore,
    PersonalLinkStore,
    ImportStore,
    TrainingStore,
    StatusStore,
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
        stored = connection.scalar(sa.select(s.c.content).order_by(s.c.id.desc()).limit(1))
    if given is None:
        if stored is None:
            raise FileError("the settings of a project", "none", "run `sabal init` first")
        return StoreSettings.from_record(stored)
    if not database.read_only and stored != given.as_dict():
        with database.write() as connection:
            connection.execute(
                s.insert().values(content=given.as_dict(), recorded_at=database.now_text())
            )
    return given
