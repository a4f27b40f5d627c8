"""Training data, and the batches that a seed makes of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sabal.core.checks import check_choice
from sabal.errors import InputError
from sabal.models.augment import crop_flip
from sabal.models.inputs import (
    Headed,
    Items,
    batch_of,
    check_item_weights,
    check_items,
    check_labels,
    classes_of,
)
from sabal.models.seeds import Stream, generator_of


class TrainingData:
    """Items with their labels and importance weights, in random batches."""

    def __init__(
        self,
        network: Headed,
        x: Any,
        y: Any,
        weights: Any,
        augment: str | None,
        batch_size: int,
        seed: int,
    ) -> None:
        self.items = check_items(x, network)
        n = self.items.shape[0]
        self.labels = check_labels(y, n, classes_of(network))
        self.weights_N = torch.from_numpy(check_item_weights(weights, n)).float()
        self.total_weight = float(self.weights_N.sum())
        # An item of weight 0 must not enter the statistics of batch norm either.
        self.kept = torch.nonzero(self.weights_N)[:, 0]
        _check_batch_norm(network, min(batch_size, self.kept.numel()))
        if augment is not None:
            check_choice(augment, "augment", ("crop-flip",))
            _check_images(self.items)
        self.augmented = augment is not None
        self.batch_size = batch_size
        self.order = generator_of(seed, Stream.BATCHES)
        self.shifts = generator_of(seed, Stream.AUGMENTATION)

    def batches(self) -> list[Tensor]:
        """The rows of an epoch's batches, in random order."""
        shuffled = self.kept[torch.randperm(len(self.kept), generator=self.order)]
        batches = list(torch.split(shuffled, self.batch_size))
        if len(batches) > 1 and len(batches[-1]) == 1:
            # Batch norm has no variance to divide by in a batch of one.
            last = batches.pop()
            batches[-1] = torch.cat([batches[-1], last])
        return batches

    def inputs(self, rows: Tensor, network: Headed) -> Tensor:
        """The items of one batch, augmented where asked for."""
        batch = batch_of(self.items, rows, network)
        return crop_flip(batch, self.shifts) if self.augmented else batch


def _check_images(items: Items) -> None:
    if items.ndim != 4:
        raise InputError(
            "images (items, channels, height, width) for augment='crop-flip'",
            f"shape {tuple(items.shape)}",
            "leave augment out",
        )


def _check_batch_norm(network: nn.Module, largest_batch: int) -> None:
    if largest_batch == 1 and any(
        isinstance(m, nn.modules.batchnorm._BatchNorm) for m in network.modules()
    ):
        raise InputError(
            "batches of at least 2 items for a network with batch norm",
            "batches of 1",
            "raise batch_size, or label more first",
        )
