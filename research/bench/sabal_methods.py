"""Sabal's own strategies as a script for job.py, under the same rules as other libraries.

`sabal.select` is timed as a user calls it, including its checks of the input. It is given what the
strategy needs. Of alternative inputs it gets all but the posterior samples and scores of one's own,
with which several strategies do another job; a strategy that names the samples first gets these
alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from sabal.api import select
from sabal.strategies import Strategy, strategies

PACKAGE = "sabal"
LEFT_OUT = {"log_probs", "scores"}  # alternative inputs with which a strategy does another job


def given(needs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the inputs for a strategy with these `needs`."""
    names: set[str] = set()
    for need in needs:
        first, *others = need.split("|")
        names |= {first, *others} - LEFT_OUT if first != "log_probs" else {first}
    if "features" in names:
        # Optional to distances and gradients, and part of the same job in every library.
        names.add("labeled_features")
        if "probs" in names:
            names.add("label_probs")
    return tuple(sorted(names)) or ("probs",)


def prepare(
    strategy: type[Strategy], inputs: Mapping[str, np.ndarray]
) -> Callable[[int, int], np.ndarray]:
    """Return a function that selects with `strategy` and its default options."""
    arrays: dict[str, Any] = {name: inputs[name] for name in given(strategy.needs)}

    def run(budget: int, seed: int) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return select(budget, strategy=strategy.name, random_state=seed, **arrays).indices

    return run


METHODS = {name: partial(prepare, strategy) for name, strategy in strategies().items()}
