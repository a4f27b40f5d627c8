"""What a skorch net says of a pool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from sabal.core.arrays import to_numpy
from sabal.errors import InputError
from sabal.pools.outputs import AGREEMENT, Outputs
from sabal.predictions.calibration import softmax


def skorch_outputs(
    net: Any, X: Any, *, last_layer: str, X_labeled: Any = None, ids: Any = None
) -> Outputs:
    """The outputs of a fitted skorch classifier over `X`, each computed on first use.

    One `net.predict_proba(X)` gives all of them, so that the net's own data sets, iterators and
    devices are used.
    last_layer: the name of the module's last linear layer, for instance "fc": the features are
        what reaches it. A softmax may follow.
    X_labeled: what is labelled already; the default strategy covers what that does not.
    """
    pool = _Pass(net, X, last_layer)
    labeled = None if X_labeled is None else _Pass(net, X_labeled, last_layer)
    # A single output, for two classes, has no logits of both.
    of_each_class = pool.classes > 1
    return Outputs(
        size=len(net.get_dataset(X)),
        ids=ids,
        features=lambda: pool.seen[0],
        logits=(lambda: pool.seen[1]) if of_each_class else None,
        probs=None if of_each_class else lambda: pool.seen[2],
        labeled_features=None if labeled is None else lambda: labeled.seen[0],
    )


class _Pass:
    """One pass of a net over some items, on first use."""

    def __init__(self, net: Any, X: Any, last_layer: str) -> None:
        from sabal.models import Wrapped
        from sabal.models.inputs import classes_of

        if not hasattr(net, "module_"):
            raise InputError("a fitted skorch net", f"a {type(net).__name__}", "call fit first")
        self.net, self.X, self.last_layer = net, X, last_layer
        network = Wrapped(net.module_, last_layer)
        self.layer, self.classes = network.head, classes_of(network)

    @cached_property
    def seen(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features, what the last layer makes of them, and the prediction."""
        with _watched(self.layer) as batches:
            probs_NC = np.asarray(self.net.predict_proba(self.X))
        features, said = (np.concatenate(part) for part in zip(*batches, strict=True))
        if features.ndim != 2 or len(features) != len(probs_NC):
            raise InputError(
                f"one row of features per item at `{self.last_layer}`",
                f"shape {features.shape} for {len(probs_NC)} items",
                "name the layer that gives the logits, once in a forward pass",
            )
        if said.shape[1] > 1 and (
            said.shape != probs_NC.shape or np.abs(softmax(said) - probs_NC).max() > AGREEMENT
        ):
            raise InputError(
                f"a net that predicts the softmax of `{self.last_layer}`",
                "other probabilities",
                "name the layer that gives the logits",
            )
        return features, said, probs_NC


@contextmanager
def _watched(layer: Any) -> Iterator[list[tuple[np.ndarray, np.ndarray]]]:
    """Within: what goes into a layer and what comes out, batch by batch."""
    batches: list[tuple[np.ndarray, np.ndarray]] = []

    def look(_: Any, inputs: tuple[Any, ...], output: Any) -> None:
        batches.append((to_numpy(inputs[0]).copy(), to_numpy(output).copy()))

    handle = layer.register_forward_hook(look)
    try:
        yield batches
    finally:
        handle.remove()
