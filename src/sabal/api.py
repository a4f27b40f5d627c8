"""The front door: `select`, `select_pool` and `query`, and the one `choose` behind them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sabal.core.checks import RandomState, check_budget, generator, seed_of
from sabal.core.memory import shown_bytes
from sabal.errors import InputError, UnknownNameError, did_you_mean
from sabal.pools.frames import Columns, index_ids, is_table, table_arrays
from sabal.pools.opening import PoolLike, open_pool
from sabal.pools.pool import BYTES_PER_ITEM, ArrayPool, Part, Pool
from sabal.predictions.calibration import rows_at
from sabal.predictions.from_estimator import EstimatorPrediction
from sabal.predictions.missing_labels import fitted, labels_at, split_by_labels
from sabal.selection import Selection
from sabal.strategies.base import Strategy
from sabal.strategies.registry import StrategyName, make_strategy, plain_options, strategies


def select(
    budget: int,
    pool: Pool | Any = None,
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
    scores: Part = None,
    strategy: StrategyName | str | Strategy = "sabal",
    ids: Any = None,
    labeled_features: Part = None,
    columns: Columns | None = None,
    random_state: RandomState = None,
    **options: Any,
) -> Selection:
    """Choose `budget` items to label from a pool, by what a model says of them.

    Arrays have one row per item and come from NumPy, PyTorch or any library that follows the array
    API standard; data frames and columns of lists are converted. Nothing is changed in place.

    Parameters
    ----------
    budget : int
        How many items to choose.
    pool : Pool or table, optional
        In place of arrays, a pool that is there already, for instance the outputs of
        `sabal.models.pool_outputs` or `sabal.integrations`; a dict of arrays by name; or a table,
        as in `select_pool`.
    features : array of shape (n, d), optional
        What the model's last layer sees.
    logits, probs : array of shape (n, classes), optional
        The model's prediction, raw or as probabilities.
    label_probs : array of shape (n, classes), optional
        What the labels will be, if that is known better than by `probs`.
    log_probs : array of shape (n, samples, classes), optional
        Log-probabilities under posterior samples shared by all items.
    means, variances : array of shape (n, outputs) or (n,), optional
        The predictive distribution of a regression.
    label_means : array of shape (n, outputs) or (n,), optional
        The mean of the labels, if that is known better than by `means`.
    loss : {"softmax", "sigmoid", "squared"}
        What the model is trained on: one class out of several; any number of labels at once, with
        `logits`, `probs` and `label_probs` of each label on its own; or regression, with `means`,
        `variances` and `label_means`.
    scores : array of shape (n,), optional
        What each item is worth, of at least 0, from a detector, a segmenter or any other source.
        They take the place of the uncertainty of a prediction: as the mass that `sabal` covers,
        and as what `margin`, `entropy` and other strategies that rank items rank by.
    strategy : str or Strategy
        A name out of `sabal strategies`, or a strategy of your own; arrays that it does not need
        are left alone.
    ids : sequence, optional
        Names of the items, for the exported files; by default the index of a pandas frame, or row
        numbers.
    labeled_features : array of shape (m, d), optional
        Features of what is labelled already.
    columns : mapping, optional
        The columns of each array in a table, as in `select_pool`.
    random_state : int, numpy.random.Generator or numpy.random.RandomState, optional
        Decides every draw; with None a seed is drawn, and reported.
    **options
        The strategy's own options, for instance radius=0.5.

    Returns
    -------
    Selection
        The batch, with weights, scores and evidence.
    """
    # Before the arrays: a misspelt one is an unknown option, and not missing.
    make_strategy(strategy, plain_options(options))
    arrays: dict[str, Any] = {
        "features": features,
        "logits": logits,
        "probs": probs,
        "label_probs": label_probs,
        "log_probs": log_probs,
        "means": means,
        "variances": variances,
        "label_means": label_means,
        "scores": scores,
        "labeled_features": labeled_features,
        "ids": ids,
    }
    if is_table(pool):
        pool, arrays = None, _with_table(arrays, table_arrays(pool, columns))
    elif isinstance(pool, Mapping):
        named = {"ids" if name == "id" else name: each for name, each in pool.items()}
        _check_array_names(named, arrays)
        pool, arrays = None, _with_table(arrays, named)
    elif columns is not None:
        raise InputError("a table where there is `columns`", "none", "pass the table as the pool")
    if pool is None:
        if arrays["ids"] is None:
            arrays["ids"] = index_ids(*arrays.values())
        pool = ArrayPool(**arrays, loss=loss).check()
    else:
        _check_alone(pool, arrays)
    return choose(pool, budget, strategy, random_state, options)


def _with_table(arrays: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays of a table and those that were given beside it, which take precedence."""
    return {**arrays, **table, **{name: each for name, each in arrays.items() if each is not None}}


