"""Small pixels: the features of images where no pretrained network is installed.

A linear head on 16 x 16 of them knows digits and icons; a LeNet-style network on 28 x 28, shapes
too. Neither knows much of photographs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from sabal.labeling.features.pictures import open_picture
from sabal.labeling.store import Item

SMALLEST, LARGEST = 8, 32
SMALLEST_FOR_NETWORK = 28
"""What LeNet-5 was made for."""


def side_of(size: int, *, network: bool) -> int:
    """A quarter of the setting `size`, within what a linear head or a network makes sense of."""
    return min(max(size // 4, SMALLEST_FOR_NETWORK if network else SMALLEST), LARGEST)


class Pixels:
    """Images scaled to a small square, in RGB, from 0 to 1."""

    def __init__(self, find: Callable[[str], Path], side: int) -> None:
        self.find, self.side = find, side

    def rows(self, items: Sequence[Item]) -> np.ndarray:
        """(items, side * side * 3)."""
        rows = [self._row(self.find(item.content)) for item in items]
        return np.asarray(rows, dtype=np.float32)

    def _row(self, path: Path) -> np.ndarray:
        small = open_picture(path).resize((self.side, self.side))
        return np.asarray(small, dtype=np.float32).ravel() / 255
