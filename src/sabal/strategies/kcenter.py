"""k-center: each pick is the item furthest from all centres so far.

The distance to the nearest pick never increases, so an old distance is an upper bound, and few
items need a new one for each pick. The result is the same as with a pass over the pool per pick.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from sabal.core.arrays import (
    Array,
    namespace,
    power_of_two,
    row_chunks,
    row_norms_squared,
    take_rows,
    to_backend_of,
    to_float64_numpy,
    to_numpy,
    top_k,
    weighted_row_sum,
    within_reach,
)
from sabal.core.threads import in_threads
from sabal.pools.pool import ArrayPool
from sabal.selection import Selection
from sabal.strategies.base import Strategy, make_selection

CANDIDATES, CENTRES = 2048, 1024
"""The number of candidates per round, and of centres per matrix product."""


@dataclass(frozen=True)
class KCenter(Strategy):
    """Furthest first: each pick is the item furthest from all centres so far (Euclidean).

    The greedy 2-approximation of the k-centre problem (Sener & Savarese 2018, Algorithm 1).
    Labelled items are the first centres. Without any the first centre is drawn at random; its score
    is the covering radius after it.
    """

    name: ClassVar[str] = "kcenter"
    needs: ClassVar[tuple[str, ...]] = ("features",)
    paper: ClassVar[str] = "Sener & Savarese 2018"
    cost: ClassVar[str] = "O(n d b) at worst, most of it never done"

    def select(self, pool: ArrayPool, budget: int, rng: np.random.Generator) -> Selection:
        """Return the picks in order; scores are distances to the nearest centre when picked."""
        labeled_LD = pool.labeled_features if pool.has("labeled_features") else None
        # The distance of one further pick is the covering radius of the batch.
        search = _FurthestFirst(pool.features, labeled_LD, min(budget + 1, pool.size))
        if labeled_LD is None:
            search.choose(int(rng.integers(pool.size)))
        search.run()
        distances = search.unit * np.sqrt(np.append(search.squared, 0.0)[: budget + 1])
        if labeled_LD is None:
            distances[0] = distances[1]
        radius, labeled = float(distances[budget]), search.count - len(search.chosen)
        evidence = {"covering_radius": radius, "labeled": labeled, "rounds": search.rounds}
        chosen = np.asarray(search.chosen[:budget])
        return make_selection(self, pool, chosen, distances[:budget], evidence=evidence)


class _FurthestFirst:
    """Furthest first with lazy distances.

    `bound_N` is the squared distance of each item to the nearest of the first `seen_N` centres
    (-inf once chosen), an upper bound. A round updates the items with the largest bounds, each with
    the centres it has not been compared with, and picks among them while the best of them exceeds
    the bounds of all other items. Other items are not updated.

    The nearest centre is found by a matrix product in the caller's library. The distance to it is
    computed from differences in float64, so that duplicates of a centre have distance 0, equal
    distances are ties, and bounds hold in every library and dtype.
    """

    def __init__(self, features_ND: Array, labeled_LD: Array | None, picks: int) -> None:
        n, dimensions = features_ND.shape
        self.features_ND = features_ND
        if labeled_LD is not None:
            labeled_LD = within_reach(labeled_LD, features_ND)
        self.unit = power_of_two(features_ND, labeled_LD)
        # ||x||^2 - 2 x.c + ||c||^2 loses precision with a common offset of the features.
        self.mean_D = weighted_row_sum(np.full(n, 1.0 / n), features_ND) / self.unit
        self.count = 0 if labeled_LD is None else labeled_LD.shape[0]
        self.centres_ED = np.empty((self.count + picks, dimensions))
        if labeled_LD is not None:
            self.centres_ED[: self.count] = to_float64_numpy(labeled_LD) / self.unit
        self.bound_N, self.seen_N = np.full(n, np.inf), np.zeros(n, dtype=np.int64)
        self.chosen: list[int] = []
        self.squared: list[float] = []
        self.picks, self.rounds = picks, 0

    def choose(self, item: int, squared: float = 0.0) -> None:
        """Make `item` a centre."""
        self.centres_ED[self.count] = to_float64_numpy(self.features_ND[item]) / self.unit
        self.count += 1
        self.chosen.append(item)
        self.squared.append(squared)
        self.bound_N[item] = -np.inf

    def run(self) -> None:
        """Make one pass over the pool, then rounds until all picks are made."""
        n, dimensions = self.features_ND.shape
        chunks = row_chunks(n, 8 * (3 * dimensions + CENTRES))
        in_threads(self._refresh, [np.arange(rows.start, rows.stop) for rows in chunks])
        # The products of a round are too small for several threads.
        with threadpool_limits(1):
            while len(self.chosen) < self.picks:
                self.rounds += 1
                self._round(np.sort(top_k(self.bound_N, min(CANDIDATES, n))))

    def _round(self, rows_K: np.ndarray) -> None:
        """Pick among `rows_K` while no other item can be further."""
        from scipy.spatial.distance import cdist

        others_N = self.bound_N.copy()
        others_N[rows_K] = -np.inf
        # The lower row wins ties, so an equal bound outside counts if its row is lower.
        rival = int(np.argmax(others_N))
        bound = others_N[rival]
        block_KD = self._refresh(rows_K)
        bound_K = self.bound_N[rows_K]
        while rows_K.size and len(self.chosen) < self.picks:
            k = int(np.argmax(bound_K))
            if bound_K[k] < bound or (bound_K[k] == bound and rows_K[k] > rival):
                break
            self.choose(int(rows_K[k]), float(bound_K[k]))
            bound_K = np.minimum(bound_K, cdist(block_KD, block_KD[k : k + 1], "sqeuclidean")[:, 0])
            bound_K[k] = -np.inf
            self.bound_N[rows_K], self.seen_N[rows_K] = bound_K, self.count
            able_K = bound_K >= bound
            if 2 * np.count_nonzero(able_K) < able_K.size:
                # Most rows cannot be picked in this round any more, and are dropped.
                rows_K, block_KD, bound_K = rows_K[able_K], block_KD[able_K], bound_K[able_K]

    def _refresh(self, rows_K: np.ndarray) -> np.ndarray:
        """Update the bounds of `rows_K`; return their features in float64, divided by `unit`."""
        xp = namespace(self.features_ND)
        block_KD = np.empty((rows_K.size, self.mean_D.size))
        # Rows with similar numbers of new centres share a product.
        seen_K = self.seen_N[rows_K]
        by_age_K = np.argsort(seen_K, kind="stable")
        for group in np.array_split(by_age_K, min(8, np.unique(seen_K).size)):
            rows = rows_K[group]
            raw_RD = take_rows(self.features_ND, rows)
            block_KD[group] = to_float64_numpy(raw_RD) / self.unit
            centred_RD = raw_RD / self.unit - to_backend_of(self.mean_D, raw_RD)
            for start in range(self.seen_N[rows[0]], self.count, CENTRES):
                centres_PD = self.centres_ED[start : min(start + CENTRES, self.count)]
                centred_PD = centres_PD - self.mean_D
                norms_P = to_backend_of(row_norms_squared(centred_PD), raw_RD)
                products_RP = centred_RD @ xp.matrix_transpose(to_backend_of(centred_PD, raw_RD))
                nearest_R = to_numpy(xp.argmin(norms_P - 2.0 * products_RP, axis=1))
                fresh_R = row_norms_squared(block_KD[group] - centres_PD[nearest_R])
                self.bound_N[rows] = np.minimum(self.bound_N[rows], fresh_R)
        self.seen_N[rows_K] = self.count
        return block_KD
