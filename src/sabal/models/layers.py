"""Layers and parts of networks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sabal.core.checks import check_number
from sabal.errors import InputError

Shape = tuple[int, ...]


def scaled(channels: int, width: float) -> int:
    """Return `channels` times the width factor, at least 1."""
    return max(1, round(channels * check_number(width, "width", above=0.0)))


class Standardise(nn.Module):
    """(x - mean) / std per channel; the identity if neither is given."""

    mean: Tensor
    std: Tensor

    def __init__(
        self, input_shape: Shape, mean: Sequence[float] | None, std: Sequence[float] | None
    ) -> None:
        super().__init__()
        for name, values, default in (("mean", mean, 0.0), ("std", std, 1.0)):
            numbers = [default] * input_shape[0] if values is None else [float(v) for v in values]
            if len(numbers) != input_shape[0] or (name == "std" and min(numbers) <= 0):
                raise InputError(
                    f"`{name}` as {input_shape[0]} numbers, one per channel; std above 0",
                    str(numbers),
                    "pass the statistics of the training images",
                )
            column = torch.tensor(numbers).reshape(-1, *[1] * (len(input_shape) - 1))
            self.register_buffer(name, column, persistent=False)
        self.needed = mean is not None or std is not None

    def forward(self, x: Tensor) -> Tensor:
        """Return the standardised batch."""
        return (x - self.mean) / self.std if self.needed else x


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions with a shortcut (He et al. 2016, figure 5 left)."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(inplace=True),
            nn.Conv2d(out, out, 3, padding=1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Return relu(residual + shortcut)."""
        return torch.relu(self.residual(x) + self.shortcut(x))


def image_shape(input_shape: Shape) -> Shape:
    """Return `input_shape`, or raise an InputError if it is not that of an image."""
    if len(input_shape) != 3:
        raise InputError(
            "`input_shape` of an image: (channels, height, width)",
            str(tuple(input_shape)),
            "use mlp for anything else",
        )
    return input_shape


def dense(inputs: int, outputs: int, dropout: float) -> list[nn.Module]:
    """Return a dense layer with ReLU, and dropout unless that is 0."""
    return [nn.Linear(inputs, outputs), nn.ReLU(), *dropout_layers(dropout)]


def dropout_layers(share: float) -> list[nn.Module]:
    """Return a dropout layer, or no layer for a share of 0."""
    if check_number(share, "dropout") >= 1:
        raise InputError("`dropout` below 1", str(share), "pass for instance dropout=0.5")
    return [nn.Dropout(share)] if share > 0 else []


def he_initial(body: nn.Module) -> None:
    """Initialise convolutions as He et al. 2015 (eq. 14), and their biases as 0."""
    for module in body.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
