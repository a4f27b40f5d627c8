"""Augmentation in plain torch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

PADDING = 4


def crop_flip(batch: Tensor, generator: torch.Generator) -> Tensor:
    """Each image shifted by up to 4 pixels (zeros come in) and mirrored half of the time."""
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
