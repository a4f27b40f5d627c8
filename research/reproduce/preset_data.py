"""The data set of a preset: images resized, and the test set cut."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sabal.core.arrays import row_chunks
from sabal.simulate.datasets.catalog import Dataset, load

if TYPE_CHECKING:
    from research.reproduce.preset import Preset

TEST_SEED = 20190805
"""Draws the test items, in every run alike."""


def data_of(preset: Preset, data_dir: str | None) -> Dataset:
    """Load the data set of a preset."""
    return _loaded(preset.dataset, preset.image, preset.test, data_dir)


# A process does many runs on the same data.
@lru_cache(maxsize=1)
def _loaded(
    name: str, image: tuple[int, int] | None, test: int | None, data_dir: str | None
) -> Dataset:
    dataset = load(name, data_dir=data_dir)
    if test is not None and test < len(dataset.x_test):
        drawn = np.random.default_rng(TEST_SEED).permutation(len(dataset.x_test))[:test]
        rows = np.sort(drawn)
        dataset = replace(dataset, x_test=dataset.x_test[rows], y_test=dataset.y_test[rows])
    if image is not None:
        x_train, x_test = (resized(x, *image) for x in (dataset.x_train, dataset.x_test))
        dataset = replace(dataset, x_train=x_train, x_test=x_test)
    return dataset


def resized(images: np.ndarray, side: int, channels: int) -> np.ndarray:
    """Return 8-bit images (n, h, w) or (n, h, w, c) of another size, by bilinear interpolation.

    Grey images are repeated in every channel.
    """
    grey = images.ndim == 3
    source = images[..., None] if grey else images
    found = np.empty((len(images), side, side, source.shape[3]), np.uint8)
    for rows in row_chunks(len(images), 16 * side * side * source.shape[3]):
        across = _interpolated(source[rows].astype(np.float32), side, axis=1)
        found[rows] = np.rint(_interpolated(across, side, axis=2)).astype(np.uint8)
    return np.repeat(found, channels, axis=3) if found.shape[3] == 1 else found


def _interpolated(x: np.ndarray, side: int, axis: int) -> np.ndarray:
    """Interpolate along one axis between the centres of pixels; the border is repeated."""
    size = x.shape[axis]
    at = np.clip((np.arange(side) + 0.5) * size / side - 0.5, 0, size - 1)
    low = np.minimum(at.astype(np.int64), size - 2)
    shape = [1] * x.ndim
    shape[axis] = side
    share = (at - low).astype(np.float32).reshape(shape)
    return x.take(low, axis) * (1 - share) + x.take(low + 1, axis) * share
