"""Random selection: the baseline that every other strategy has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.core.arrays import top_k
from sabal.pools.outputs import Outputs
from sabal.selection import Selection
from sabal.strategies.base import selection_of


@dataclass(frozen=True)
class Random:
    """A uniform draw without replacement; looks at no output at all."""

    name: ClassVar[str] = "random"
    needs: ClassVar[tuple[str, ...]] = ()
    paper: ClassVar[str] = "-"
    cost: ClassVar[str] = "O(n)"
    streams: ClassVar[bool] = True

    def select(self, outputs: Outputs, budget: int, rng: np.random.Generator) -> Selection:
        """The items with the largest of n uniform draws; the draws are the scores."""
        draws_N = rng.random(outputs.size)
        chosen = top_k(draws_N, budget)
        return selection_of(self, outputs, chosen, draws_N[chosen])
