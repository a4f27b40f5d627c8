"""BALD: the mutual information between a label and the model's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.core.arrays import top_k
from sabal.pools.pool import Pool, Shard, TopRows
from sabal.predictions.uncertainty import most_informative
from sabal.selection import Selection
from sabal.strategies.base import Strategy, make_selection

MIN_SCORE = 1e-12  # scores up to this size (in nats, or a probability) are rounding errors


@dataclass(frozen=True)
class Bald(Strategy):
    """The items with the largest mutual information I(y; theta | x) of label and parameters.

    Items are scored independently, so near-duplicates of an informative item are all chosen; see
    `BatchBald` for the joint information of a batch.
    """

    name: ClassVar[str] = "bald"
    needs: ClassVar[tuple[str, ...]] = ("log_probs",)
    paper: ClassVar[str] = "Houlsby et al. 2011, eq. 2"
    cost: ClassVar[str] = "O(n K C)"
    streams: ClassVar[bool] = True

    def select(self, pool: Pool, budget: int, rng: np.random.Generator) -> Selection:
        """Return the top b of the mutual information; the lower row on ties."""
        top = TopRows.merge(pool.map(most_informative_rows, budget), budget)
        samples = pool.map(posterior_samples)[0]
        warnings: tuple[str, ...] = ()
        if top.scores.max() <= MIN_SCORE:
            warnings = (f"{why_zero(samples)}: the batch is simply the first {budget} items",)
        return make_selection(
            self,
            pool,
            top.rows,
            top.scores,
            evidence={"posterior_samples": samples},
            warnings=warnings,
        )


def most_informative_rows(shard: Shard, count: int) -> TopRows:
    """Return the rows with the largest mutual information."""
    log_probs_NKC = shard.pool.log_probs
    items, information = most_informative(log_probs_NKC, count, rank=lambda score: score)
    best = top_k(information, min(count, items.size))
    return TopRows(shard.start + items[best], information[best])


def posterior_samples(shard: Shard) -> int:
    """Return the number of posterior samples."""
    return int(shard.pool.log_probs.shape[1])


def why_zero(samples: int) -> str:
    """Return the reason why no item has mutual information."""
    if samples == 1:
        return "the mutual information is 0 everywhere, as there is only one posterior sample"
    return f"the mutual information is 0 everywhere: all {samples} posterior samples agree"
