"""How undecided a model is about each item. Larger is more uncertain; each returns NumPy floats."""

from __future__ import annotations

import numpy as np

from sabal.arrays import Array, namespace, row_chunks, to_host


def margin(probs_NC: Array) -> np.ndarray:
    """1 - (p_(1) - p_(2)): near 1 where the two best classes are level."""
    n, classes = probs_NC.shape
    result_N = np.empty(n)
    for rows in row_chunks(n, 8 * classes):
        chunk = to_host(probs_NC[rows])
        if classes == 1:
            result_N[rows] = 1.0 - chunk[:, 0]
        else:
            best_two = np.partition(chunk, classes - 2, axis=1)[:, -2:]
            result_N[rows] = 1.0 - (best_two[:, 1] - best_two[:, 0])
    return np.maximum(result_N, 0.0)


def least_confidence(probs_NC: Array) -> np.ndarray:
    """1 - p_(1): the probability that the model's guess is wrong, by its own account."""
    xp = namespace(probs_NC)
    return np.maximum(1.0 - to_host(xp.max(probs_NC, axis=1)), 0.0)


def entropy(probs_NC: Array) -> np.ndarray:
    """-sum_y p(y) log p(y) in nats, with 0 log 0 = 0."""
    n, classes = probs_NC.shape
    result_N = np.empty(n)
    for rows in row_chunks(n, 8 * classes):
        result_N[rows] = _entropy(to_host(probs_NC[rows]))
    return result_N


def mutual_information(log_probs_NKC: Array) -> np.ndarray:
    """I(y; theta | x) = H(mean_k p_k) - mean_k H(p_k) (BALD; Houlsby et al. 2011, eq. 2)."""
    n, samples, classes = log_probs_NKC.shape
    result_N = np.empty(n)
    for rows in row_chunks(n, 8 * samples * classes):
        probs_NKC = np.exp(to_host(log_probs_NKC[rows]))
        result_N[rows] = _entropy(probs_NKC.mean(axis=1)) - _entropy(probs_NKC).mean(axis=1)
    # Never negative (Jensen); rounding may say otherwise.
    return np.maximum(result_N, 0.0)


def _entropy(probs: np.ndarray) -> np.ndarray:
    # p = 0 contributes 0; log of the clipped value keeps it finite and the product exact.
    return -(probs * np.log(np.maximum(probs, np.finfo(np.float64).tiny))).sum(axis=-1)
