"""Training data, and its random batches with augmentation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sabal.errors import InputError
from sabal.models.inputs import (
    HeadedNetwork,
    check_item_weights,
    check_items,
    check_labels,
    count_classes,
    take_batch,
)
from sabal.models.random_streams import Stream, make_generator

PADDING = 4  # the largest shift of an augmented image, in pixels


class TrainingData:
    """Items with their labels and importance weights, in random batches."""

    def __init__(
        self,
        network: HeadedNetwork,
        x: Any,
        y: Any,
        weights: Any,
        *,
        augment: str | None,
        batch_size: int,
        drop_last: bool,
        seed: int,
    ) -> None:
        self.items = check_items(x, network)
        n = self.items.shape[0]
        self.labels = check_labels(y, n, count_classes(network))
        self.weights_N = torch.from_numpy(check_item_weights(weights, n)).float()
        self.total_weight = float(self.weights_N.sum())
        # An item of weight 0 must not enter the statistics of batch norm either.
        self.kept = torch.nonzero(self.weights_N)[:, 0]
        _check_batch_norm(network, min(batch_size, self.kept.numel()))
        if augment is not None and self.items.ndim != 4:
            raise InputError(
                "images (items, channels, height, width) for augment='crop-flip'",
                f"shape {tuple(self.items.shape)}",
                "leave augment out",
            )
        self.augmented = augment is not None
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.order = make_generator(seed, Stream.BATCHES)
        self.shifts = make_generator(seed, Stream.AUGMENTATION)

    def batches(self) -> list[Tensor]:
        """Return the rows of the batches of an epoch, in random order."""
        shuffled = self.kept[torch.randperm(len(self.kept), generator=self.order)]
        batches = list(torch.split(shuffled, self.batch_size))
        if self.drop_last and len(batches) > 1 and len(batches[-1]) < self.batch_size:
            batches.pop()
        elif len(batches) > 1 and len(batches[-1]) == 1:
            # Batch norm cannot compute a variance from a batch of one.
            last = batches.pop()
            batches[-1] = torch.cat([batches[-1], last])
        return batches

    def inputs(self, rows: Tensor, network: HeadedNetwork) -> Tensor:
        """Return the items of one batch, augmented if that was requested."""
        batch = take_batch(self.items, rows, network)
        return crop_flip(batch, self.shifts) if self.augmented else batch


def _check_batch_norm(network: nn.Module, largest_batch: int) -> None:
    if largest_batch == 1 and any(
        isinstance(m, nn.modules.batchnorm._BatchNorm) for m in network.modules()
    ):
        raise InputError(
            "batches of at least 2 items for a network with batch norm",
            "batches of 1",
            "raise batch_size, or label more first",
        )


def crop_flip(batch: Tensor, generator: torch.Generator) -> Tensor:
    """Shift each image by up to 4 pixels, filling with zeros, and mirror half of them."""
    n, channels, height, width = batch.shape
    padded = functional.pad(batch, [PADDING] * 4)
    top, left = torch.randint(2 * PADDING + 1, (2, n, 1), generator=generator)
    mirrored = torch.randint(2, (n, 1), generator=generator).bool()
    rows = top + torch.arange(height)
    columns = left + torch.arange(width)
    columns = torch.where(mirrored, columns.flip(1), columns)
    return padded[
        torch.arange(n)[:, None, None, None],
        torch.arange(channels)[None, :, None, None],
        rows[:, None, :, None],
        columns[:, None, None, :],
    ]
