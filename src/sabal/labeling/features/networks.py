"""Images through a pretrained network; the networks themselves are in `sabal.models`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from sabal.labeling.features.pictures import open_picture
from sabal.labeling.store import Item

AT_ONCE = 32


class NetworkFeatures:
    """What reaches the last layer of a frozen network."""

    def __init__(self, embed: Callable[[list[object]], np.ndarray], find: Callable[[str], Path]):
        self.embed, self.find = embed, find

    def rows(self, items: Sequence[Item]) -> np.ndarray:
        """(items, d), a few images at a time."""
        parts = [
            self.embed([open_picture(self.find(item.content)) for item in items[k : k + AT_ONCE]])
            for k in range(0, len(items), AT_ONCE)
        ]
        return np.concatenate(parts)


def image_network(name: str, find: Callable[[str], Path]) -> NetworkFeatures:
    """The network called `name`, out of whichever package has it."""
    from sabal.models.backbones import embedding

    return NetworkFeatures(embedding(name), find)
