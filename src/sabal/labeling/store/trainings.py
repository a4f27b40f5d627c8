"""Trainings, the state of the worker, and the learning curve on the check labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import sqlalchemy as sa

from sabal.errors import InputError
from sabal.labeling.store import schema
from sabal.labeling.store.records import Assessment, CurvePoint, TrainingRecord
from sabal.labeling.store.store_base import StoreBase

ROWS_PER_WRITE = 500  # so that an answer never waits long
STATES = ("idle", "features", "training", "choosing", "waiting", "failed")


class TrainingStore(StoreBase):
    """The part of the store that holds trainings and the state of the worker."""

    def add_training(self, round: int, labels: int, last_answer: int) -> int:
        """Record that a training begins, and return its id."""
        values = {
            "round": round,
            "labels": labels,
            "last_answer": last_answer,
            "started_at": self.database.now_text(),
        }
        t = schema.trainings
        with self.database.write() as connection:
            return int(connection.execute(t.insert().values(values).returning(t.c.id)).scalar_one())

    def finish_training(
        self,
        training_id: int,
        *,
        seconds: float,
        model: str | None = None,
        metrics: Mapping[str, float] | None = None,
        error: str | None = None,
    ) -> None:
        """Record once how a training ended; `model` is the name of its file."""
        t = schema.trainings
        with self.database.write() as connection:
            ended = connection.execute(
                t.update()
                .where(t.c.id == training_id, t.c.finished_at.is_(None))
                .values(
                    finished_at=self.database.now_text(), seconds=seconds, model=model, error=error
                )
            )
            if ended.rowcount != 1:
                raise InputError("a training under way", f"training {training_id}", "begin another")
            rows = [
                {"training_id": training_id, "name": name, "value": float(value)}
                for name, value in (metrics or {}).items()
            ]
            if rows:
                connection.execute(schema.metrics.insert(), rows)

    def unpredicted_rows(self, training_id: int) -> list[int]:
        """Return the rows of items in batches that the model of a training has not predicted."""
        b, p = schema.batch_items.c, schema.predictions.c
        predicted = sa.exists().where(p.item_id == b.item_id, p.training_id == training_id)
        query = sa.select(b.item_id).where(~predicted).order_by(b.item_id)
        with self.database.read() as connection:
            return list(connection.scalars(query))

    def set_predictions(
        self, training_id: int, time: str, predicted: Mapping[int, tuple[str, float]]
    ) -> None:
        """Replace what is predicted for some rows: classes, as they are called at `time`."""
        p, rows = schema.predictions, sorted(predicted)
        for start in range(0, len(rows), ROWS_PER_WRITE):
            some = rows[start : start + ROWS_PER_WRITE]
            with self.database.write() as connection:
                connection.execute(p.delete().where(p.c.item_id.in_(some)))
                values = {"training_id": training_id, "predicted_at": time}
                connection.execute(
                    p.insert(),
                    [
                        {**values, "item_id": row, "label": label, "probability": probability}
                        for row in some
                        for label, probability in [predicted[row]]
                    ],
                )

    def trainings(self) -> list[TrainingRecord]:
        """Return all trainings in order."""
        with self.database.read() as connection:
            return all_trainings(connection)

    def set_state(self, state: str, progress: float = 1.0, error: str | None = None) -> None:
        """Record what the worker is doing, unless that is the latest record already."""
        if state not in STATES:
            raise InputError(
                f"a state out of {', '.join(STATES)}", repr(state), "pick one of these"
            )
        with self.database.read() as connection:
            if get_state(connection) == (state, progress, error):
                return
        values = {"state": state, "progress": progress, "error": error}
        with self.database.write() as connection:
            connection.execute(schema.states.insert().values(**values, at=self.database.now_text()))

    def curve(self) -> list[CurvePoint]:
        """Return the learning curve: a point for every training that was measured."""
        with self.database.read() as connection:
            trainings, metrics = all_trainings(connection), all_metrics(connection)
        points = []
        for training in trainings:
            measured = metrics.get(training.id, {})
            if "accuracy" in measured:
                accuracy, checks = measured["accuracy"], int(measured["checks"])
                low, high = wilson_interval(accuracy, checks)
                points.append(
                    CurvePoint(training.round, training.labels, accuracy, low, high, checks)
                )
        return points

    def add_assessment(self, training_id: int, found: Assessment) -> None:
        """Record how the models up to a training predict the same items."""
        values = {"training_id": training_id, "content": asdict(found)}
        with self.database.write() as connection:
            known = sa.select(schema.assessments).where(
                schema.assessments.c.training_id == training_id
            )
            if connection.execute(known).first() is None:
                connection.execute(schema.assessments.insert().values(values))

    def latest_assessment(self) -> tuple[int, Assessment] | None:
        """Return the training that was assessed last, and the assessment."""
        t = schema.assessments
        with self.database.read() as connection:
            query = sa.select(t).order_by(t.c.training_id.desc()).limit(1)
            found = connection.execute(query).one_or_none()
        return None if found is None else (found.training_id, Assessment(**found.content))


def all_trainings(connection: sa.Connection) -> list[TrainingRecord]:
    """Return all trainings in order."""
    query = sa.select(schema.trainings).order_by(schema.trainings.c.id)
    return [TrainingRecord(**row) for row in connection.execute(query).mappings()]


def all_metrics(connection: sa.Connection) -> dict[int, dict[str, float]]:
    """Return the metrics of all trainings that have some, by the id of the training."""
    found: dict[int, dict[str, float]] = {}
    for training_id, name, value in connection.execute(sa.select(schema.metrics)):
        found.setdefault(training_id, {})[name] = value
    return found


def get_state(connection: sa.Connection) -> tuple[str, float, str | None]:
    """Return the worker's state, the progress of the features, and the error if it failed."""
    s = schema.states
    query = sa.select(s.c.state, s.c.progress, s.c.error).order_by(s.c.id.desc()).limit(1)
    found = connection.execute(query).one_or_none()
    return ("idle", 0.0, None) if found is None else (found.state, found.progress, found.error)


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a share of `count` items."""
    if count == 0:
        return 0.0, 1.0
    from scipy.stats import binomtest

    interval = binomtest(round(share * count), count).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)
