"""A LeNet-style network on small pixels, trained from scratch in seconds; needs PyTorch.

It is the learner of `sabal simulate --model lenet5`. Its last hidden layer is what batches are
chosen by.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import sabal.models as models
from sabal.core.arrays import to_host
from sabal.learners.network_learner import NetworkLearner
from sabal.learners.recipes import recipe_of

# Small batches: few labels are many steps then, which is what a network from scratch needs.
RECIPE = recipe_of("lenet5", {"epochs": 60, "batch_size": 8})
MOST_STEPS = 1_500
"""Of an optimiser in one training, a few milliseconds each: labels come faster than in minutes."""
LEAST_EPOCHS = 3


class LeNetHead(NetworkLearner):
    """Learns from rows of the pool, which are square images, and is measured on others of them."""

    def __init__(self, pixels_ND: np.ndarray, class_names: Sequence[str]) -> None:
        side = math.isqrt(pixels_ND.shape[1] // 3)
        images = pixels_ND.reshape(len(pixels_ND), side, side, 3)
        # Nothing is held out yet: the one test image is there for its shape, until `measure`.
        super().__init__(RECIPE, images, images[:1], np.zeros(1, dtype=np.int64), len(class_names))
        self.class_names = tuple(class_names)

    @property
    def trained(self) -> bool:
        """Whether it has learnt anything."""
        return self.network is not None

    def train(
        self, items: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, seed: int
    ) -> None:
        """Forget everything and learn anew, in fewer epochs the more labels there are."""
        from threadpoolctl import threadpool_limits

        steps = math.ceil(len(items) / RECIPE.batch_size)
        epochs = min(RECIPE.epochs, max(MOST_STEPS // steps, LEAST_EPOCHS))
        self.recipe = replace(RECIPE, epochs=epochs)
        # Steps this small gain nothing from more threads, which on a busy machine wait for each
        # other most of the time: ten times as long was measured.
        with threadpool_limits(1, user_api="openmp"):
            super().train(items, labels, weights, seed)

    def measure(self, items: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        """Accuracy and log loss on rows that were not trained on."""
        self.x_test, self.y_test = self.x_pool[items], labels
        return self.metrics()

    def probs(self, items: np.ndarray) -> np.ndarray:
        """(items, classes): what the network says of rows of the pool."""
        return to_host(models.pool_outputs(self._model, self.x_pool[items]).probs)

    def space(self, items: np.ndarray) -> np.ndarray:
        """(items, d): rows of the pool as the last layer sees them."""
        if not self.trained:
            return self._pixels(items)
        return to_host(models.pool_outputs(self._model, self.x_pool[items]).features)
