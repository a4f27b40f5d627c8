"""The outputs of a skorch net over a pool."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from sabal.core.arrays import to_numpy
from sabal.errors import InputError
from sabal.pools import ArrayPool
from sabal.pools.pool import AGREEMENT
from sabal.predictions.softmax import softmax


def skorch_outputs(
    net: Any, X: Any, *, last_layer: str, X_labeled: Any = None, ids: Any = None
) -> ArrayPool:
    """Return the outputs of a fitted skorch classifier over a pool, each computed on first use.

    All of them come from one `net.predict_proba(X)`, which uses the data sets, iterators and
    devices of the net.

    Parameters
    ----------
    net : skorch.NeuralNetClassifier
        The fitted net.
    X : array or data set
        The pool.
    last_layer : str
        The name of the last linear layer of the module, for instance "fc". The features are its
        input. A softmax may follow.
    X_labeled : array or data set, optional
        The items that are labelled already; the default strategy covers what these do not.
    ids : sequence, optional
        Names of the items.

    Returns
    -------
    ArrayPool
    """
    pool = _SkorchPass(net, X, last_layer)
    labeled = None if X_labeled is None else _SkorchPass(net, X_labeled, last_layer)
    # With a single output for two classes, there are no logits of both.
    has_logits = pool.classes > 1
    return ArrayPool(
        size=len(net.get_dataset(X)),
        ids=ids,
        features=lambda: pool.results[0],
        logits=(lambda: pool.results[1]) if has_logits else None,
        probs=None if has_logits else lambda: pool.results[2],
        labeled_features=None if labeled is None else lambda: labeled.results[0],
    )


class _SkorchPass:
    """One pass of a net over some items, on first use."""

    def __init__(self, net: Any, X: Any, last_layer: str) -> None:
        from sabal.models import Wrapped
        from sabal.models.inputs import count_classes

        if not hasattr(net, "module_"):
            raise InputError("a fitted skorch net", f"a {type(net).__name__}", "call fit first")
        self.net, self.X, self.last_layer = net, X, last_layer
        network = Wrapped(net.module_, last_layer)
        self.layer, self.classes = network.head, count_classes(network)

    @cached_property
    def results(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The features, the output of the last layer, and the predicted probabilities."""
        from sabal.models.wrappers import record_calls

        with record_calls(self.layer, lambda tensor: to_numpy(tensor).copy()) as batches:
            probs_NC = np.asarray(self.net.predict_proba(self.X))
        features, outputs = (np.concatenate(part) for part in zip(*batches, strict=True))
        if features.ndim != 2 or len(features) != len(probs_NC):
            raise InputError(
                f"one row of features per item at `{self.last_layer}`",
                f"shape {features.shape} for {len(probs_NC)} items",
                "name the layer that gives the logits, once in a forward pass",
            )
        if outputs.shape[1] > 1 and (
            outputs.shape != probs_NC.shape or np.abs(softmax(outputs) - probs_NC).max() > AGREEMENT
        ):
            raise InputError(
                f"a net that predicts the softmax of `{self.last_layer}`",
                "other probabilities",
                "name the layer that gives the logits",
            )
        return features, outputs, probs_NC
