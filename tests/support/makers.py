"""Made-up model outputs for tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Pool:
    features: np.ndarray
    logits: np.ndarray
    probs: np.ndarray
    label_probs: np.ndarray
    log_probs: np.ndarray

    def kwargs(self, convert=np.asarray, dtype="float64", names=None):
        """The arrays as keyword arguments of `select`, in some library and dtype."""
        names = names or ("features", "probs", "label_probs", "log_probs")
        return {name: convert(getattr(self, name).astype(dtype)) for name in names}


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def make_pool(n=40, dimensions=5, classes=4, samples=6, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, dimensions))
    weights = rng.normal(size=(dimensions, classes))
    logits = features @ weights
    jitter = rng.normal(size=(samples, dimensions, classes)) * 0.4
    posterior = np.einsum("nd,kdc->nkc", features, weights[None] + jitter)
    return Pool(
        features=features,
        logits=logits,
        probs=softmax(logits),
        label_probs=softmax(logits / 2.0),
        log_probs=np.log(softmax(posterior)),
    )


def random_images(n, *shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, size=(n, *shape), dtype=np.uint8)


def by_atoms(atoms):
    """Arguments of `select` for the strategy that has these atoms."""
    if atoms == "coverage":
        return {"strategy": "sabal"}
    return {
        "strategy": "sabal-kernel" if atoms in ("kernel", "curvature") else "sabal-greedy",
        "atoms": atoms,
    }
