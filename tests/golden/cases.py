"""The pools, strategies and seeds whose batches are recorded in batches.json."""

from __future__ import annotations

import numpy as np

SEEDS = (0, 1)
BUDGETS = {"classes": 40, "posterior": 30, "small": 12, "labels": 15, "regression": 15}

SLOW_ON = {"bait": ("classes",), "batchbald": ("classes",)}
"""Pools that are left out for strategies that take long on them."""


def pools():
    """Arrays by name, for every pool; made without products of matrices, so the same anywhere."""
    return {
        "classes": _classes(),
        "posterior": _posterior(),
        "small": _small(),
        "labels": _labels(),
        "regression": _regression(),
    }


def losses():
    return {"labels": "sigmoid", "regression": "squared"}


def _softmax(logits):
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def _classes():
    """Larger than two segments of a pool, and than what is gathered whole."""
    rng = np.random.default_rng(11)
    n, d, classes = 9000, 12, 5
    group = rng.integers(classes, size=n)
    features = rng.normal(size=(n, d)).astype(np.float32)
    features[np.arange(n), group] += 2.0
    logits = (rng.normal(size=(n, classes)) * 0.7).astype(np.float32)
    logits[np.arange(n), group] += 1.5
    labels = _softmax(logits.astype(np.float64) / 1.7)
    labeled = rng.normal(size=(30, d)).astype(np.float32)
    return {
        "features": features,
        "logits": logits,
        "label_probs": labels.astype(np.float32),
        "labeled_features": labeled,
    }


def _posterior():
    rng = np.random.default_rng(12)
    n, samples, classes, d = 2500, 8, 4, 6
    shared = rng.normal(size=(n, 1, classes)) * 2.0
    logits = shared + rng.normal(size=(n, samples, classes))
    return {
        "features": rng.normal(size=(n, d)),
        "log_probs": np.log(_softmax(logits)),
    }


def _small():
    """Duplicates, ties and items that the model is certain of."""
    rng = np.random.default_rng(13)
    n, d, classes = 300, 4, 3
    features = np.round(rng.normal(size=(n, d)), 1)
    features[100:150] = features[:50]
    probs = rng.dirichlet(np.ones(classes), size=n)
    probs[:20] = 1.0 / classes
    probs[20:40] = [1.0, 0.0, 0.0]
    return {"features": features, "probs": probs}


def _labels():
    rng = np.random.default_rng(14)
    return {"features": rng.normal(size=(700, 5)), "probs": rng.random((700, 6))}


def _regression():
    rng = np.random.default_rng(15)
    n = 600
    means = rng.normal(size=(n, 2))
    return {
        "features": rng.normal(size=(n, 5)),
        "means": means,
        "variances": rng.gamma(2.0, size=(n, 2)),
        "label_means": means + 0.3 * rng.normal(size=(n, 2)),
    }


KERNEL = ("kernel", "curvature")


def requests():
    """(key, strategy, options): every strategy, and those variants that take another path."""
    yield from ((f"sabal-kernel/{atoms}", "sabal-kernel", {"atoms": atoms}) for atoms in KERNEL)
    plain = (
        "random entropy margin least-confidence bald power-bald "
        "batchbald bayesian-coreset kcenter badge bait typiclust cluster-margin "
        "uncertainty-herding max-herding prob-cover drop-query"
    )
    yield from ((name, name, {}) for name in plain.split())
    # Recorded when the variance of the atoms was the default uncertainty, and all items were
    # candidates of `sabal-iht`.
    variance = {"uncertainty": "variance", "alpha": 1.0, "candidates": None}
    for name in ("sabal-greedy", "sabal-iht"):
        yield name, name, variance
        yield f"{name}/default", name, {}
    yield "sabal-iht/all", "sabal-iht", {"candidates": None}
    # Recorded when all items were candidates.
    former = {"metric": "euclidean", "radius": 1.0}
    entropy = {"metric": "euclidean", "uncertainty": "entropy", "radius": 0.5, "share": 1.0}
    yield "sabal", "sabal", {**former, "share": 1.0}
    yield "sabal/default", "sabal", {}
    yield "sabal/entropy", "sabal", entropy
    yield "sabal/euclidean", "sabal", former
    literal = {"scale": "literal", "alpha": 0.5, "beta": 0.1}
    corrected = {**literal, "score": "optimal-step", "refresh": "auto"}
    yield "sabal-greedy/literal", "sabal-greedy", corrected
    yield "sabal-greedy/printed", "sabal-greedy", {**variance, "score": "first-order", "refresh": 1}
    yield "sabal-greedy/candidates", "sabal-greedy", {**variance, "candidates": 10, "refit": True}
    yield "sabal-iht/literal", "sabal-iht", {"scale": "literal", "prox": "appendix"}
