"""The base class of strategies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from sabal.errors import InputError, warn
from sabal.pools.pool import Pool
from sabal.selection import Selection

FROM = {"probs": "probs (or logits)"}
"""Arrays that can be derived from others."""


class Strategy(ABC):
    """Chooses a batch from a pool.

    A strategy is a dataclass: its fields are its options.

    Attributes
    ----------
    name : str
        The name it is registered by.
    needs : tuple of str
        The arrays it uses ("a|b" for either), so that no others are computed.
    paper, cost : str
        Its source, and its computational cost.
    streams : bool
        Whether it uses only the protocol of `Pool` (`Pool.map` and others). Other strategies get
        an `ArrayPool` with the arrays they need in memory.
    losses : tuple of str
        The supported losses.
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
            The source of all random draws.
        """

    @classmethod
    def supports_loss(cls, loss: str) -> bool:
        """Return whether the strategy supports predictions of `loss`, or needs none."""
        return loss in cls.losses or all(need == "features" for need in cls.needs)

    @classmethod
    def array_names(cls) -> set[str]:
        """Return the names of all arrays that the strategy may use."""
        return {name for need in cls.needs for name in need.split("|")}

    def require(self, pool: Pool) -> None:
        """Raise if a pool lacks an array that the strategy needs."""
        for need in self.needs:
            if not any(pool.has(name) for name in need.split("|")):
                called = (
                    pool.prediction_type.dispersion_name if name == "probs" else name
                    for name in need.split("|")
                )
                derived = {} if "logits" in need else FROM
                names = " or ".join(derived.get(name, name) for name in called)
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
    """Return a Selection with the ids of `pool`, and issue `warnings`."""
    for message in warnings:
        warn(message)
    return Selection(
        indices=np.asarray(indices, dtype=np.int64),
        ids=pool.ids[indices],
        weights=np.ones(len(indices)) if weights is None else weights,
        scores=np.asarray(scores, dtype=np.float64),
        strategy=strategy.name,
        evidence={**(evidence or {}), "warnings": list(warnings)},
    )


selection_of = make_selection
"""The former name, which strategies of other packages may use."""
