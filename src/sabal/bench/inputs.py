"""Made-up model outputs, the same for every tool: clustered features and what a model says."""

from __future__ import annotations

from pathlib import Path

import numpy as np

POSTERIOR_SAMPLES = 20
LABELED = 100
JOINT_SAMPLES = 10_000
"""How many joint outcomes BatchBALD draws: Sabal's default, and asked of every library."""


def write_inputs(
    path: Path, n: int, *, dimensions: int = 512, classes: int = 10, seed: int = 0
) -> Path:
    """Write the inputs for a pool of `n` items to `path` (.npz), in single precision.

    features (n, dimensions): clusters, ten to a class, and noise of the same size. logits and
    probs: a linear model that is undecided between clusters. label_probs: the same, less sure.
    log_probs (n, samples, classes): the linear model under perturbed weights, shared by all items.
    labeled_features (100, dimensions): more items from the same clusters.
    """
    rng = np.random.default_rng([seed, n, dimensions, classes])
    centres = rng.standard_normal((10 * classes, dimensions), dtype=np.float32)
    items = n + LABELED
    features = rng.standard_normal((items, dimensions), dtype=np.float32)
    features += centres[rng.integers(len(centres), size=items)]
    features, labeled_features = features[:n], features[n:]
    # Logits with a standard deviation of about 2, whatever the dimension.
    scale = np.float32(np.sqrt(2.0 / dimensions))
    weights = scale * rng.standard_normal((dimensions, classes), dtype=np.float32)
    logits = features @ weights
    log_probs = np.empty((n, POSTERIOR_SAMPLES, classes), dtype=np.float32)
    for k in range(POSTERIOR_SAMPLES):
        jitter = 0.5 * scale * rng.standard_normal((dimensions, classes), dtype=np.float32)
        log_probs[:, k] = _log_softmax(features @ (weights + jitter))
    np.savez(
        path,
        features=features,
        logits=logits,
        probs=np.exp(_log_softmax(logits)),
        label_probs=np.exp(_log_softmax(logits / 1.5)),
        log_probs=log_probs,
        labeled_features=labeled_features,
        joint_samples=np.int64(JOINT_SAMPLES),
    )
    return path


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
