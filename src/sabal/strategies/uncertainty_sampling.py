"""Uncertainty sampling: the b items that the model is least certain of, scored independently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.pools.pool import Pool, count_equal
from sabal.selection import Selection
from sabal.strategies.base import Strategy, make_selection


@dataclass(frozen=True)
class UncertaintySampling(Strategy):
    """Ranks by an uncertainty of the prediction; the lower row comes first on ties.

    Scores that are given with the pool take the place of that uncertainty.
    """

    needs: ClassVar[tuple[str, ...]] = ("probs|scores",)
    cost: ClassVar[str] = "O(n C)"
    streams: ClassVar[bool] = True
    losses: ClassVar[tuple[str, ...]] = ("softmax", "sigmoid")

    def select(self, pool: Pool, budget: int, rng: np.random.Generator) -> Selection:
        """Return the top b by the scores, or by the uncertainty that has the strategy's name."""
        kind = None if pool.has("scores") else self.name
        top = pool.top(kind, budget)
        tied = sum(pool.map(count_equal, kind, float(top.scores[-1])))
        return make_selection(
            self, pool, top.rows, top.scores, warnings=_tie_warning(top.scores, tied)
        )


@dataclass(frozen=True)
class Entropy(UncertaintySampling):
    """The largest entropy of the prediction."""

    name: ClassVar[str] = "entropy"
    paper: ClassVar[str] = "Shannon 1948; Settles 2009"


@dataclass(frozen=True)
class Margin(UncertaintySampling):
    """The smallest margin between the two best classes."""

    name: ClassVar[str] = "margin"
    paper: ClassVar[str] = "Scheffer et al. 2001"


@dataclass(frozen=True)
class LeastConfidence(UncertaintySampling):
    """The smallest probability of the best class."""

    name: ClassVar[str] = "least-confidence"
    paper: ClassVar[str] = "Lewis and Gale 1994"
    losses: ClassVar[tuple[str, ...]] = ("softmax",)


def _tie_warning(scores: np.ndarray, tied: int) -> tuple[str, ...]:
    """Return a warning if some of the `tied` items with the last score were left out."""
    taken = int(np.sum(scores == scores[-1]))
    if tied == taken:
        return ()
    left_out = tied - taken
    return (f"{taken} of the {len(scores)} items score the same as {left_out} that were left out",)
