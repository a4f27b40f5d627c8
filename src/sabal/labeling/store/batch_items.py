"""Rounds of selection and the batches that they chose."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from sabal.labeling.store import schema
from sabal.labeling.store.class_history import ClassHistory, class_history
from sabal.labeling.store.current_answers import current_votes, settled_label
from sabal.labeling.store.pool_items import KEYS_PER_QUERY
from sabal.labeling.store.records import BatchItem, NewBatchItem, RoundRecord
from sabal.labeling.store.store_base import StoreBase


class BatchStore(StoreBase):
    """The part of the store that holds rounds and batches."""

    def add_round(
        self,
        number: int,
        items: Sequence[NewBatchItem],
        *,
        strategy: str,
        seed: int | None = None,
        evidence: Mapping[str, Any] | None = None,
        seconds: float = 0.0,
        training_id: int | None = None,
    ) -> bool:
        """Add a round and its batch; False if it, or an item in another round, exists already."""
        with self.database.write() as connection:
            if _is_taken(connection, number, [each.item for each in items]):
                return False
            values = {
                "number": number,
                "strategy": strategy,
                "seed": seed,
                "chosen_at": self.database.now_text(),
                "seconds": seconds,
                "evidence": to_json(evidence or {}),
                "training_id": training_id,
            }
            connection.execute(schema.rounds.insert().values(values))
            add_batch_items(connection, number, items, 1)
            return True

    def rounds(self) -> list[RoundRecord]:
        """Return all rounds in order; the imported one comes first."""
        query = sa.select(schema.rounds).order_by(schema.rounds.c.number)
        with self.database.read() as connection:
            return [RoundRecord(**row) for row in connection.execute(query).mappings()]

    def batch(self, round: int | None = None) -> list[BatchItem]:
        """Return the items of a round by rank, by default of the latest round."""
        with self.database.read() as connection:
            number = latest_round(connection) if round is None else round
            return [] if number is None else _batch(connection, number)

    def chosen_rows(self) -> set[int]:
        """Return the rows of all items that are in a batch."""
        with self.database.read() as connection:
            return set(connection.scalars(sa.select(schema.batch_items.c.item_id)))

    def reasons(self, key: str) -> dict[str, Any]:
        """Return why an item was chosen; empty for an item that was not."""
        b, i = schema.batch_items, schema.items
        query = (
            sa.select(b.c.why, schema.rounds.c.chosen_at)
            .join(i, i.c.id == b.c.item_id)
            .join(schema.rounds, schema.rounds.c.number == b.c.round)
            .where(i.c.key == key)
        )
        with self.database.read() as connection:
            found = connection.execute(query).one_or_none()
            names = class_history(connection)
        return {} if found is None else _with_present_names(found.why, names, found.chosen_at)


def add_batch_items(
    connection: sa.Connection, number: int, items: Sequence[NewBatchItem], first_rank: int
) -> None:
    """Add items to a round that exists."""
    if not items:
        return
    rows = [
        {
            "round": number,
            "rank": rank,
            "item_id": each.item,
            "weight": float(each.weight),
            "score": float(each.score),
            "role": each.role,
            "why": to_json(each.why),
        }
        for rank, each in enumerate(items, first_rank)
    ]
    connection.execute(schema.batch_items.insert(), rows)


def latest_round(connection: sa.Connection) -> int | None:
    """Return the number of the latest round that was chosen here."""
    query = sa.select(sa.func.max(schema.rounds.c.number)).where(schema.rounds.c.number >= 0)
    found: int | None = connection.scalar(query)
    return found


def to_json(value: Any) -> Any:
    """Return a value that JSON can represent: arrays as lists, and non-finite numbers as None."""
    if isinstance(value, Mapping):
        return {str(key): to_json(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return to_json(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(entry) for entry in value]
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _is_taken(connection: sa.Connection, number: int, items: Sequence[int]) -> bool:
    """Return whether the round exists, or one of the items is in another."""
    r, b = schema.rounds.c, schema.batch_items.c
    if connection.scalar(sa.select(r.number).where(r.number == number)) is not None:
        return True
    # By key: to read all batches would take a second if a million labels were imported.
    parts = (items[k : k + KEYS_PER_QUERY] for k in range(0, len(items), KEYS_PER_QUERY))
    return any(
        connection.scalar(sa.select(b.item_id).where(b.item_id.in_(part)).limit(1)) is not None
        for part in parts
    )


def _with_present_names(why: dict[str, Any], names: ClassHistory, time: str) -> dict[str, Any]:
    """Return reasons of a time in which classes have the names that they have now."""

    def renamed(entry: dict[str, Any]) -> dict[str, Any]:
        return {**entry, "label": names.present_name_since(entry["label"], time)}

    present = dict(why)
    if "guess" in present:
        present["guess"] = renamed(present["guess"])
    if "neighbours" in present:
        present["neighbours"] = [renamed(each) for each in present["neighbours"]]
    return present


def _batch(connection: sa.Connection, number: int) -> list[BatchItem]:
    b, i = schema.batch_items, schema.items
    of_round = sa.select(b.c.item_id).where(b.c.round == number)
    votes = current_votes(connection, None, schema.answers.c.item_id.in_(of_round))
    names, chosen_at = class_history(connection), schema.rounds.c.chosen_at
    time = connection.scalar(sa.select(chosen_at).where(schema.rounds.c.number == number)) or ""
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
            why=_with_present_names(row.why, names, time),
            label=settled_label(votes.get(row.item_id, ())),
            answered_by=tuple(vote.annotator for vote in votes.get(row.item_id, ())),
        )
        for row in found
    ]