def _check_array_names(given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name in given:
        if name not in known:
            fix = did_you_mean(str(name), list(known), "leave it out")
            raise UnknownNameError(f"arrays named {', '.join(known)}", repr(name), fix)


def _check_alone(pool: Any, arrays: Mapping[str, Any]) -> None:
    """Refuse arrays beside a pool, and what is no pool."""
    if not isinstance(pool, Pool):
        fix = "pass arrays by name: features=..."
        if isinstance(pool, str | Path):
            fix = "pass it to sabal.select_pool, which takes the pool first and then the budget"
        elif isinstance(pool, int):
            fix = "pass the budget first"
        elif isinstance(pool, AbstractContextManager):
            fix = "open it: with sabal.pools.open_pool(...) as pool"
        raise InputError("a pool or a table as the second argument", type(pool).__name__, fix)
    for name, array in arrays.items():
        if array is not None:
            raise InputError("a pool, or arrays", f"a pool and `{name}`", "pass one of them")


def select_pool(
    source: PoolLike,
    budget: int,
    *,
    columns: Columns | None = None,
    loss: str = "softmax",
    strategy: StrategyName | str | Strategy = "sabal",
    memory: int | str | None = None,
    scratch: str | Path | None = None,
    labeled_features: Part = None,
    random_state: RandomState = None,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    threads: int = 1,
    **options: Any,
) -> Selection:
    """Choose `budget` items to label from a pool on disk, in a table or on a Ray cluster.

    The batch is the same wherever the pool is, with as many BLAS threads: the digits of a product
    of matrices depend on how many there are.

    Parameters
    ----------
    source : path, mapping, table or iterable of chunks
        A pool file or folder (.npz, .parquet, a folder of .parquet or .npy), on disk or at a URL
        (s3://, gs://, file://, ...); arrays by name; a pandas or polars DataFrame, an Arrow table,
        dataset or record-batch reader, or whatever else streams Arrow data (DuckDB, Hugging Face
        datasets, Daft, Spark); or chunks, each a mapping from `features`, `probs`, `id` and so on
        to arrays of equal length, or a table. On a cluster, a URL is one of Parquet files, a path
        is one that every machine can read, and chunks cannot be had.
    budget : int
        How many items to choose.
    columns : mapping, optional
        The columns of each array in a table or in Parquet files: a column of lists, or a list of
        columns with a number each, for instance ``{"features": "embedding", "probs": ["cat",
        "dog"], "id": "path"}``. By default columns are called as the arrays are; a table of numbers
        only is all features. The index of a pandas frame gives the ids if there is no column `id`.
    loss, strategy, random_state, **options
        As in `select`.
    memory : int or str, optional
        What the selection may take, for instance "2GiB" (on a cluster, each worker); a larger pool
        is read from disk in passes, with the same answer.
    scratch : path, optional
        A folder for what cannot be read where it is (Parquet, compressed or chunked pools); a
        temporary one by default.
    labeled_features : array of shape (m, d), optional
        Of what is labelled already, where the pool does not have them itself.
    engine : {"local", "ray"}
        Where the pool is read: in this process, or on a Ray cluster, on which no machine holds all
        of it.
    address : str, optional
        Of the cluster, or "auto"; by default what RAY_ADDRESS names, or a Ray on this machine.
    workers, threads : int, optional
        Processes that hold a part of the pool each (by default as many as there are CPUs, if the
        pool is large enough), and BLAS threads in each.

    Returns
    -------
    Selection
        The batch, with weights, scores and evidence.
    """
    make_strategy(strategy, plain_options(options))
    with open_pool(
        source,
        columns=columns,
        loss=loss,
        memory=memory,
        scratch=scratch,
        labeled_features=labeled_features,
        engine=engine,
        address=address,
        workers=workers,
        threads=threads,
    ) as pool:
        pool.used_once = True
        return choose(pool, budget, strategy, random_state, options)


def query(
    estimator: Any,
    X_pool: Any,
    budget: int,
    *,
    y: Any = None,
    X_labeled: Any = None,
    y_labeled: Any = None,
    features: Any = None,
    labeled_features: Any = None,
    scores: Any = None,
    loss: str | None = None,
    strategy: StrategyName | str | Strategy = "sabal",
    ids: Any = None,
    random_state: RandomState = None,
    **options: Any,
) -> Selection:
    """Choose `budget` rows of `X_pool` to label, with a scikit-learn estimator.

    The prediction of a classifier is `predict_proba`, of one class or of several labels per item.
    That of a regressor is `predict` with `return_std`, or the spread of an ensemble's members. The
    features are what the final step of a pipeline sees, `X_pool` itself for any other estimator, or
    `features` when given. Sparse features with many columns are projected at random to 512
    (distances keep).

    Parameters
    ----------
    estimator : classifier or regressor
        A fitted classifier with `predict_proba`; or a fitted regressor with `return_std` (Gaussian
        process, Bayesian ridge) or with members (forest, bagging, voting).
    X_pool : array, sparse matrix or DataFrame
        The pool, as the estimator was trained on; with `y`, all items.
    budget : int
        How many rows to choose.
    y : array-like, optional
        The labels of all items, with NaN or None for those without: these are the pool, and the
        others are what is labelled. An estimator that is not fitted is cloned and trained on them.
    X_labeled, y_labeled : optional
        What the estimator was trained on, without `y`. With them the label distribution is the
        prediction at a temperature found by cross-validation (trained once per fold, only for
        classifiers of one class and strategies that use it), and strategies that look at labelled
        items can.
    features, labeled_features : array, optional
        What tells items apart, where that is not what the estimator sees; with `y`, `features` of
        all items.
    scores : array of shape (n,), optional
        As in `select`.
    loss : {"softmax", "sigmoid", "squared"}, optional
        What the estimator predicts, if it cannot be told from the estimator.
    strategy, ids, random_state, **options
        As in `select`.

    Returns
    -------
    Selection
        The batch; its indices are rows of `X_pool`.
    """
    make_strategy(strategy, plain_options(options))
    ids = index_ids(X_pool) if ids is None else ids
    rows = None
    if y is not None:
        beside = {
            "X_labeled": X_labeled,
            "y_labeled": y_labeled,
            "labeled_features": labeled_features,
        }
        _check_alone_with_y(beside)
        X, rows, labeled = X_pool, *split_by_labels(X_pool, y)
        X_pool, ids = rows_at(X, rows), rows if ids is None else rows_at(ids, rows)
        if labeled.size:
            X_labeled, y_labeled = rows_at(X, labeled), labels_at(y, labeled)
        estimator = fitted(estimator, X_labeled, y_labeled)
        if features is not None:
            labeled_features = rows_at(features, labeled) if labeled.size else None
            features = rows_at(features, rows)
        scores = None if scores is None else rows_at(scores, rows)
    said = EstimatorPrediction(
        estimator, X_pool, X_labeled, y_labeled, features, labeled_features, loss
    )
    pool = ArrayPool(size=said.size, ids=ids, scores=scores, **said.arrays())
    selection = choose(pool, budget, strategy, random_state, options)
    indices = selection.indices if rows is None else rows[selection.indices]
    return replace(selection, indices=indices, evidence={**selection.evidence, **said.notes})


def _check_alone_with_y(arrays: Mapping[str, Any]) -> None:
    """Refuse what `y` says already."""
    for name, array in arrays.items():
        if array is not None:
            raise InputError("labels in `y`", f"`y` and `{name}`", f"leave out {name}")


def choose(
    pool: Pool,
    budget: int,
    strategy: StrategyName | str | Strategy,
    random_state: RandomState,
    options: dict[str, Any],
) -> Selection:
    """Choose from a pool; what the strategy does not need is never computed."""
    options = plain_options(options)
    chosen = make_strategy(strategy, options)
    budget = check_budget(budget, pool.size)
    _check_loss(chosen, pool)
    chosen.require(pool)
    pool = _within_reach(chosen, pool)
    seed = seed_of(random_state)
    rng = generator(random_state if seed is None else seed)
    started = time.perf_counter()
    with pool.computing():
        selection = chosen.select(pool, budget, rng)
    seconds = time.perf_counter() - started
    loss = pool.prediction_type.loss
    evidence = {
        "items": pool.size,
        "budget": budget,
        **({} if loss == "softmax" else {"loss": loss}),
        **selection.evidence,
        "seconds": seconds,
        "options": options,
        **pool.evidence(),
    }
    return replace(selection, evidence=evidence, seed=seed)


def _check_loss(strategy: Strategy, pool: Pool) -> None:
    """Refuse a strategy that would misread predictions of another loss."""
    loss = pool.prediction_type.loss
    if not strategy.supports_loss(loss):
        suitable = [name for name, cls in strategies().items() if cls.supports_loss(loss)]
        raise InputError(
            f"a strategy for loss={loss!r} ({', '.join(suitable)})",
            repr(strategy.name),
            "choose one of these",
        )


def _within_reach(strategy: Strategy, pool: Pool) -> Pool:
    """Return a pool that `strategy` can read: what it cannot stream is brought into memory."""
    if strategy.streams:
        min_bytes = BYTES_PER_ITEM * pool.size
        if pool.memory is not None and min_bytes > pool.memory:
            raise InputError(
                f"`memory` of at least {shown_bytes(min_bytes)} for {pool.size:,} items",
                shown_bytes(pool.memory),
                "allow more, or spread the pool over a cluster (engine ray)",
            )
        return pool
    names = strategy.array_names()
    stored = pool.stored_bytes(names)
    total = sum((stored or {}).values())
    if stored is None or (pool.memory is not None and 2 * total > pool.memory):
        streaming = [name for name, cls in strategies().items() if cls.streams]
        where = "on one machine"
        if stored is not None:
            where = f"({shown_bytes(total)} and as much to work in)"
        raise InputError(
            f"a strategy that reads a pool in passes ({', '.join(streaming)})",
            f"{strategy.name!r}, which needs {' and '.join(stored or sorted(names))} in memory "
            f"{where}",
            "choose one of these"
            + ("" if stored is None else f", or allow memory of {shown_bytes(2 * total)}"),
        )
    return pool.loaded(names)
