"""What of a batch may be told, and when: nothing that sways an answer before it is given."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from sabal.labeling.store import BatchItem, Leased, Store
from sabal.labeling.web.messages import BatchItemOut, Guess, NextItem

HARMLESS = ("uncertainty", "represents")
"""Reasons that say nothing about which class it is."""


def next_item(leased: Leased) -> NextItem:
    """A leased item as the page gets it."""
    return NextItem(id=leased.item, rank=leased.rank, round=leased.round, **shown(leased))


def shown(item: Leased | BatchItem) -> dict[str, Any]:
    """What a person looks at: a text, or the address of an image."""
    if item.kind == "image":
        return {"kind": item.kind, "url": f"/media/{quote(item.item, safe='')}"}
    return {"kind": item.kind, "content": item.content}


def batch_item(item: BatchItem, overlap: int) -> BatchItemOut:
    """An item of a batch, with its label and the whole reason once everyone asked has answered."""
    answered = len(item.answered_by) >= overlap
    why = item.why if answered else {k: v for k, v in item.why.items() if k in HARMLESS}
    return BatchItemOut(
        id=item.item,
        rank=item.rank,
        round=item.round,
        weight=item.weight,
        score=item.score,
        role=item.role,
        why=why,
        answered=answered,
        label=item.label if answered else None,
        **shown(item),
    )


def guess_of(store: Store, key: str) -> Guess | None:
    """What the model thought of an item when it chose it; None before there was a model."""
    guess = store.why(key).get("guess")
    return None if guess is None else Guess.model_validate(guess)
