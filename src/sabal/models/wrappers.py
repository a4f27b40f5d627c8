"""Networks of the user: any module with a named last linear layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from sabal.errors import InputError, UnknownNameError
from sabal.models.inputs import HeadedNetwork
from sabal.models.variational import VariationalLinear


@contextmanager
def record_calls(
    layer: nn.Module, convert: Callable[[Tensor], Any] = lambda tensor: tensor
) -> Iterator[list[tuple[Any, Any]]]:
    """Record the inputs and outputs of a layer, batch by batch."""
    calls: list[tuple[Any, Any]] = []

    def record(_: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        calls.append((convert(inputs[0]), convert(output)))

    handle = layer.register_forward_hook(record)
    try:
        yield calls
    finally:
        handle.remove()


class Wrapped(HeadedNetwork):
    """A module of the user, with the name of its last layer.

    The features are the input of that layer, and its output must be that of the module. The module
    is kept, not copied: training one trains the other.

    Parameters
    ----------
    module : torch.nn.Module
        The module.
    last_layer : str
        The name of its last linear layer, for instance "fc" or "classifier.6".
    """

    def __init__(self, module: nn.Module, last_layer: str) -> None:
        super().__init__()
        layer = dict(module.named_modules()).get(last_layer) if last_layer else None
        linear = [
            name
            for name, child in module.named_modules()
            if isinstance(child, nn.Linear | VariationalLinear)
        ]
        fix = (
            f"pick one of {', '.join(linear)}" if linear else "end the module in a torch.nn.Linear"
        )
        if layer is None:
            raise UnknownNameError(
                f"the name of the last layer of {type(module).__name__}", repr(last_layer), fix
            )
        if not isinstance(layer, nn.Linear | VariationalLinear):
            raise InputError(
                f"`{last_layer}` to be a linear layer", f"a {type(layer).__name__}", fix
            )
        self.module = module
        self.last_layer = last_layer
        # Not registered again: its parameters belong to the module.
        self.__dict__["head"] = layer

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of the module, (n, classes)."""
        logits: Tensor = self.module(x)
        return logits

    def features(self, x: Tensor) -> Tensor:
        """Return the input of the last layer when the module is run on `x`, (n, d)."""
        with record_calls(self.head) as seen:
            result = self.module(x)
        if len(seen) != 1:
            raise InputError(
                f"`{self.last_layer}` to be called once in a forward pass",
                f"{len(seen)} calls",
                "name the layer that gives the logits",
            )
        features, logits = seen[0]
        if result is not logits and not (
            isinstance(result, Tensor) and torch.equal(result, logits)
        ):
            raise InputError(
                f"the module to return what `{self.last_layer}` computes (the logits)",
                "something else",
                "take off what follows the layer (a softmax, for instance), or name another layer",
            )
        if features.ndim != 2:
            raise InputError(
                f"one row of features per item at `{self.last_layer}`",
                f"shape {tuple(features.shape)}",
                "pool over positions before the last layer",
            )
        return features
