"""Synthetic model outputs, the same for every library: clustered features and predictions."""

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
"""Joint outcomes drawn by BatchBALD: Sabal's default, used for every library."""

CHUNK_BYTES = 64 * 2**20
"""Size of the features generated at a time."""


@dataclass(frozen=True)
class SyntheticData:
    """Clusters, ten for each class, with noise of the same scale, and a linear model over them."""

    centres: np.ndarray
    weights: np.ndarray

    @classmethod
    def draw(cls, rng: np.random.Generator, dimensions: int, classes: int) -> SyntheticData:
        """Draw the clusters and the model."""
        centres = draw_centres(rng, dimensions, classes)
        return cls(centres, draw_weights(rng, dimensions, classes))

    def features(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Draw items from random clusters."""
        found = rng.standard_normal((rows, self.centres.shape[1]), dtype=np.float32)
        found += self.centres[rng.integers(len(self.centres), size=rows)]
        return found

    def predictions(self, features: np.ndarray) -> dict[str, np.ndarray]:
        """Return the predictions of the model, and less confident ones for the labels."""
        return predictions_of(features @ self.weights)


def write_inputs(
    path: Path,
    n: int,
    *,
    dimensions: int = 512,
    classes: int = 10,
    seed: int = 0,
    posterior: bool = True,
    labeled: int = LABELED,
) -> Path:
    """Write the inputs for a pool of `n` items to an .npz file, in single precision.

    The arrays are features (n, dimensions), clusters with noise of the same scale; logits and
    probs, a linear model; label_probs, the same, less confident; with `posterior`, log_probs (n,
    samples, classes), the linear model under perturbed weights, shared by all items; and
    labeled_features (labeled, dimensions), more items of the same clusters. Features are generated
    in chunks and never held in memory completely.
    """
    rng = np.random.default_rng([seed, n, dimensions, classes])
    centres = draw_centres(rng, dimensions, classes)
    items = n + labeled
    # The noise comes first in the stream, so it is drawn twice: here to skip it, and again in
    # chunks once the clusters of all items are known.
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
        _write(archive, "labeled_features", (labeled, dimensions), features(items, n))
        others = {"logits": logits, **predictions_of(logits)}
        for name, array in (others | ({"log_probs": log_probs} if posterior else {})).items():
            _write(archive, name, array.shape, iter([array]))
        with archive.open("joint_samples.npy", "w") as file:
            np.lib.format.write_array(file, np.asarray(np.int64(JOINT_SAMPLES)))
    return path


def draw_centres(rng: np.random.Generator, dimensions: int, classes: int) -> np.ndarray:
    """Draw the centres of the clusters, ten for each class."""
    return rng.standard_normal((10 * classes, dimensions), dtype=np.float32)


def draw_weights(rng: np.random.Generator, dimensions: int, classes: int) -> np.ndarray:
    """Draw a linear model whose logits have a standard deviation of about 2 in any dimension."""
    scale = np.float32(np.sqrt(2.0 / dimensions))
    return scale * rng.standard_normal((dimensions, classes), dtype=np.float32)


def predictions_of(logits: np.ndarray) -> dict[str, np.ndarray]:
    """Return probabilities, and less confident ones for the labels."""
    return {
        "probs": np.exp(_log_softmax(logits)),
        "label_probs": np.exp(_log_softmax(logits / 1.5)),
    }


def _chunks(rows: int, dimensions: int) -> Iterator[slice]:
    return row_chunks(rows, 4 * dimensions, CHUNK_BYTES)


def _write(
    archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], chunks: Iterator[np.ndarray]
) -> None:
    """Write an array in single precision from its rows in order, as `np.savez` does."""
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for chunk in chunks:
            file.write(np.ascontiguousarray(chunk, dtype="<f4").data)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
