"""Random selection, the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.core.arrays import row_chunks
from sabal.pools.pool import Pool, TopRows
from sabal.selection import Selection
from sabal.strategies.base import Strategy, make_selection


@dataclass(frozen=True)
class Random(Strategy):
    """A uniform draw without replacement, which uses no arrays."""

    name: ClassVar[str] = "random"
    needs: ClassVar[tuple[str, ...]] = ()
    paper: ClassVar[str] = "-"
    cost: ClassVar[str] = "O(n)"
    streams: ClassVar[bool] = True

    def select(self, pool: Pool, budget: int, rng: np.random.Generator) -> Selection:
        """Return the items with the largest of n uniform draws; the draws are the scores."""
        top = TopRows(np.zeros(0, dtype=np.int64), np.zeros(0))
        # In parts, so that few draws are in memory at a time.
        for rows in row_chunks(pool.size, 8):
            draws = TopRows.of(rng.random(rows.stop - rows.start), budget, rows.start)
            top = TopRows.merge([top, draws], budget)
        return make_selection(self, pool, top.rows, top.scores)
