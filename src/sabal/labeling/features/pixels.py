"""Small pixels: the features of images where no network is installed.

A logistic head on 16 x 16 pixels knows digits and icons, and little of photographs; a LeNet-style
net on them would be a model of its own, which this version does without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from sabal.labeling.features.pictures import open_picture
from sabal.labeling.store import Item

SMALLEST, LARGEST = 8, 32


class Pixels:
    """Images scaled to a small square, in RGB, from 0 to 1.

    size: four times the side, which is kept between 8 and 32.
    """

    def __init__(self, find: Callable[[str], Path], size: int) -> None:
        self.find = find
        self.side = min(max(size // 4, SMALLEST), LARGEST)

    def rows(self, items: Sequence[Item]) -> np.ndarray:
        """(items, side * side * 3)."""
        rows = [self._row(self.find(item.content)) for item in items]
        return np.asarray(rows, dtype=np.float32)

    def _row(self, path: Path) -> np.ndarray:
        small = open_picture(path).resize((self.side, self.side))
        return np.asarray(small, dtype=np.float32).ravel() / 255
