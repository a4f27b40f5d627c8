"""Trainings, the state of the worker, and the learning curve on the check labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from sabal.errors import InputError
from sabal.labeling.store import schema
from sabal.labeling.store.records import Advice, CurvePoint, TrainingRecord
from sabal.labeling.store.store_base import StoreBase

STATES = ("idle", "features", "training", "choosing", "waiting", "failed")
SPAN = 3  # the last point of the curve is compared with the one this many trainings earlier
MIN_CHECKS = 10
NEGLIGIBLE = 0.02  # a gain in accuracy that does not justify the labels of `SPAN` batches


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

    def advice(self) -> Advice:
        """Return whether more labels still help."""
        return advice_on(self.curve())


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


def difference_interval(before: CurvePoint, after: CurvePoint) -> tuple[float, float]:
    """Return the 95 % interval of the gain between two points.

    Newcombe's hybrid of the two score intervals (Statistics in Medicine 17, 1998). It assumes
    independent samples. The points share check items, so the true interval is rather narrower.
    """
    gain = after.accuracy - before.accuracy
    down = math.hypot(after.accuracy - after.low, before.high - before.accuracy)
    up = math.hypot(after.high - after.accuracy, before.accuracy - before.low)
    return gain - down, gain + up


def advice_on(points: Sequence[CurvePoint]) -> Advice:
    """Return whether more labels still help, as far as the interval of the gain allows."""
    if len(points) <= SPAN or min(points[-1].checks, points[-1 - SPAN].checks) < MIN_CHECKS:
        return Advice(
            "too-early",
            "Too early to say whether more labels help: there are few trainings or few check "
            "labels to measure them on.",
        )
    before, after = points[-1 - SPAN], points[-1]
    low, high = difference_interval(before, after)
    labels = after.labels - before.labels
    gain = f"{100 * (after.accuracy - before.accuracy):+.1f} points of accuracy"
    interval = f"95 % interval {100 * low:+.1f} to {100 * high:+.1f}, on {after.checks} checks"
    summary = f"The last {labels} labels brought {gain} ({interval})."
    if low > 0:
        return Advice("helping", f"{summary} More labels still help.")
    if high < NEGLIGIBLE:
        return Advice(
            "not-helping",
            f"{summary} More labels of this kind hardly help: as many again would "
            f"bring less than {100 * NEGLIGIBLE:.0f} points.",
        )
    return Advice(
        "unclear", f"{summary} That may be chance: whether more labels help cannot be told yet."
    )
