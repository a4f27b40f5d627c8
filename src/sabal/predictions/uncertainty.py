"""Uncertainty scores, in NumPy; larger is more uncertain.

Items are processed in blocks that fit in the cache, in the precision of the input where possible.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sabal.core.arrays import CACHE_BYTES, Array, row_chunks, take_rows, to_numpy


def margin(probs_NC: Array) -> np.ndarray:
    """Return 1 - (p_(1) - p_(2)), near 1 where the two best classes are equally probable."""
    return per_item(_margin, probs_NC)


def least_confidence(probs_NC: Array) -> np.ndarray:
    """Return 1 - p_(1), the model's probability that its best class is wrong."""
    return per_item(lambda probs: 1.0 - _best(probs), probs_NC)


def entropy(probs_NC: Array) -> np.ndarray:
    """Return -sum_y p(y) log p(y) in nats, with 0 log 0 = 0."""
    return per_item(_entropy, probs_NC)


def mutual_information(log_probs_NKC: Array) -> np.ndarray:
    """Return I(y; theta | x) = H(mean_k p_k) - mean_k H(p_k) (Houlsby et al. 2011, eq. 2)."""
    return per_item(_mutual_information, log_probs_NKC)


def most_informative(
    log_probs_NKC: Array, k: int, rank: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return items that include the k best, in pool order, and their mutual information.

    `rank` computes sort keys from the information of all items and must not decrease in it. Single
    precision, several times as fast, bounds the information of all items. Only the items that may
    be among the k best are computed in double precision.
    """
    items = np.arange(log_probs_NKC.shape[0])
    if to_numpy(log_probs_NKC[:1]).dtype == np.float32 and k < items.size:
        rough_N, error_N = _rough_information(log_probs_NKC)
        lowest_N = rank(np.maximum(rough_N - error_N, 0.0))
        k_th_best = np.partition(lowest_N, items.size - k)[items.size - k]
        items = np.flatnonzero(rank(rough_N + error_N) >= k_th_best)
    return items, mutual_information(take_rows(log_probs_NKC, items))


def _rough_information(log_probs_NKC: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the mutual information from single-precision sums, and a bound on its error."""
    n, samples, classes = log_probs_NKC.shape
    expected_N, entropy_N = np.empty(n), np.empty(n)
    smallest = np.log(np.finfo(np.float32).tiny)
    for rows in row_chunks(n, 8 * samples * classes, CACHE_BYTES):
        logs_NKC = np.maximum(to_numpy(log_probs_NKC[rows]), smallest)
        probs_NKC = np.exp(logs_NKC)
        expected_N[rows] = np.einsum("nkc,nkc->n", probs_NKC, logs_NKC)
        mean_NC = np.einsum("nkc->nc", probs_NKC).astype(np.float64) / samples
        entropy_N[rows] = _entropy(mean_NC)
    expected_N /= -samples
    # A sum of m numbers of one sign has at most m rounding errors, and the exponential four; an
    # entropy changes by at most 1 + |log p| times the change of its probabilities. Then doubled.
    rounding = float(np.finfo(np.float32).eps)
    error_N = (samples * classes + 6) * np.abs(expected_N) + (samples + 6) * (1.0 + entropy_N)
    return entropy_N - expected_N, rounding * error_N


def per_item(score: Callable[[np.ndarray], np.ndarray], array: Array) -> np.ndarray:
    """Return `score` of every item, at least 0."""
    n = array.shape[0]
    result_N = np.empty(n)
    entries = int(np.prod(array.shape[1:]))
    for rows in row_chunks(n, 8 * entries, CACHE_BYTES):
        result_N[rows] = score(to_numpy(array[rows]))
    return np.maximum(result_N, 0.0)


def _margin(probs_NC: np.ndarray) -> np.ndarray:
    first_N, second_N = _best_two(probs_NC)
    return 1.0 - (first_N - second_N)


def _best(probs_NC: np.ndarray) -> np.ndarray:
    """Return the largest probability of every row."""
    first_N = probs_NC[:, 0].copy()
    for column_N in probs_NC.T[1:]:
        np.maximum(first_N, column_N, out=first_N)
    return first_N


def _best_two(probs_NC: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the two largest probabilities of every row; 0 if there is no second class.

    A loop over classes is several times as fast as a partition of every short row.
    """
    first_N, second_N = probs_NC[:, 0].copy(), np.zeros_like(probs_NC[:, 0])
    for column_N in probs_NC.T[1:]:
        np.maximum(second_N, np.minimum(first_N, column_N), out=second_N)
        np.maximum(first_N, column_N, out=first_N)
    return first_N, second_N


def _entropy(probs_NC: np.ndarray) -> np.ndarray:
    # p = 0 contributes 0: the log of the clipped value is finite.
    logs_NC = np.log(np.maximum(probs_NC, np.finfo(probs_NC.dtype).tiny))
    return -np.einsum("nc,nc->n", probs_NC, logs_NC)


def _mutual_information(log_probs_NKC: np.ndarray) -> np.ndarray:
    samples = log_probs_NKC.shape[1]
    # In float64, as the two entropies are nearly equal.
    log_probs_NKC = log_probs_NKC.astype(np.float64)
    # log 0 is clipped to the log of the smallest number; p log p is then negligible.
    logs_NKC = np.maximum(log_probs_NKC, np.log(np.finfo(log_probs_NKC.dtype).tiny))
    probs_NKC = np.exp(logs_NKC)
    expected_N = -np.einsum("nkc,nkc->n", probs_NKC, logs_NKC) / samples
    return _entropy(np.einsum("nkc->nc", probs_NKC) / samples) - expected_N
