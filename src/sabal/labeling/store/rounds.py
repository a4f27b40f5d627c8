"""Rounds, trainings and the state of the worker: what the engine writes, and reads again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from sabal.errors import InputError
from sabal.labeling.store import schema
from sabal.labeling.store.connection import Database
from sabal.labeling.store.records import LABEL, BatchItem, Chosen, Round, Training
from sabal.labeling.store.standing import majority, stands

STATES = ("idle", "features", "training", "choosing", "waiting", "failed")


def add_round(
    database: Database,
    number: int,
    chosen: Sequence[Chosen],
    *,
    strategy: str,
    seed: int | None,
    evidence: Mapping[str, Any],
    seconds: float,
    training_id: int | None,
) -> bool:
    """Add a round and its batch, both or neither; False if somebody else was quicker."""
    with database.write() as connection:
        if _is_taken(connection, number, {each.item for each in chosen}):
            return False
        values = {
            "number": number,
            "strategy": strategy,
            "seed": seed,
            "chosen_at": database.now_text(),
            "seconds": seconds,
            "evidence": plain(evidence),
            "training_id": training_id,
        }
        connection.execute(schema.rounds.insert().values(values))
        add_to_round(connection, number, chosen, 1)
        return True


def _is_taken(connection: sa.Connection, number: int, items: set[int]) -> bool:
    """Whether the round exists, or one of the items is in another."""
    r, b = schema.rounds.c, schema.batch_items.c
    exists = connection.scalar(sa.select(r.number).where(r.number == number))
    return exists is not None or not items.isdisjoint(connection.scalars(sa.select(b.item_id)))


def add_to_round(
    connection: sa.Connection, number: int, chosen: Sequence[Chosen], first_rank: int
) -> None:
    """Put items into a round that exists."""
    if not chosen:
        return
    rows = [
        {
            "round": number,
            "rank": rank,
            "item_id": each.item,
            "weight": float(each.weight),
            "score": float(each.score),
            "role": each.role,
            "why": plain(each.why),
        }
        for rank, each in enumerate(chosen, first_rank)
    ]
    connection.execute(schema.batch_items.insert(), rows)


def all_rounds(connection: sa.Connection) -> list[Round]:
    """Every selection, in order."""
    query = sa.select(schema.rounds).order_by(schema.rounds.c.number)
    return [Round(**row) for row in connection.execute(query).mappings()]


def latest_round(connection: sa.Connection) -> int | None:
    """The number of the latest batch that was chosen here."""
    query = sa.select(sa.func.max(schema.rounds.c.number)).where(schema.rounds.c.number >= 0)
    found: int | None = connection.scalar(query)
    return found


def batch(connection: sa.Connection, number: int) -> list[BatchItem]:
    """The items of a round by rank, with what people said of them."""
    b, i, a = schema.batch_items, schema.items, schema.answers
    said: dict[int, list[sa.Row]] = {}
    for row in connection.execute(
        sa.select(a.c.item_id, a.c.annotator, a.c.action, a.c.label)
        .join(b, b.c.item_id == a.c.item_id)
        .where(b.c.round == number, stands())
        .order_by(a.c.id)
    ):
        said.setdefault(row.item_id, []).append(row)
    found = connection.execute(
        sa.select(b, i.c.key, i.c.kind, i.c.content)
        .join(i, i.c.id == b.c.item_id)
        .where(b.c.round == number)
        .order_by(b.c.rank)
    )
    return [
        BatchItem(
            item=row.key,
            kind=row.kind,
            content=row.content,
            rank=row.rank,
            round=row.round,
            weight=row.weight,
            score=row.score,
            role=row.role,
            why=row.why,
            label=majority(x.label for x in said.get(row.item_id, []) if x.action == LABEL),
            answered_by=tuple(x.annotator for x in said.get(row.item_id, [])),
        )
        for row in found
    ]


def why(connection: sa.Connection, key: str) -> dict[str, Any]:
    """Why an item was chosen; empty for one that was not."""
    query = (
        sa.select(schema.batch_items.c.why)
        .join(schema.items, schema.items.c.id == schema.batch_items.c.item_id)
        .where(schema.items.c.key == key)
    )
    return dict(connection.scalar(query) or {})


def add_training(database: Database, number: int, labels: int, last_answer: int) -> int:
    """Record that a training begins; returns its id."""
    with database.write() as connection:
        values = {
            "round": number,
            "labels": labels,
            "last_answer": last_answer,
            "started_at": database.now_text(),
        }
        t = schema.trainings
        return int(connection.execute(t.insert().values(values).returning(t.c.id)).scalar_one())


def finish_training(
    database: Database,
    training_id: int,
    *,
    seconds: float,
    model: str | None,
    metrics: Mapping[str, float],
    error: str | None,
) -> None:
    """Record how a training ended, once."""
    with database.write() as connection:
        ended = connection.execute(
            schema.trainings.update()
            .where(schema.trainings.c.id == training_id, schema.trainings.c.finished_at.is_(None))
            .values(finished_at=database.now_text(), seconds=seconds, model=model, error=error)
        )
        if ended.rowcount != 1:
            raise InputError("a training under way", f"training {training_id}", "begin another")
        rows = [
            {"training_id": training_id, "name": name, "value": float(value)}
            for name, value in metrics.items()
        ]
        if rows:
            connection.execute(schema.metrics.insert(), rows)


def all_trainings(connection: sa.Connection) -> list[Training]:
    """Every training, in order."""
    query = sa.select(schema.trainings).order_by(schema.trainings.c.id)
    return [Training(**row) for row in connection.execute(query).mappings()]


def all_metrics(connection: sa.Connection) -> dict[int, dict[str, float]]:
    """The metrics of every training that has some, by its id."""
    found: dict[int, dict[str, float]] = {}
    for training_id, name, value in connection.execute(sa.select(schema.metrics)):
        found.setdefault(training_id, {})[name] = value
    return found


def set_state(database: Database, state: str, progress: float, error: str | None) -> None:
    """Say what the worker does now; nothing is written if it was said already."""
    if state not in STATES:
        raise InputError(f"a state out of {', '.join(STATES)}", repr(state), "pick one of these")
    with database.read() as connection:
        if get_state(connection) == (state, progress, error):
            return
    with database.write() as connection:
        connection.execute(
            schema.states.insert().values(
                state=state, progress=progress, error=error, at=database.now_text()
            )
        )


def get_state(connection: sa.Connection) -> tuple[str, float, str | None]:
    """What the worker does: its state, the progress of the features, and what went wrong."""
    s = schema.states
    query = sa.select(s.c.state, s.c.progress, s.c.error).order_by(s.c.id.desc()).limit(1)
    found = connection.execute(query).one_or_none()
    return ("idle", 0.0, None) if found is None else (found.state, found.progress, found.error)


def plain(value: Any) -> Any:
    """`value` as JSON can say it: no arrays, and None for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
