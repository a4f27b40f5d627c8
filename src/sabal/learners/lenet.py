"""A LeNet-style network on small images, trained from scratch in seconds; needs PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sabal.learners.network_learner import NetworkLearner
from sabal.learners.network_recipes import recipe_of

# Small batches: even few labels then give the many steps that a network from scratch needs.
RECIPE = recipe_of("lenet5", {"epochs": 60, "batch_size": 8})
MAX_STEPS = 1_500  # optimiser steps of one training; at a few milliseconds each, it takes seconds
MIN_EPOCHS = 3


class LeNetLearner(NetworkLearner):
    """The network of `sabal simulate --model lenet5`, with a limited number of steps.

    Parameters
    ----------
    pixels_ND : numpy.ndarray
        Square RGB images, each flattened into a row.
    classes : int or sequence of str
        The number of classes, or their names.
    """

    def __init__(self, pixels_ND: np.ndarray, classes: int | Sequence[str]) -> None:
        side = math.isqrt(pixels_ND.shape[1] // 3)
        super().__init__(RECIPE, pixels_ND.reshape(len(pixels_ND), side, side, 3), classes)

    def train(
        self, items: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, seed: int
    ) -> None:
        """Train a new network, in fewer epochs the more labels there are."""
        from threadpoolctl import threadpool_limits

        steps = math.ceil(len(items) / RECIPE.batch_size)
        epochs = min(RECIPE.epochs, max(MAX_STEPS // steps, MIN_EPOCHS))
        self.recipe = replace(RECIPE, epochs=epochs)
        # Steps this small gain nothing from more threads, which on a busy machine wait for each
        # other most of the time: ten times as long was measured.
        with threadpool_limits(1, user_api="openmp"):
            super().train(items, labels, weights, seed)
