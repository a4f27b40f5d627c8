"""Features of images: what a pretrained network computes, or small pixels where there is none.

A linear head on 16 x 16 pixels can tell digits and icons apart, and a LeNet-style network on
28 x 28 pixels simple shapes. Neither is enough for photographs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sabal.errors import FileError
from sabal.labeling.store.records import PoolItem

MAX_PIXELS = 50_000_000
MAX_SIDE = 1024  # of an image of which features are computed
IMAGE_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
"""The formats that are read, whatever a file calls itself: some others start programs."""
MIN_PIXEL_SIDE, MAX_PIXEL_SIDE = 8, 32
MIN_NETWORK_SIDE = 28  # the size that LeNet-5 was designed for
IMAGES_PER_BATCH = 32


class PixelFeatures:
    """Images scaled to a small square, in RGB, from 0 to 1."""

    def __init__(self, find: Callable[[str], Path], side: int) -> None:
        self.find, self.side = find, side

    def rows(self, items: Sequence[PoolItem]) -> np.ndarray:
        """Return the pixels as an (items, side * side * 3) array."""
        rows = [self._row(self.find(item.content)) for item in items]
        return np.asarray(rows, dtype=np.float32)

    def _row(self, path: Path) -> np.ndarray:
        small = open_image(path).resize((self.side, self.side))
        return np.asarray(small, dtype=np.float32).ravel() / 255


class NetworkFeatures:
    """The input of the last layer of a pretrained network; see `sabal.models.backbones`."""

    def __init__(self, name: str, find: Callable[[str], Path]) -> None:
        from sabal.models.backbones import embedding

        self.embed, self.find = embedding(name), find

    def rows(self, items: Sequence[PoolItem]) -> np.ndarray:
        """Return the features as an (items, d) array, computed a few images at a time."""
        parts = [
            self.embed(
                [open_image(self.find(item.content)) for item in items[k : k + IMAGES_PER_BATCH]]
            )
            for k in range(0, len(items), IMAGES_PER_BATCH)
        ]
        return np.concatenate(parts)


def pixel_side(size: int, *, network: bool) -> int:
    """Return a quarter of the setting `size`, limited to what the head can use."""
    return min(max(size // 4, MIN_NETWORK_SIDE if network else MIN_PIXEL_SIDE), MAX_PIXEL_SIDE)


def open_image(path: Path) -> Any:
    """Return the image at `path` in RGB and upright; refuse one that is too large."""
    from PIL import Image, ImageOps

    bombs = Image.DecompressionBombError, Image.DecompressionBombWarning
    try:
        with Image.open(path, formats=IMAGE_FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ValueError(f"{image.width} x {image.height} pixels")
            # A batch of images is kept at this size, and no network looks at more pixels.
            image.draft("RGB", (MAX_SIDE, MAX_SIDE))
            image.thumbnail((MAX_SIDE, MAX_SIDE))
            return ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, ValueError, SyntaxError, *bombs) as error:
        raise FileError(
            f"a readable image of at most {MAX_PIXELS // 1_000_000} megapixels at {path}",
            str(error),
            "repair or replace it",
        ) from None
