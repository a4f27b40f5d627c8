"""Slow, obvious twins of the model code, item by item and sample by sample in plain NumPy."""

from __future__ import annotations

import numpy as np


def softmax(logits):
    e = np.exp(logits - logits.max())
    return e / e.sum()


def head_log_probs(features, weights, biases):
    """log softmax(W_k h + b_k), one item and one sample at a time."""
    return np.array(
        [
            [np.log(softmax(w @ h + b)) for w, b in zip(weights, biases, strict=True)]
            for h in features
        ]
    )


def gaussian_kl(mean, std, prior_variance):
    """KL(N(m, s^2) || N(0, v)), one weight at a time."""
    total = 0.0
    for m, s in zip(np.ravel(mean), np.ravel(std), strict=True):
        total += np.log(np.sqrt(prior_variance) / s) + (s**2 + m**2) / (2 * prior_variance) - 0.5
    return total


def gauss_newton(features, probs, weights):
    """sum_j w_j Lam_j (x) h_j h_j', an explicit Kronecker product per item."""
    count = features.shape[1] * probs.shape[1]
    total = np.zeros((count, count))
    for h, p, w in zip(features, probs, weights, strict=True):
        total += w * np.kron(np.diag(p) - np.outer(p, p), np.outer(h, h))
    return total


def kronecker_gauss_newton(features, probs, weights):
    """(sum_j w_j Lam_j) (x) (sum_j w_j h_j h_j' / sum_j w_j)."""
    outer = sum(w * (np.diag(p) - np.outer(p, p)) for p, w in zip(probs, weights, strict=True))
    inner = sum(w * np.outer(h, h) for h, w in zip(features, weights, strict=True))
    return np.kron(outer, inner / np.sum(weights))


def shifted_copies(image, padding=4):
    """Every image that crop and flip can make of one, as a set of bytes."""
    channels, height, width = image.shape
    padded = np.zeros((channels, height + 2 * padding, width + 2 * padding), image.dtype)
    padded[:, padding:-padding, padding:-padding] = image
    copies = set()
    for top in range(2 * padding + 1):
        for left in range(2 * padding + 1):
            crop = padded[:, top : top + height, left : left + width]
            copies |= {crop.tobytes(), np.ascontiguousarray(crop[:, :, ::-1]).tobytes()}
    return copies
