"""DropQuery: items whose prediction changes when features are dropped, spread over clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.core.arrays import (
    Array,
    power_of_two,
    row_chunks,
    row_norms_squared,
    to_float64_numpy,
    to_numpy,
)
from sabal.core.checks import check_number, check_whole
from sabal.errors import InputError
from sabal.pools.pool import ArrayPool
from sabal.selection import Selection
from sabal.strategies.base import Strategy, make_selection
from sabal.strategies.clustering import k_means
from sabal.strategies.unit_features import unit_rows

CANDIDATES_PER_PICK = 25  # with fewer, fewer disagreements make a candidate
HEAD_ITEMS = 8192  # the layer is fitted to this many items, or four per feature
FEW_CLUSTERS = (
    500  # the maximum number of clusters for full k-means; mini-batches are used for more
)


@dataclass(frozen=True, kw_only=True)
class DropQuery(Strategy):
    """Predictions that change under dropout, spread over clusters (DropQuery; Gupte et al. 2024).

    With y_i the predicted class of item i and y_i^m, m = 1, ..., M, the classes predicted when each
    feature is dropped with probability p, the candidates are the items with

        sum_m [y_i^m != y_i] > M / 2.

    Their features, scaled to unit length, are grouped by k-means into b clusters, and from each
    cluster the item nearest to its centroid is chosen.

    Parameters
    ----------
    samples : int
        M, the number of predictions under dropout; 3 as in the paper.
    dropout : float
        p, the probability that a feature is dropped; 0.75 as in the paper.

    Notes
    -----
    Predictions under dropout need the last layer. Strategies see only features and predictions, so
    the layer is found by least squares: with l_i the logits, or the log-probabilities, of item i
    minus their mean over the classes, l_i = W h_i + c has an exact solution for every model that is
    a linear layer and a softmax on these features (networks, linear probes, logistic regression;
    the normaliser of the softmax cancels in the differences to the mean). It is unique unless
    features are linearly dependent in the pool; then the one of least norm is used. For other
    models (trees, nearest neighbours) W and c are the best linear approximation. y_i is the
    prediction of this layer without dropout. Classes that the model gives no item are left out,
    and other probabilities of 0 are replaced by half the smallest positive one.

    As in the authors' code, if there are fewer than 25 b candidates, the required number of
    disagreements is lowered down to 1, and if there are fewer than b, all are chosen and the rest
    is drawn uniformly. Their classifier is trained with the same dropout; here it is the caller's.

    References
    ----------
    S. R. Gupte, J. Aklilu, J. J. Nirschl and S. Yeung-Levy, "Revisiting Active Learning in the Era
    of Vision Foundation Models", TMLR 2024.
    """

    name: ClassVar[str] = "drop-query"
    needs: ClassVar[tuple[str, ...]] = ("features", "logits|probs")
    paper: ClassVar[str] = "Gupte et al. 2024"
    cost: ClassVar[str] = "O(n d (M + C) + d^3), and k-means"

    samples: int = 3
    dropout: float = 0.75

    def __post_init__(self) -> None:
        check_whole(self.samples, "samples")
        if check_number(self.dropout, "dropout", above=0.0) >= 1:
            raise InputError("`dropout` below 1", str(self.dropout), "pass dropout=0.75")

    def select(self, pool: ArrayPool, budget: int, rng: np.random.Generator) -> Selection:
        """Return the picks, most disagreements first; scores are the shares of disagreements."""
        features_ND = to_numpy(pool.features) / power_of_two(pool.features)
        head = linear_head(features_ND, _log_scores(pool), rng)
        changed_N = self._disagreements(features_ND, head, rng)
        needed = self.samples // 2 + 1
        while needed > 1 and np.sum(changed_N >= needed) < CANDIDATES_PER_PICK * budget:
            needed -= 1
        chosen = candidates = np.flatnonzero(changed_N >= needed)
        free, why = np.arange(pool.size), "no other prediction changes under dropout"
        if candidates.size > budget:
            points_MD = unit_rows(features_ND[candidates])
            chosen = candidates[central_items(points_MD, budget, rng)]
            free, why = candidates, "the other candidates are copies of these"
        short = budget - chosen.size
        warnings: tuple[str, ...] = ()
        if short:
            more = rng.choice(np.setdiff1d(free, chosen), size=short, replace=False)
            chosen = np.append(chosen, more)
            warnings = (f"{short} of {budget} items were drawn uniformly: {why}",)
        chosen = chosen[np.argsort(-changed_N[chosen], kind="stable")]
        evidence = {"candidates": int(candidates.size), "disagreements": needed}
        scores = changed_N[chosen] / self.samples
        return make_selection(self, pool, chosen, scores, evidence=evidence, warnings=warnings)

    def _disagreements(
        self,
        features_ND: np.ndarray,
        head: tuple[np.ndarray, np.ndarray],
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Return how many of the predictions under dropout differ from the plain one."""
        n, dimensions = features_ND.shape
        weights_DC, bias_C = head
        plain_N = np.argmax(features_ND @ weights_DC + bias_C, axis=1)
        changed_N = np.zeros(n, dtype=np.int64)
        keep = 1.0 - self.dropout
        for _ in range(self.samples):
            for rows in row_chunks(n, 16 * dimensions):
                block_KD = features_ND[rows]
                kept_KD = np.where(rng.random(block_KD.shape) < keep, block_KD / keep, 0.0)
                found_K = np.argmax(kept_KD @ weights_DC + bias_C, axis=1)
                changed_N[rows] += found_K != plain_N[rows]
        return changed_N


