"""The front door: arrays in, a Selection out."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from sabal.arrays import generator, seed_of
from sabal.checks import check_budget
from sabal.formulate import RandomState
from sabal.outputs import Outputs, Part
from sabal.selection import Selection
from sabal.strategies import make_strategy
from sabal.strategies.base import require


def select(
    budget: int,
    *,
    features: Part = None,
    logits: Part = None,
    probs: Part = None,
    label_probs: Part = None,
    log_probs: Part = None,
    strategy: str = "sabal",
    ids: Any = None,
    labeled_features: Part = None,
    random_state: RandomState = None,
    **options: Any,
) -> Selection:
    """Choose `budget` items to label from a pool, by what a model says of them.

    Arrays have one row per item and come from NumPy, PyTorch or any library that follows the array
    API standard; nothing is changed in place.

    features: (n, d), what the model's last layer sees.
    logits, probs: (n, classes), the model's prediction, raw or as probabilities.
    label_probs: (n, classes), what the labels will be, if that is known better than by `probs`.
    log_probs: (n, samples, classes), log-probabilities under posterior samples shared by all items.
    strategy: a name out of `sabal strategies`; what it does not need is accepted and left alone.
    ids: names of the items, for the exported files.
    labeled_features: (m, d), features of what is labelled already.
    random_state: a seed or a numpy.random.Generator; with None a seed is drawn, and reported.
    options: the strategy's own, for instance alpha=2.0.
    """
    outputs = Outputs(
        features=features,
        logits=logits,
        probs=probs,
        label_probs=label_probs,
        log_probs=log_probs,
        labeled_features=labeled_features,
        ids=ids,
    ).check()
    return choose(outputs, budget, strategy, random_state, options)


def choose(
    outputs: Outputs,
    budget: int,
    strategy: str,
    random_state: RandomState,
    options: dict[str, Any],
) -> Selection:
    """Choose from Outputs; what the strategy does not need is never computed."""
    chosen_strategy = make_strategy(strategy, options)
    budget = check_budget(budget, outputs.size)
    require(chosen_strategy, outputs)
    seed = seed_of(random_state)
    rng = generator(random_state if seed is None else seed)
    started = time.perf_counter()
    selection = chosen_strategy.select(outputs, budget, rng)
    seconds = time.perf_counter() - started
    evidence = {
        "items": outputs.size,
        "budget": budget,
        **selection.evidence,
        "seconds": seconds,
        "options": options,
    }
    return replace(selection, evidence=evidence, seed=seed)
