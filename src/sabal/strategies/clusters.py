"""Diversity by clusters: the typical items of each, or the least certain ones.

Clustering is scikit-learn's, so the features are brought to main memory as NumPy (one copy).
"""

from __future__ import annotations

import warnings as python_warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.core.arrays import Array, power_of_two, take_rows, to_numpy, top_k
from sabal.core.checks import check_number, check_whole
from sabal.errors import InputError
from sabal.pools.outputs import Outputs
from sabal.predictions.uncertainty import margin
from sabal.selection import Selection
from sabal.strategies.base import selection_of
from sabal.strategies.seeding import SquaredDistanceSampling

FEW_CLUSTERS = 50
"""TypiClust: up to this many clusters by k-means over all items, beyond by mini-batches."""

NEIGHBOUR_ITEMS = 5_000
"""TypiClust: in a larger cluster neighbours are looked for among this many of its items."""

NO_DISTANCE = 1e-7
"""TypiClust: mean distances below this share of the features' magnitude are rounding."""

LINKAGE_ITEMS = 4096
"""ClusterMargin: average linkage holds all pairs, 67 MB at this size and 3.6 GB at 30,000."""


@dataclass(frozen=True)
class TypiClust:
    """The typical items of many clusters: a batch to start with (TPC_RP; Hacohen et al. 2022).

    Looks at features only, of which distances should mean something. Pool and labelled items are
    put into min(labelled + b, max_clusters) clusters. Then, b times, the cluster with the fewest
    labelled or picked items (of these, the largest) gives its most typical item that is left.
    Typicality is the inverse of the mean distance to the nearest neighbours in the cluster; items
    picked before stay neighbours (the authors' code drops them), and in clusters of more than
    5,000 items neighbours are looked for among a random 5,000.

    max_clusters: no more clusters than this; with a larger batch they give several items each.
    min_size: smaller clusters give only when the others are used up.
    neighbours: how many neighbours typicality is measured by.
    """

    name: ClassVar[str] = "typiclust"
    needs: ClassVar[tuple[str, ...]] = ("features",)
    paper: ClassVar[str] = "Hacohen et al. 2022"
    cost: ClassVar[str] = "k-means, and O(d size^2) per cluster (up to 5,000 items)"

    max_clusters: int = 500
    min_size: int = 5
    neighbours: int = 20

    def __post_init__(self) -> None:
        check_whole(self.max_clusters, "max_clusters")
        check_whole(self.min_size, "min_size")
        check_whole(self.neighbours, "neighbours")

    def select(self, outputs: Outputs, budget: int, rng: np.random.Generator) -> Selection:
        """The picks in order; scores are typicalities."""
        n = outputs.size
        labeled_LD = outputs.labeled_features if outputs.has("labeled_features") else None
        points_MD, unit = host_points(outputs.features, labeled_LD)
        clusters = min(len(points_MD) - n + budget, self.max_clusters)
        cluster_M = k_means(points_MD, clusters, rng)
        size_C = np.bincount(cluster_M, minlength=clusters)
        labelled_C = np.bincount(cluster_M[n:], minlength=clusters)

        # Whose turn it is: the k-th item that cluster c gives finds labelled_c + k before it.
        turn_N = labelled_C[cluster_M[:n]] + rank_in_group(cluster_M[:n])
        small_C = size_C < self.min_size
        keys = (cluster_M[:n], -size_C[cluster_M[:n]], turn_N, small_C[cluster_M[:n]])
        giver_B = cluster_M[np.lexsort(keys)[:budget]]

        chosen_B, scores_B = np.empty(budget, dtype=np.int64), np.empty(budget)
        for c in np.unique(giver_B):
            turns = np.flatnonzero(giver_B == c)
            members = np.flatnonzero(cluster_M == c)
            with np.errstate(over="ignore"):
                # Distances among subnormal numbers have no finite reciprocal.
                typicality = self._typicality(points_MD[members], rng) / unit
            typicality = np.minimum(typicality, np.finfo(np.float64).max)
            in_pool = np.count_nonzero(members < n)
            best = top_k(typicality[:in_pool], turns.size)
            chosen_B[turns], scores_B[turns] = members[best], typicality[best]
        from_small = int(np.count_nonzero(small_C[giver_B]))
        warnings = []
        if from_small:
            warnings.append(
                f"{from_small} of {budget} items are from clusters of fewer than {self.min_size}"
            )
        if size_C[giver_B].max() > NEIGHBOUR_ITEMS:
            warnings.append(
                f"in clusters of more than {NEIGHBOUR_ITEMS} items, neighbours were looked for "
                "among a random sample of that size"
            )
        evidence = {
            "clusters": int(np.count_nonzero(size_C)),
            "clusters_used": int(np.unique(giver_B).size),
            "from_small_clusters": from_small,
            "largest_cluster": int(size_C.max()),
        }
        return selection_of(
            self, outputs, chosen_B, scores_B, evidence=evidence, warnings=tuple(warnings)
        )

    def _typicality(self, points_MD: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """1 / mean distance to the nearest neighbours (their eq. 1); 0 for an item on its own."""
        from sklearn.neighbors import NearestNeighbors

        m = len(points_MD)
        if m == 1:
            return np.zeros(1)
        known = np.arange(m)
        if m > NEIGHBOUR_ITEMS:
            known = np.sort(rng.choice(m, size=NEIGHBOUR_ITEMS, replace=False))
        k = min(self.neighbours, known.size - 1)
        nearest = NearestNeighbors(n_neighbors=k + 1).fit(points_MD[known])
        # Searched in blocks by scikit-learn, so never all pairs at once.
        distances_MK = nearest.kneighbors(points_MD)[0].astype(np.float64)
        # Among known items the first neighbour is the item itself; others have one to spare.
        total_M = distances_MK[:, :k].sum(axis=1)
        total_M[known] = distances_MK[known, 1:].sum(axis=1)
        return 1.0 / np.maximum(total_M / k, NO_DISTANCE)


@dataclass(frozen=True)
class ClusterMargin:
    """The least certain items, spread over clusters (Citovsky et al. 2021, Algorithms 1 and 2).

    The candidates * b items of the smallest margin p_(1) - p_(2) are clustered by their features.
    Then the clusters, the smallest first, give one item each, round after round: the least certain
    that is left (in the paper, a random one).

    The paper clusters the whole pool once by average linkage, which takes memory quadratic in its
    size. Here only what can be chosen is clustered: by average linkage up to 4,096 items, by
    k-means (10 iterations from random items) beyond.

    candidates: how many items are looked at, as a multiple of b (k_m / k_t in the paper).
    cluster_size: items per cluster on average; takes the place of the paper's distance threshold,
        which it sets by this number.
    """

    name: ClassVar[str] = "cluster-margin"
    needs: ClassVar[tuple[str, ...]] = ("features", "probs")
    paper: ClassVar[str] = "Citovsky et al. 2021"
    cost: ClassVar[str] = "O(n C), and clustering of 10 b items"

    candidates: float = 10.0
    cluster_size: float = 10.0

    def __post_init__(self) -> None:
        for name in ("candidates", "cluster_size"):
            value = check_number(getattr(self, name), name, above=0.0)
            if value < 1:
                raise InputError(f"`{name}` of at least 1", str(value), f"pass {name}=10")

    def select(self, outputs: Outputs, budget: int, rng: np.random.Generator) -> Selection:
        """The picks in order; scores are 1 - (p_(1) - p_(2))."""
        uncertainty_N = margin(outputs.probs)
        # The least certain first, so that ranks in a cluster are ranks by uncertainty.
        rows_M = top_k(uncertainty_N, min(outputs.size, int(self.candidates * budget)))
        points_MD, _ = host_points(take_rows(outputs.features, rows_M), None)
        clusters = max(1, round(rows_M.size / self.cluster_size))
        linked = rows_M.size <= LINKAGE_ITEMS
        if linked:
            cluster_M = average_linkage(points_MD, clusters)
        else:
            cluster_M = k_means(points_MD, clusters, rng, init="random", max_iter=10)
        size_C = np.bincount(cluster_M, minlength=clusters)
        # Clusters of one size: by their least certain item.
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
        return selection_of(self, outputs, chosen, uncertainty_N[chosen], evidence=evidence)


def host_points(features_ND: Array, labeled_LD: Array | None) -> tuple[np.ndarray, float]:
    """Pool, then labelled features, as one NumPy copy, and the unit that they are divided by.

    Centred and of unit magnitude: scikit-learn's distances lose digits to a common offset, and
    overflow for very large numbers.
    """
    unit = power_of_two(features_ND, labeled_LD)
    parts = [to_numpy(part) for part in (features_ND, labeled_LD) if part is not None]
    points_MD = np.concatenate(parts, dtype=parts[0].dtype)
    points_MD /= unit
    points_MD -= points_MD.mean(axis=0, dtype=np.float64)
    return points_MD, unit


def k_means(
    points_MD: np.ndarray, clusters: int, rng: np.random.Generator, **given: object
) -> np.ndarray:
    """The cluster of each point; some may be empty. `given` are options of KMeans."""
    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    seed = int(rng.integers(2**31))
    # Where k-means starts depends on the order of the points: one that the pool's does not change.
    direction_D = np.asarray(rng.standard_normal(points_MD.shape[1]), dtype=points_MD.dtype)
    order_M = np.argsort(points_MD @ direction_D, kind="stable")
    sorted_MD = points_MD[order_M]
    options = {"n_clusters": clusters, "random_state": seed, "max_iter": 100, **given}
    if "init" not in given:
        options["init"] = _k_means_seeds(sorted_MD, clusters, rng)
    if clusters <= FEW_CLUSTERS or "init" in given:
        model = KMeans(n_init=1, copy_x=False, **options)
    else:
        model = MiniBatchKMeans(n_init=1, batch_size=5000, **options)
    cluster_M = np.empty(order_M.size, dtype=np.int64)
    with python_warnings.catch_warnings():
        # Fewer distinct points than clusters: some stay empty, and callers expect that.
        python_warnings.simplefilter("ignore", ConvergenceWarning)
        cluster_M[order_M] = model.fit(sorted_MD).labels_
    return cluster_M


def _k_means_seeds(points_MD: np.ndarray, clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Start centres by k-means++: scikit-learn's own take longer than all that follows."""
    ones_M1 = np.ones((len(points_MD), 1), dtype=points_MD.dtype)
    seeds = SquaredDistanceSampling(ones_M1, points_MD)
    seeds.sample(clusters, rng)
    chosen = np.asarray(seeds.chosen, dtype=np.int64)
    # Fewer distinct points than clusters: the rest are copies, and their clusters stay empty.
    filled = np.resize(chosen, clusters) if chosen.size else np.zeros(clusters, dtype=np.int64)
    return points_MD[filled]


def average_linkage(points_MD: np.ndarray, clusters: int) -> np.ndarray:
    """The cluster of each point by agglomeration; holds the distances of all pairs."""
    from scipy.cluster.hierarchy import ClusterWarning
    from sklearn.cluster import AgglomerativeClustering

    if len(points_MD) == 1:
        return np.zeros(1, dtype=np.int64)
    model = AgglomerativeClustering(n_clusters=clusters, linkage="average")
    with python_warnings.catch_warnings():
        # As many points as dimensions may look like distances, and are none.
        python_warnings.simplefilter("ignore", ClusterWarning)
        return model.fit(points_MD).labels_.astype(np.int64)


def rank_in_group(group_M: np.ndarray) -> np.ndarray:
    """How many members of its group come before each."""
    order_M = np.argsort(group_M, kind="stable")
    size_C = np.bincount(group_M)
    rank_M = np.empty(group_M.size, dtype=np.int64)
    rank_M[order_M] = np.arange(group_M.size) - np.repeat(np.cumsum(size_C) - size_C, size_C)
    return rank_M
