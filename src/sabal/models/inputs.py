"""Inputs of a network: items in the caller's array, moved to its device one batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sabal.core.arrays import to_float64_numpy
from sabal.core.checks import check_whole
from sabal.errors import InputError

InputArray = Tensor | np.ndarray  # items on the first axis, in memory or mapped from a file


class HeadedNetwork(nn.Module):
    """A network that ends in one layer: forward(x) = head(features(x))."""

    head: nn.Module
    """The last layer."""

    input_shape: tuple[int, ...] | None = None
    """The shape of one item; None if it is not fixed."""

    recipe: dict[str, Any] | None = None
    """The arguments of `build` that made the network; None for any other network."""

    def features(self, x: Tensor) -> Tensor:
        """Return the input of the last layer, (n, d)."""
        raise NotImplementedError


def check_network(network: Any) -> HeadedNetwork:
    """Return `network`, or raise an InputError if its last layer is not known."""
    if not isinstance(network, HeadedNetwork):
        raise InputError(
            "a network of sabal.models",
            type(network).__name__,
            'wrap your own as sabal.models.Wrapped(module, last_layer="fc")',
        )
    return network


def count_classes(network: HeadedNetwork) -> int:
    """Return the number of classes, which is the width of the last layer."""
    return int(network.head.out_features)  # type: ignore[arg-type]


def device_of(network: nn.Module) -> torch.device:
    """Return the device of the parameters of the network."""
    return next((parameter.device for parameter in network.parameters()), torch.device("cpu"))


def move_to_device(network: nn.Module, device: str | torch.device | None) -> torch.device:
    """Move the network to `device` unless that is None, and return the device it is on."""
    if device is not None:
        try:
            network.to(device)
        except (RuntimeError, AssertionError) as error:
            raise InputError(
                "a device that this PyTorch can use", f"{device}: {error}", "pass device='cpu'"
            ) from None
    return device_of(network)


@contextmanager
def evaluation_mode(*networks: nn.Module) -> Iterator[None]:
    """Switch to evaluation mode without gradients, and restore every layer's mode afterwards."""
    modes = [(module, module.training) for network in networks for module in network.modules()]
    for network in networks:
        network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def check_items(x: Any, network: HeadedNetwork, name: str = "x") -> InputArray:
    """Return items that `network` can take: numbers of the right shape, at least one item."""
    items: InputArray = x.detach() if isinstance(x, Tensor) else np.asarray(x)
    if isinstance(items, np.ndarray) and items.dtype.kind not in "biuf":
        raise InputError(f"`{name}` as numbers", f"dtype {items.dtype}", "convert it to float32")
    if items.ndim < 2 or items.shape[0] == 0:
        raise InputError(
            f"`{name}` with items on the first axis, at least one",
            f"shape {tuple(items.shape)}",
            "pass an array of items, not a single one",
        )
    wanted = network.input_shape
    if wanted is not None and tuple(items.shape[1:]) != tuple(wanted):
        raise InputError(
            f"`{name}` with items of shape {tuple(wanted)}, as the network was built for",
            f"items of shape {tuple(items.shape[1:])}",
            "put the channels first, or build a network for this shape",
        )
    return items


def check_labels(y: Any, n: int, classes: int, name: str = "y") -> Tensor:
    """Return labels as a tensor of n integers below `classes`."""
    values = to_float64_numpy(y)
    if values.shape != (n,) or not np.array_equal(values, np.floor(values)):
        raise InputError(
            f"`{name}` as one whole number for each of the {n} items",
            f"shape {values.shape}",
            "pass class indices, not one-hot rows",
        )
    if values.min() < 0 or values.max() >= classes:
        raise InputError(
            f"`{name}` between 0 and {classes - 1}, the classes of the network",
            f"{int(values.min())} to {int(values.max())}",
            "encode the labels as class numbers",
        )
    return torch.from_numpy(values.astype(np.int64))


def check_item_weights(weights: Any, n: int) -> np.ndarray:
    """Return importance weights: one finite number of at least 0 per item, not all of them 0."""
    values = np.ones(n) if weights is None else to_float64_numpy(weights)
    usable = values.shape == (n,) and np.all(np.isfinite(values)) and values.min() >= 0
    if not usable or not values.any():
        raise InputError(
            f"`weights` as one finite number of at least 0 for each of the {n} items, not all 0",
            f"shape {values.shape}" if values.shape != (n,) else "negative, infinite or only zeros",
            "pass the weights of a Selection, or leave them out",
        )
    return values


def take_batch(items: InputArray, rows: slice | Tensor, network: HeadedNetwork) -> Tensor:
    """Return some of the items as a tensor on the device of the network.

    8-bit images are scaled to [0, 1]. Other integers become floats for networks of `build`, and
    stay integers (the indices of an embedding) for wrapped ones.
    """
    if isinstance(items, Tensor):
        batch = items[rows]
    else:
        # A copy in native byte order: the file behind a mapped array may be read-only.
        chosen = items[rows if isinstance(rows, slice) else rows.numpy()]
        batch = torch.from_numpy(np.array(chosen, dtype=chosen.dtype.newbyteorder("=")))
    batch = batch.to(device_of(network))
    like = next((p for p in network.parameters() if p.is_floating_point()), None)
    dtype = torch.float32 if like is None else like.dtype
    if batch.dtype == torch.uint8:
        return batch.to(dtype) / 255.0
    if batch.is_floating_point() or network.input_shape is not None:
        return batch.to(dtype)
    return batch.long()


def row_slices(n: int, batch_size: int) -> Iterator[slice]:
    """Yield slices of at most `batch_size` rows that cover n rows."""
    step = check_whole(batch_size, "batch_size")
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
