"""What a strategy is, and the few things that all of them do."""

from __future__ import annotations

import warnings as python_warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from sabal.errors import InputError, SabalWarning
from sabal.pools.pool import Pool
from sabal.selection import Selection

FROM = {"probs": "probs (or logits)"}
"""What else an array can be made from."""


class Strategy(ABC):
    """Chooses a batch from a pool.

    A strategy is a dataclass: its fields are its options.

    Attributes
    ----------
    name : str
        What it is asked for by.
    needs : tuple of str
        The arrays it looks at ("a|b" where either will do), so that nothing else is computed.
    paper, cost : str
        Where it comes from, and what it costs.
    streams : bool
        Whether it reads a pool through `Pool.map` and the like, wherever the pool is. A strategy
        that does not is given an `ArrayPool` with the arrays it needs in memory.
    losses : tuple of str
        The losses whose predictions it understands.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    paper: ClassVar[str]
    cost: ClassVar[str]
    streams: ClassVar[bool] = False
    losses: ClassVar[tuple[str, ...]] = ("softmax",)

    @abstractmethod
    def select(self, pool: Any, budget: int, rng: np.random.Generator) -> Selection:
        """Return exactly `budget` distinct items.

        Parameters
        ----------
        pool : Pool
            The pool; an `ArrayPool` for strategies that do not stream.
        budget : int
            The size of the batch.
        rng : numpy.random.Generator
            Decides every draw.
        """

    @classmethod
    def supports_loss(cls, loss: str) -> bool:
        """Return whether the strategy understands predictions of `loss`, or looks at none."""
        return loss in cls.losses or all(need == "features" for need in cls.needs)

    @classmethod
    def array_names(cls) -> set[str]:
        """Return the names of all arrays that the strategy may look at."""
        return {name for need in cls.needs for name in need.split("|")}

    def require(self, pool: Pool) -> None:
        """Refuse a pool without what the strategy needs."""
        for need in self.needs:
            if not any(pool.has(name) for name in need.split("|")):
                called = (
                    pool.prediction_type.dispersion_name if name == "probs" else name
                    for name in need.split("|")
                )
                names = " or ".join(FROM.get(name, name) for name in called)
                raise InputError(
                    f"{names} for the strategy {self.name!r}",
                    " and ".join(pool.given()) or "neither features nor predictions",
                    f"provide {names}, or choose a strategy that does without",
                )


def make_selection(
    strategy: Any,
    pool: Any,
    indices: np.ndarray,
    scores: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    evidence: dict[str, Any] | None = None,
    warnings: tuple[str, ...] = (),
) -> Selection:
    """Return the answer of `strategy` in the terms of `pool`; emit its `warnings` as well."""
    for message in warnings:
        python_warnings.warn(message, SabalWarning, stacklevel=3)
    return Selection(
        indices=np.asarray(indices, dtype=np.int64),
        ids=pool.ids[indices],
        weights=np.ones(len(indices)) if weights is None else weights,
        scores=np.asarray(scores, dtype=np.float64),
        strategy=strategy.name,
        evidence={**(evidence or {}), "warnings": list(warnings)},
    )


selection_of = make_selection
"""The name that strategies of other packages may know it by."""