def _log_scores(pool: ArrayPool) -> np.ndarray:
    """Return logits, or log-probabilities, of the classes that the model gives any item."""
    if "logits" in pool.arrays:
        return to_float64_numpy(pool.logits)
    probs_NC = to_float64_numpy(pool.probs)
    probs_NC = probs_NC[:, probs_NC.max(axis=0) > 0]
    return np.log(np.where(probs_NC > 0, probs_NC, probs_NC[probs_NC > 0].min() / 2.0))


def linear_head(
    features_ND: np.ndarray, scores_NC: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return W and c of l_i = W h_i + c by least squares, with l_i = scores minus their mean."""
    from scipy.linalg import lstsq

    n, dimensions = features_ND.shape
    rows = np.arange(n)
    count = max(HEAD_ITEMS, 4 * dimensions)
    if n > count:
        rows = np.sort(rng.choice(n, size=count, replace=False))
    known_KD = to_float64_numpy(features_ND[rows])
    mean_D = known_KD.mean(axis=0)
    wanted_KC = scores_NC[rows] - scores_NC[rows].mean(axis=1, keepdims=True)
    mean_C = wanted_KC.mean(axis=0)
    # Centred, as an offset of the features would hide their differences.
    weights_DC = lstsq(known_KD - mean_D, wanted_KC - mean_C, lapack_driver="gelsy")[0]
    bias_C = mean_C - mean_D @ weights_DC
    return weights_DC.astype(features_ND.dtype), bias_C.astype(features_ND.dtype)


def central_items(points_MD: Array, clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return the point nearest to the centroid of each cluster that is not empty."""
    cluster_M = k_means(points_MD, clusters, rng, few=FEW_CLUSTERS)
    size_C = np.bincount(cluster_M, minlength=clusters)
    centre_CD = np.zeros((clusters, points_MD.shape[1]))
    np.add.at(centre_CD, cluster_M, points_MD)
    centre_CD /= np.maximum(size_C, 1)[:, None]
    apart_M = row_norms_squared(points_MD - centre_CD[cluster_M])
    order_M = np.lexsort((apart_M, cluster_M))
    return order_M[(np.cumsum(size_C) - size_C)[size_C > 0]]
