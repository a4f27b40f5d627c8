"""Store: everything that people and the engine did, as rows of a database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from sabal.errors import FileError
from sabal.labeling.settings import Settings
from sabal.labeling.store import answers, imports, items, leases, people, rounds, schema, standing
from sabal.labeling.store import curve as curves
from sabal.labeling.store import status as statuses
from sabal.labeling.store.connection import (
    Clock,
    Database,
    can_be_written,
    is_url,
    utc_now,
)
from sabal.labeling.store.migrations import migrate
from sabal.labeling.store.records import (
    Advice,
    Agreement,
    Answer,
    BatchItem,
    Chosen,
    CurvePoint,
    ImportedLabel,
    ImportReport,
    Item,
    LabelRow,
    Leased,
    Lesson,
    Pace,
    Round,
    Status,
    Submission,
    Training,
)


class Store:
    """One project's database. Every method is one short transaction; threads may share it."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self.settings = settings

    @classmethod
    def open(
        cls,
        url_or_path: str | Path,
        settings: Settings | None = None,
        *,
        clock: Clock = utc_now,
        to_read: bool = False,
    ) -> Store:
        """Open a database, and bring its tables up to date.

        With `settings` it is made if it is not there, and they are recorded in it if they are new;
        without, the latest recorded ones hold.
        to_read: nothing will be written, so that it need not be possible.
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
        """Let go of the database."""
        self.database.close()

    # What people do.

    def submit(self, submission: Submission) -> Answer:
        """Store an answer durably; the same submission again returns the first and does nothing."""
        return answers.submit(self.database, self.settings, submission)

    def replaced(self, answer: Answer) -> Answer | None:
        """What the same person had said of that item before; None if nothing that stood."""
        with self.database.read() as connection:
            return answers.replaced(connection, answer)

    def undo(self, annotator: str, submission: str) -> Answer | None:
        """Undo a person's latest standing answer; None if there is none. Idempotent by its id."""
        return answers.undo(self.database, self.settings, annotator, submission)

    def next(self, annotator: str, count: int) -> list[Leased]:
        """Items to answer, leased to that person: what they hold first, then by round and rank."""
        answers.check_name(annotator, "annotator")
        return leases.next_items(self.database, self.settings, annotator, count)

    def import_labels(self, rows: Iterable[ImportedLabel]) -> ImportReport:
        """Append labels from elsewhere; importing a file twice adds nothing."""
        return imports.import_labels(self.database, self.settings, rows)

    # What pages and exports read.

    def status(self) -> Status:
        """Where the project is."""
        with self.database.read() as connection:
            return statuses.status(connection, self.settings)

    def labels(self, until: int | None = None) -> list[LabelRow]:
        """Labels that stand, in the order given; `until` an answer's id: that stood then."""
        with self.database.read() as connection:
            return statuses.label_rows(connection, until=until)

    def skipped(self, until: int | None = None) -> list[LabelRow]:
        """Skips that stand, in the order given."""
        with self.database.read() as connection:
            return statuses.label_rows(connection, skipped=True, until=until)

    def history(self) -> list[Answer]:
        """Every answer in the order they came, undone ones too."""
        with self.database.read() as connection:
            return answers.history(connection)

    def batch(self, round: int | None = None) -> list[BatchItem]:
        """The items of a round by rank; of the latest one if none is named."""
        with self.database.read() as connection:
            number = rounds.latest_round(connection) if round is None else round
            return [] if number is None else rounds.batch(connection, number)

    def why(self, key: str) -> dict[str, Any]:
        """Why an item was chosen, with what the model guessed then; empty for one that was not."""
        with self.database.read() as connection:
            return rounds.why(connection, key)

    def curve(self) -> list[CurvePoint]:
        """The accuracy of every training on the check labels of its day."""
        with self.database.read() as connection:
            return curves.curve(connection)

    def advice(self) -> Advice:
        """Whether more labels still help."""
        return curves.advice(self.curve())

    def class_balance(self) -> dict[str, int]:
        """How many labelled items each class has."""
        labels = [lesson.label for lesson in self.lessons()]
        return people.class_balance(labels, self.settings.classes)

    def pace(self) -> Pace:
        """How fast people label."""
        return people.pace(self.history())

    def agreement(self) -> Agreement | None:
        """How far people agree; None unless two of them labelled the same items."""
        return people.agreement(self.labels())

    def item(self, key: str) -> Item:
        """The item of a key."""
        with self.database.read() as connection:
            return items.item_of(connection, key)

    def items(self) -> list[Item]:
        """The whole pool, by row."""
        with self.database.read() as connection:
            return items.all_items(connection)

    def rounds(self) -> list[Round]:
        """Every selection, imported ones first."""
        with self.database.read() as connection:
            return rounds.all_rounds(connection)

    def trainings(self) -> list[Training]:
        """Every training, in order."""
        with self.database.read() as connection:
            return rounds.all_trainings(connection)

    # What the engine reads and writes.

    def lessons(self, until: int | None = None) -> list[Lesson]:
        """What people say of every labelled item together, in the order the items were chosen."""
        with self.database.read() as connection:
            return standing.lessons(connection, until)

    def last_answer(self) -> int:
        """The id of the latest answer; 0 before the first."""
        with self.database.read() as connection:
            return answers.last_answer(connection)

    def counts(self, round: int | None = None) -> dict[str, int]:
        """How many items were chosen, labelled, skipped, and are open; in all or in one round."""
        with self.database.read() as connection:
            return statuses.count_answers(connection, self.settings.overlap, round)

    def chosen(self) -> set[int]:
        """The rows of all items that are in a batch."""
        with self.database.read() as connection:
            return set(connection.scalars(sa.select(schema.batch_items.c.item_id)))

    def add_items(self, rows: Iterable[Item]) -> int:
        """Add the items of the pool; returns how many."""
        with self.database.write() as connection:
            return items.add_items(connection, rows)

    def add_round(
        self,
        number: int,
        chosen: Sequence[Chosen],
        *,
        strategy: str,
        seed: int | None = None,
        evidence: Mapping[str, Any] | None = None,
        seconds: float = 0.0,
        training_id: int | None = None,
    ) -> bool:
        """Add a round and its batch, in the order of their ranks from 1; False if it is there."""
        return rounds.add_round(
            self.database,
            number,
            chosen,
            strategy=strategy,
            seed=seed,
            evidence=evidence or {},
            seconds=seconds,
            training_id=training_id,
        )

    def add_training(self, round: int, labels: int, last_answer: int) -> int:
        """Record that a training begins; returns its id."""
        return rounds.add_training(self.database, round, labels, last_answer)

    def finish_training(
        self,
        training_id: int,
        *,
        seconds: float,
        model: str | None = None,
        metrics: Mapping[str, float] | None = None,
        error: str | None = None,
    ) -> None:
        """Record how a training ended; `model` is the name of its file."""
        rounds.finish_training(
            self.database,
            training_id,
            seconds=seconds,
            model=model,
            metrics=metrics or {},
            error=error,
        )

    def set_state(self, state: str, progress: float = 1.0, error: str | None = None) -> None:
        """Say what the worker does now."""
        rounds.set_state(self.database, state, progress, error)


def _recorded(database: Database, given: Settings | None) -> Settings:
    """The settings that hold; those that are new are added to the ones before."""
    s = schema.settings
    latest = sa.select(s.c.content).order_by(s.c.id.desc()).limit(1)
    with database.read() as connection:
        stored = connection.scalar(latest)
    if given is None:
        if stored is None:
            raise FileError("the settings of a project", "none", "run `sabal init` first")
        return Settings.from_dict(stored)
    if not database.read_only and (stored is None or Settings.from_dict(stored) != given):
        with database.write() as connection:
            connection.execute(
                s.insert().values(content=given.as_dict(), recorded_at=database.now_text())
            )
    return given
