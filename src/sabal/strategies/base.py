"""What a strategy is, and the few things that all of them do."""

from __future__ import annotations

import warnings as python_warnings
from typing import Any, ClassVar, Protocol

import numpy as np

from sabal.errors import InputError, SabalWarning
from sabal.pools.outputs import Outputs
from sabal.selection import Selection


class Strategy(Protocol):
    """Chooses a batch from what a model says of a pool.

    A strategy is a dataclass: its fields are its options. `needs` names the outputs it looks at
    ("a|b" where either will do), so that nothing else has to be computed. One that reads a pool
    a block at a time, wherever it is, says `streams = True`. One that looks at predictions of
    other losses than the softmax names all that it knows in `losses`.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    paper: ClassVar[str]
    cost: ClassVar[str]

    def select(self, outputs: Outputs, budget: int, rng: np.random.Generator) -> Selection:
        """Exactly `budget` distinct items."""


FROM = {"probs": "probs (or logits)"}
"""What else an output can be made from."""


def require(strategy: Strategy, outputs: Outputs) -> None:
    """Raise unless `outputs` has what `strategy` needs."""
    for need in strategy.needs:
        if not any(outputs.has(name) for name in need.split("|")):
            called = (outputs.loss.spread if name == "probs" else name for name in need.split("|"))
            names = " or ".join(FROM.get(name, name) for name in called)
            raise InputError(
                f"{names} for the strategy {strategy.name!r}",
                " and ".join(outputs.given()) or "neither features nor predictions",
                f"provide {names}, or choose a strategy that does without",
            )


def suits(strategy: Strategy | type[Strategy], loss: str) -> bool:
    """Whether `strategy` makes sense of predictions with this loss, or looks at none."""
    if loss in getattr(strategy, "losses", ("softmax",)):
        return True
    return all(need == "features" for need in strategy.needs)


class Named(Protocol):
    """Items with names: Outputs, or a pool elsewhere."""

    @property
    def ids(self) -> Any:
        """The names of the items, by row."""


def selection_of(
    strategy: Strategy,
    outputs: Named,
    indices: np.ndarray,
    scores: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    evidence: dict[str, Any] | None = None,
    warnings: tuple[str, ...] = (),
) -> Selection:
    """The answer of `strategy` in the terms of `outputs`; `warnings` are said aloud as well."""
    for message in warnings:
        python_warnings.warn(message, SabalWarning, stacklevel=3)
    return Selection(
        indices=np.asarray(indices, dtype=np.int64),
        ids=outputs.ids[indices],
        weights=np.ones(len(indices)) if weights is None else weights,
        scores=np.asarray(scores, dtype=np.float64),
        strategy=strategy.name,
        evidence={**(evidence or {}), "warnings": list(warnings)},
    )
