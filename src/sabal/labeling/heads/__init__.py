"""Heads: what learns from the features, trained anew in every round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from sabal.labeling.heads.choice import LENET, LINEAR, name_of_head
from sabal.labeling.heads.linear import LinearHead, read_head
from sabal.loop.rounds import Learner

__all__ = ["LENET", "LINEAR", "Head", "LinearHead", "make_head", "name_of_head", "read_head"]


class Head(Learner, Protocol):
    """A learner of the loop whose held-out items are rows of the pool, too."""

    class_names: tuple[str, ...]

    @property
    def trained(self) -> bool:
        """Whether it has learnt anything."""

    def measure(self, items: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        """Accuracy and log loss on rows that were not trained on."""

    def probs(self, items: np.ndarray) -> np.ndarray:
        """(items, classes): what the model says of rows of the pool."""

    def space(self, items: np.ndarray) -> np.ndarray:
        """(items, d): rows of the pool as the last layer sees them."""


def make_head(name: str, features_ND: np.ndarray, class_names: Sequence[str]) -> Head:
    """The head called `name`, which knows the pool and has learnt nothing yet."""
    if name == LINEAR:
        return LinearHead(features_ND, class_names)
    from sabal.labeling.heads.lenet import LeNetHead

    return LeNetHead(features_ND, class_names)
