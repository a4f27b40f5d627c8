"""TypiClust: the typical items of many clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.core.arrays import row_chunks, row_norms_squared, top_k
from sabal.core.checks import check_whole
from sabal.core.threads import in_threads
from sabal.pools.pool import ArrayPool
from sabal.selection import Selection
from sabal.strategies.base import Strategy, make_selection
from sabal.strategies.clustering import k_means, normalized_points, rank_in_group

NEIGHBOUR_ITEMS = 5_000  # in larger clusters, neighbours are searched among a sample of this size
BLOCK_BYTES = 32 * 2**20  # the size of the distances computed at a time
NO_DISTANCE = 1e-7  # mean distances below this share of the features' magnitude are rounding errors


@dataclass(frozen=True)
class TypiClust(Strategy):
    """The typical items of many clusters, for a first batch (TPC_RP; Hacohen et al. 2022).

    Uses features only, whose distances should be meaningful. Pool and labelled items are grouped
    into min(labelled + b, max_clusters) clusters. Then, b times, the most typical remaining item is
    taken from the cluster with the fewest labelled or picked items (the largest of these).
    Typicality is the inverse of the mean distance to the nearest neighbours in the cluster. Picked
    items remain neighbours (the authors' code drops them), and in clusters of more than 5,000
    items neighbours are searched among a random 5,000.

    Parameters
    ----------
    max_clusters : int
        The maximum number of clusters; a larger batch has several items of each.
    min_size : int
        Smaller clusters are used only when the others are exhausted.
    neighbours : int
        The number of neighbours for the typicality.
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

    def select(self, pool: ArrayPool, budget: int, rng: np.random.Generator) -> Selection:
        """Return the picks in order; scores are typicalities."""
        n = pool.size
        labeled_LD = pool.labeled_features if pool.has("labeled_features") else None
        points_MD, unit = normalized_points(pool.features, labeled_LD)
        clusters = min(len(points_MD) - n + budget, self.max_clusters)
        cluster_M = k_means(points_MD, clusters, rng)
        size_C = np.bincount(cluster_M, minlength=clusters)
        labeled_C = np.bincount(cluster_M[n:], minlength=clusters)

        # The k-th item of cluster c has labelled_c + k items before it.
        turn_N = labeled_C[cluster_M[:n]] + rank_in_group(cluster_M[:n])
        small_C = size_C < self.min_size
        keys = (cluster_M[:n], -size_C[cluster_M[:n]], turn_N, small_C[cluster_M[:n]])
        cluster_B = cluster_M[np.lexsort(keys)[:budget]]

        chosen_B, scores_B = np.empty(budget, dtype=np.int64), np.empty(budget)
        used = np.unique(cluster_B)
        # Drawn in order, as the clusters are searched in any order.
        known = {c: _neighbour_candidates(int(size_C[c]), rng) for c in used}

        def search(c: int) -> None:
            turns = np.flatnonzero(cluster_B == c)
            members = np.flatnonzero(cluster_M == c)
            in_pool = int(np.count_nonzero(members < n))
            best, typicality = self._most_typical(points_MD[members], known[c], in_pool, turns.size)
            chosen_B[turns], scores_B[turns] = members[best], typicality

        in_threads(search, used.tolist())
        with np.errstate(over="ignore"):
            # Distances among subnormal numbers have no finite reciprocal.
            scores_B = np.minimum(scores_B / unit, np.finfo(np.float64).max)
        from_small = int(np.count_nonzero(small_C[cluster_B]))
        warnings = []
        if from_small:
            warnings.append(
                f"{from_small} of {budget} items are from clusters of fewer than {self.min_size}"
            )
        if size_C[cluster_B].max() > NEIGHBOUR_ITEMS:
            warnings.append(
                f"in clusters of more than {NEIGHBOUR_ITEMS} items, neighbours were looked for "
                "among a random sample of that size"
            )
        evidence = {
            "clusters": int(np.count_nonzero(size_C)),
            "clusters_used": int(np.unique(cluster_B).size),
            "from_small_clusters": from_small,
            "largest_cluster": int(size_C.max()),
        }
        return make_selection(
            self, pool, chosen_B, scores_B, evidence=evidence, warnings=tuple(warnings)
        )

    def _most_typical(
        self, points_MD: np.ndarray, known: np.ndarray, in_pool: int, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the `count` most typical of the first `in_pool` points, and their typicality.

        This is 1 / mean distance to the nearest neighbours (eq. 1); 0 for a single item. Neighbours
        are searched among the points `known`.
        """
        from sklearn.neighbors import NearestNeighbors

        if len(points_MD) == 1:
            return np.zeros(1, dtype=np.int64), np.zeros(1)
        k = min(self.neighbours, known.size - 1)
        able = _possibly_most_typical(points_MD, known, k, in_pool, count)
        nearest = NearestNeighbors(n_neighbors=k + 1).fit(points_MD[known])
        distances_AK = nearest.kneighbors(points_MD[able])[0].astype(np.float64)
        # For items in the sample the first neighbour is the item itself.
        total_A = np.where(
            np.isin(able, known), distances_AK[:, 1:].sum(axis=1), distances_AK[:, :k].sum(axis=1)
        )
        typicality_A = 1.0 / np.maximum(total_A / k, NO_DISTANCE)
        best = top_k(typicality_A, count)
        return able[best], typicality_A[best]


def _neighbour_candidates(size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the members of a cluster of this size among which neighbours are searched."""
    if size <= NEIGHBOUR_ITEMS:
        return np.arange(size)
    return np.sort(rng.choice(size, size=NEIGHBOUR_ITEMS, replace=False))


def _possibly_most_typical(
    points_MD: np.ndarray, known: np.ndarray, k: int, in_pool: int, count: int
) -> np.ndarray:
    """Return which of the first `in_pool` points can be among the `count` most typical ones.

    Distances are computed in single precision, by products of matrices. Their squares are
    wrong by at most `error`, so the mean distance of an item to its k nearest neighbours is between
    two bounds. Only the points returned need exact distances.
    """
    single_MD = (points_MD - points_MD.mean(axis=0)).astype(np.float32)
    halves_M = row_norms_squared(single_MD) / 2.0
    error = (points_MD.shape[1] + 8) * float(np.finfo(np.float32).eps) * 2.0 * halves_M.max()
    others_KD = single_MD if known.size == len(points_MD) else single_MD[known]
    halves_K = halves_M[known].astype(np.float32)
    # The neighbours of an item do not include itself.
    own_M = np.full(len(points_MD), -1)
    own_M[known] = np.arange(known.size)
    low_N, high_N = np.empty(in_pool), np.empty(in_pool)
    for rows in row_chunks(in_pool, 4 * known.size, BLOCK_BYTES):
        halves_RK = single_MD[rows] @ others_KD.T
        np.subtract(halves_K, halves_RK, out=halves_RK)
        own_R = own_M[rows]
        halves_RK[np.flatnonzero(own_R >= 0), own_R[own_R >= 0]] = np.inf
        halves_RK.partition(k - 1, axis=1)
        squares_RK = 2.0 * (halves_RK[:, :k] + halves_M[rows, None])
        for bound_N, shift in ((low_N, -error), (high_N, error)):
            mean_R = np.sqrt(np.maximum(squares_RK + shift, 0.0)).mean(axis=1)
            bound_N[rows] = np.maximum(mean_R, NO_DISTANCE)
    return np.flatnonzero(low_N <= np.partition(high_N, count - 1)[count - 1])
