"""Cluster-Margin: the least certain items, spread over clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.core.arrays import take_rows, top_k
from sabal.core.checks import check_number
from sabal.errors import InputError
from sabal.pools.pool import ArrayPool
from sabal.predictions.uncertainty import margin
from sabal.selection import Selection
from sabal.strategies.base import Strategy, make_selection
from sabal.strategies.clustering import (
    average_linkage,
    k_means,
    normalized_points,
    rank_in_group,
)

LINKAGE_ITEMS = 4096
"""Average linkage stores all pairs: 67 MB at this size, 3.6 GB for 30,000 items."""


@dataclass(frozen=True)
class ClusterMargin(Strategy):
    """The least certain items, spread over clusters (Citovsky et al. 2021, Algorithms 1 and 2).

    The candidates * b items with the smallest margin p_(1) - p_(2) are clustered by their features.
    Then one item is taken from each cluster, the smallest cluster first, round after round: the
    least certain one that is left (in the paper, a random one).

    The paper clusters the whole pool once by average linkage, which takes quadratic memory. Here
    only the candidates are clustered: up to 4,096 items by average linkage, and more by k-means (10
    iterations from random items).

    Parameters
    ----------
    candidates : float
        The number of candidates, as a multiple of b (k_m / k_t in the paper).
    cluster_size : float
        The mean number of items per cluster, in place of the paper's distance threshold.
    """

    name: ClassVar[str] = "cluster-margin"
    needs: ClassVar[tuple[str, ...]] = ("features", "probs|scores")
    paper: ClassVar[str] = "Citovsky et al. 2021"
    cost: ClassVar[str] = "O(n C), and clustering of 10 b items"

    candidates: float = 10.0
    cluster_size: float = 10.0

    def __post_init__(self) -> None:
        for name in ("candidates", "cluster_size"):
            value = check_number(getattr(self, name), name, above=0.0)
            if value < 1:
                raise InputError(f"`{name}` of at least 1", str(value), f"pass {name}=10")

    def select(self, pool: ArrayPool, budget: int, rng: np.random.Generator) -> Selection:
        """Return the picks in order; scores are 1 - (p_(1) - p_(2)), or as they were given."""
        uncertainty_N = pool.uncertainty() if pool.has("scores") else margin(pool.probs)
        # Least certain first, so that ranks in a cluster are ranks by uncertainty.
        rows_M = top_k(uncertainty_N, min(pool.size, int(self.candidates * budget)))
        points_MD, _ = normalized_points(take_rows(pool.features, rows_M), None)
        clusters = max(1, round(rows_M.size / self.cluster_size))
        linked = rows_M.size <= LINKAGE_ITEMS
        if linked:
            cluster_M = average_linkage(points_MD, clusters)
        else:
            cluster_M = k_means(points_MD, clusters, rng, init="random", max_iter=10)
        size_C = np.bincount(cluster_M, minlength=clusters)
        # Clusters of equal size are ordered by their least certain item.
        first_C = np.full(clusters, rows_M.size)
        np.minimum.at(first_C, cluster_M, np.arange(rows_M.size))
        turns = (first_C[cluster_M], size_C[cluster_M], rank_in_group(cluster_M))
        chosen = rows_M[np.lexsort(turns)[:budget]]
        evidence = {
            "candidates": int(rows_M.size),
            "clusters": int(np.count_nonzero(size_C)),
            "largest_cluster": int(size_C.max()),
            "clustering": "average linkage" if linked else "k-means",
        }
        return make_selection(self, pool, chosen, uncertainty_N[chosen], evidence=evidence)
