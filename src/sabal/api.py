"""The front door: arrays in, a Selection out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sabal.core.arrays import generator, seed_of
from sabal.core.checks import check_budget
from sabal.core.memory import parse_bytes
from sabal.errors import InputError
from sabal.pools.outputs import Outputs, Part
from sabal.predictions import SOFTMAX
from sabal.selection import Selection
from sabal.sparse.formulate import RandomState
from sabal.strategies import make_strategy, plain_options, strategies
from sabal.strategies.base import Strategy, require, suits

BYTES_PER_ITEM = 48
"""What a streaming selection keeps of every item: its uncertainty, norm and score."""


def select(
    budget: int,
    *,
    features: Part = None,
    logits: Part = None,
    probs: Part = None,
    label_probs: Part = None,
    log_probs: Part = None,
    means: Part = None,
    variances: Part = None,
    label_means: Part = None,
    loss: str = "softmax",
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
    loss: what the model is trained on: "softmax", one class out of several; "sigmoid", any number
        of labels at once, with `logits`, `probs` and `label_probs` of each label on its own; or
        "squared", regression, with the three that follow.
    means, variances: (n, outputs), or (n,) for one output, of the predictive distribution.
    label_means: (n, outputs), the mean of the labels, if that is known better than by `means`.
    strategy: a name out of `sabal strategies`; what it does not need is accepted and left alone.
    ids: names of the items, for the exported files.
    labeled_features: (m, d), features of what is labelled already.
    random_state: a seed or a numpy.random.Generator; with None a seed is drawn, and reported.
    options: the strategy's own, for instance alpha=2.0.
    """
    # Before the arrays: a misspelt one is an unknown option, and not missing.
    make_strategy(strategy, plain_options(options))
    outputs = Outputs(
        features=features,
        logits=logits,
        probs=probs,
        label_probs=label_probs,
        log_probs=log_probs,
        means=means,
        variances=variances,
        label_means=label_means,
        labeled_features=labeled_features,
        loss=loss,
        ids=ids,
    ).check()
    return choose(outputs, budget, strategy, random_state, options)


def select_pool(
    source: str | Path | Iterable[Mapping[str, Any]],
    budget: int,
    *,
    strategy: str = "sabal",
    memory: int | str | None = None,
    scratch: str | Path | None = None,
    labeled_features: Part = None,
    random_state: RandomState = None,
    **options: Any,
) -> Selection:
    """Choose `budget` items to label from a pool on disk, or one that comes in chunks.

    source: a pool file or folder (.npz, .parquet, a folder of .parquet or .npy), or an iterable of
        chunks, each a mapping from `features`, `probs`, `id` and so on to arrays of equal length.
    memory: what the selection may take, for instance "2GiB"; a larger pool is read from disk in
        passes, with the same answer. None for a pool that fits.
    scratch: a folder for what cannot be read where it is (Parquet, compressed or chunked pools); a
        temporary one if left out.
    labeled_features: of what is labelled already, where the pool does not have them itself.
    strategy, random_state, options: as in `select`.
    """
    from sabal.pools import pool_of_chunks, read_pool

    limit = None if memory is None else parse_bytes(memory)
    if isinstance(source, str | Path):
        contents = read_pool(source, memory=limit, scratch=scratch)
    else:
        contents = pool_of_chunks(source, memory=limit, scratch=scratch)
    outputs = contents.outputs.with_labeled(labeled_features).check()
    return choose(outputs, budget, strategy, random_state, options)


def choose(
    outputs: Outputs,
    budget: int,
    strategy: str,
    random_state: RandomState,
    options: dict[str, Any],
) -> Selection:
    """Choose from Outputs; what the strategy does not need is never computed."""
    options = plain_options(options)
    chosen_strategy = make_strategy(strategy, options)
    budget = check_budget(budget, outputs.size)
    _check_loss(chosen_strategy, outputs)
    require(chosen_strategy, outputs)
    outputs = _within_reach(chosen_strategy, outputs)
    seed = seed_of(random_state)
    rng = generator(random_state if seed is None else seed)
    started = time.perf_counter()
    selection = chosen_strategy.select(outputs, budget, rng)
    seconds = time.perf_counter() - started
    evidence = {
        "items": outputs.size,
        "budget": budget,
        **({} if outputs.loss is SOFTMAX else {"loss": outputs.loss.name}),
        **selection.evidence,
        "seconds": seconds,
        "options": options,
    }
    return replace(selection, evidence=evidence, seed=seed)


def _check_loss(strategy: Strategy, outputs: Outputs) -> None:
    """Refuse a strategy that would misread predictions of another loss."""
    loss = outputs.loss.name
    if not suits(strategy, loss):
        suitable = [name for name, cls in strategies().items() if suits(cls, loss)]
        raise InputError(
            f"a strategy for loss={loss!r} ({', '.join(suitable)})",
            repr(strategy.name),
            "choose one of these",
        )


def _within_reach(strategy: Strategy, outputs: Outputs) -> Outputs:
    """Outputs that `strategy` can read: of those on disk, what it cannot stream is loaded."""
    stored = outputs.stored_bytes
    if not stored:
        return outputs
    limit = outputs.memory
    if getattr(strategy, "streams", False):
        least = BYTES_PER_ITEM * outputs.size
        if limit is not None and least > limit:
            raise InputError(
                f"`memory` of at least {least / 1e6:,.0f} MB for {outputs.size:,} items",
                f"{limit / 1e6:,.0f} MB",
                "allow more, or spread the pool over a cluster (engine ray)",
            )
        return outputs
    needed = {name for need in strategy.needs for name in need.split("|")}
    if "probs" in needed and "probs" not in stored:
        needed |= {"logits", "log_probs"}
    wanted = {name: size for name, size in stored.items() if name in needed}
    total = sum(wanted.values())
    if limit is not None and 2 * total > limit:
        streaming = [name for name, cls in strategies().items() if getattr(cls, "streams", False)]
        raise InputError(
            f"a strategy that reads a pool in passes ({', '.join(streaming)})",
            f"{strategy.name!r}, which needs {' and '.join(wanted)} in memory "
            f"({total / 1e6:,.0f} MB and as much to work in)",
            f"choose one of these, or allow memory of {2 * total / 1e6:,.0f} MB",
        )
    return outputs.loaded(wanted)
