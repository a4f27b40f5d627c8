"""Uncertainty sampling: the b items that the model is least sure of, each judged on its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.core.arrays import top_k
from sabal.pools.outputs import Outputs
from sabal.selection import Selection
from sabal.strategies.base import selection_of


@dataclass(frozen=True)
class Scored:
    """Ranks by one number per item; of equal ones, the lower row comes first."""

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ("probs",)
    paper: ClassVar[str]
    cost: ClassVar[str] = "O(n C)"
    streams: ClassVar[bool] = True
    losses: ClassVar[tuple[str, ...]] = ("softmax", "sigmoid")

    def scores(self, outputs: Outputs) -> np.ndarray:
        """What items are ranked by: what the loss knows by the name of the strategy."""
        return outputs.loss.scores[self.name](outputs.spread)

    def select(self, outputs: Outputs, budget: int, rng: np.random.Generator) -> Selection:
        """The top b; `rng` is not used."""
        scores_N = self.scores(outputs)
        chosen = top_k(scores_N, budget)
        return selection_of(
            self, outputs, chosen, scores_N[chosen], warnings=tie_warning(scores_N, chosen)
        )


@dataclass(frozen=True)
class Entropy(Scored):
    """The largest entropy of the prediction."""

    name: ClassVar[str] = "entropy"
    paper: ClassVar[str] = "Shannon 1948; Settles 2009"


@dataclass(frozen=True)
class Margin(Scored):
    """The smallest margin between the two best classes."""

    name: ClassVar[str] = "margin"
    paper: ClassVar[str] = "Scheffer et al. 2001"


@dataclass(frozen=True)
class LeastConfidence(Scored):
    """The smallest probability of the best class."""

    name: ClassVar[str] = "least-confidence"
    paper: ClassVar[str] = "Lewis and Gale 1994"
    losses: ClassVar[tuple[str, ...]] = ("softmax",)


def tie_warning(scores_N: np.ndarray, chosen: np.ndarray) -> tuple[str, ...]:
    """Say when the last place of a ranked batch went to one of many equal items."""
    return tied(scores_N[chosen], int(np.sum(scores_N == scores_N[chosen[-1]])))


def tied(scores: np.ndarray, level: int) -> tuple[str, ...]:
    """The same of a batch with these scores, when `level` items of the pool score as its last."""
    taken = int(np.sum(scores == scores[-1]))
    if level == taken:
        return ()
    left_out = level - taken
    return (f"{taken} of the {len(scores)} items score the same as {left_out} that were left out",)
