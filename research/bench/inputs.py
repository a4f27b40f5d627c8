"""Made-up model outputs, the same for every tool: clustered features and what a model says."""

from __future__ import annotations

import copy
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sabal.core.arrays import row_chunks

POSTERIOR_SAMPLES = 20
LABELED = 100
JOINT_SAMPLES = 10_000
"""How many joint outcomes BatchBALD draws: Sabal's default, and asked of every library."""

CHUNK_BYTES = 64 * 2**20
"""Features that are made at a time."""


@dataclass(frozen=True)
class Maker:
    """Clusters, ten to a class, with noise of the same size, and a linear model over them."""

    centres: np.ndarray
    weights: np.ndarray

    @classmethod
    def draw(cls, rng: np.random.Generator, dimensions: int, classes: int) -> Maker:
        """Clusters and a model."""
        centres = draw_centres(rng, dimensions, classes)
        return cls(centres, draw_weights(rng, dimensions, classes))

    def features(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """More items, in any of the clusters."""
        found = rng.standard_normal((rows, self.centres.shape[1]), dtype=np.float32)
        found += self.centres[rng.integers(len(self.centres), size=rows)]
        return found

    def predictions(self, features: np.ndarray) -> dict[str, np.ndarray]:
        """What the model says of some items, and a less sure version of it for their labels."""
        return predictions_of(features @ self.weights)


def write_inputs(
    path: Path,
    n: int,
    *,
    dimensions: int = 512,
    classes: int = 10,
    seed: int = 0,
    posterior: bool = True,
) -> Path:
    """Write the inputs for a pool of `n` items to `path` (.npz), in single precision.

    features (n, dimensions): clusters, ten to a class, and noise of the same size. logits and
    probs: a linear model that is undecided between clusters. label_probs: the same, less sure.
    log_probs (n, samples, classes): the linear model under perturbed weights, shared by all items;
    left out without `posterior`.
    labeled_features (100, dimensions): more items from the same clusters.

    Features are made a chunk at a time, and never held all at once.
    """
    rng = np.random.default_rng([seed, n, dimensions, classes])
    centres = draw_centres(rng, dimensions, classes)
    items = n + LABELED
    # The noise comes first in the stream, so it is drawn twice: here to get past it, and again
    # chunk by chunk once the clusters of all items are known.
    noise = copy.deepcopy(rng)
    for rows in _chunks(items, dimensions):
        rng.standard_normal((rows.stop - rows.start, dimensions), dtype=np.float32)
    clusters = rng.integers(len(centres), size=items)
    weights = draw_weights(rng, dimensions, classes)
    samples = POSTERIOR_SAMPLES if posterior else 0
    jittered = [weights + 0.5 * draw_weights(rng, dimensions, classes) for _ in range(samples)]
    logits = np.empty((n, classes), dtype=np.float32)
    log_probs = np.empty((n, samples, classes), dtype=np.float32)

    def features(stop: int, start: int = 0) -> Iterator[np.ndarray]:
        for rows in _chunks(stop - start, dimensions):
            rows = slice(start + rows.start, start + rows.stop)
            chunk = noise.standard_normal((rows.stop - rows.start, dimensions), dtype=np.float32)
            chunk += centres[clusters[rows]]
            if start == 0:
                logits[rows] = chunk @ weights
                for k, sample in enumerate(jittered):
                    log_probs[rows, k] = _log_softmax(chunk @ sample)
            yield chunk

    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        _write(archive, "features", (n, dimensions), features(n))
        _write(archive, "labeled_features", (LABELED, dimensions), features(items, n))
        others = {"logits": logits, **predictions_of(logits)}
        if posterior:
            others["log_probs"] = log_probs
        for name, array in others.items():
            _write(archive, name, array.shape, iter([array]))
        with archive.open("joint_samples.npy", "w") as file:
            np.lib.format.write_array(file, np.asarray(np.int64(JOINT_SAMPLES)))
    return path


def draw_centres(rng: np.random.Generator, dimensions: int, classes: int) -> np.ndarray:
    """The centres of the clusters, ten to a class."""
    return rng.standard_normal((10 * classes, dimensions), dtype=np.float32)


def draw_weights(rng: np.random.Generator, dimensions: int, classes: int) -> np.ndarray:
    """A linear model whose logits have a standard deviation of about 2, whatever the dimension."""
    scale = np.float32(np.sqrt(2.0 / dimensions))
    return scale * rng.standard_normal((dimensions, classes), dtype=np.float32)


def predictions_of(logits: np.ndarray) -> dict[str, np.ndarray]:
    """Probabilities, and less sure ones for the labels."""
    return {
        "probs": np.exp(_log_softmax(logits)),
        "label_probs": np.exp(_log_softmax(logits / 1.5)),
    }


def _chunks(rows: int, dimensions: int) -> Iterator[slice]:
    return row_chunks(rows, 4 * dimensions, CHUNK_BYTES)


def _write(
    archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], chunks: Iterator[np.ndarray]
) -> None:
    """An array of single precision, as `np.savez` writes it, out of its rows in order."""
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for chunk in chunks:
            file.write(np.ascontiguousarray(chunk, dtype="<f4").data)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
