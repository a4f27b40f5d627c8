"""Clustering by scikit-learn, for TypiClust, Cluster-Margin, ProbCover and DropQuery.

The features are copied to main memory as NumPy arrays.
"""

from __future__ import annotations

import warnings as python_warnings

import numpy as np
from threadpoolctl import threadpool_limits

from sabal.core.arrays import Array, power_of_two, to_numpy, within_reach
from sabal.strategies.seeding import SquaredDistanceSampling

ONE_THREAD = 2**28  # up to so many products, threads that wait for each other cost more than help
FEW_CLUSTERS = 50  # the maximum number of clusters for full k-means; mini-batches are used for more


def normalized_points(features_ND: Array, labeled_LD: Array | None) -> tuple[np.ndarray, float]:
    """Return pool features and labelled features as one NumPy array, and their unit.

    They are centred and scaled to unit size, as scikit-learn's distances lose precision with a
    common offset, and overflow for very large numbers.
    """
    if labeled_LD is not None:
        labeled_LD = within_reach(labeled_LD, features_ND)
    unit = power_of_two(features_ND, labeled_LD)
    parts = [to_numpy(part) for part in (features_ND, labeled_LD) if part is not None]
    points_MD = np.concatenate(parts, dtype=parts[0].dtype)
    points_MD /= unit
    points_MD -= points_MD.mean(axis=0, dtype=np.float64)
    return points_MD, unit


def k_means(
    points_MD: np.ndarray,
    clusters: int,
    rng: np.random.Generator,
    *,
    few: int = FEW_CLUSTERS,
    **given: object,
) -> np.ndarray:
    """Return the cluster of each point; clusters may be empty.

    With more than `few` clusters, mini-batches are used. `given` are options of KMeans.
    """
    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    seed = int(rng.integers(2**31))
    # The start of k-means depends on the order of the points, so they are sorted first.
    direction_D = np.asarray(rng.standard_normal(points_MD.shape[1]), dtype=points_MD.dtype)
    order_M = np.argsort(points_MD @ direction_D, kind="stable")
    sorted_MD = points_MD[order_M]
    options = {"n_clusters": clusters, "random_state": seed, "max_iter": 100, **given}
    if "init" not in given:
        options["init"] = _k_means_seeds(sorted_MD, clusters, rng)
    if clusters <= few or "init" in given:
        model = KMeans(n_init=1, copy_x=False, **options)
    else:
        model = MiniBatchKMeans(n_init=1, batch_size=5000, **options)
    cluster_M = np.empty(order_M.size, dtype=np.int64)
    threads = 1 if points_MD.size * clusters <= ONE_THREAD else None
    with python_warnings.catch_warnings(), threadpool_limits(threads):
        # With fewer distinct points than clusters some stay empty, which callers handle.
        python_warnings.simplefilter("ignore", ConvergenceWarning)
        cluster_M[order_M] = model.fit(sorted_MD).labels_
    return cluster_M


def _k_means_seeds(points_MD: np.ndarray, clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return start centres by k-means++; scikit-learn's own take longer than the clustering."""
    ones_M1 = np.ones((len(points_MD), 1), dtype=points_MD.dtype)
    seeds = SquaredDistanceSampling(ones_M1, points_MD)
    seeds.sample(clusters, rng)
    chosen = np.asarray(seeds.chosen, dtype=np.int64)
    # With fewer distinct points than clusters the rest are copies with empty clusters.
    filled = np.resize(chosen, clusters) if chosen.size else np.zeros(clusters, dtype=np.int64)
    return points_MD[filled]


def average_linkage(points_MD: np.ndarray, clusters: int) -> np.ndarray:
    """Return the cluster of each point by average linkage; stores the distances of all pairs."""
    from scipy.cluster.hierarchy import ClusterWarning
    from sklearn.cluster import AgglomerativeClustering

    if len(points_MD) == 1:
        return np.zeros(1, dtype=np.int64)
    model = AgglomerativeClustering(n_clusters=clusters, linkage="average")
    with python_warnings.catch_warnings():
        # A square array of points may look like a distance matrix.
        python_warnings.simplefilter("ignore", ClusterWarning)
        return model.fit(points_MD).labels_.astype(np.int64)


def rank_in_group(group_M: np.ndarray) -> np.ndarray:
    """Return the number of earlier members of the same group, for each member."""
    order_M = np.argsort(group_M, kind="stable")
    size_C = np.bincount(group_M)
    rank_M = np.empty(group_M.size, dtype=np.int64)
    rank_M[order_M] = np.arange(group_M.size) - np.repeat(np.cumsum(size_C) - size_C, size_C)
    return rank_M
