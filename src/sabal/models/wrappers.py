"""Bring your own network: any module with a named last linear layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sabal.errors import InputError, UnknownNameError
from sabal.models.inputs import Headed
from sabal.models.variational import VariationalLinear


class Wrapped(Headed):
    """`module` with its last layer known by name, for instance "fc" or "classifier.6".

    The features are whatever reaches that layer; the layer's output has to be the module's.
    The module itself is kept, not copied: training the one trains the other.
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
        # Not registered a second time: its parameters belong to the module.
        self.__dict__["head"] = layer

    def forward(self, x: Tensor) -> Tensor:
        """(n, classes): what the module says."""
        logits: Tensor = self.module(x)
        return logits

    def features(self, x: Tensor) -> Tensor:
        """(n, d): what reaches the last layer when the module is run on `x`."""
        seen: list[tuple[Tensor, Tensor]] = []

        def look(layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
            seen.append((inputs[0], output))

        handle = self.head.register_forward_hook(look)
        try:
            result = self.module(x)
        finally:
            handle.remove()
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
