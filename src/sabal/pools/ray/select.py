"""Choose a batch from a pool on a Ray cluster: no machine holds all of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from sabal.core.arrays import Array, generator, row_chunks, seed_of, to_numpy
from sabal.core.checks import check_budget, check_whole
from sabal.errors import UnknownNameError
from sabal.pools.outputs import Outputs
from sabal.pools.ray.crew import most_workers
from sabal.pools.ray.messages import Top
from sabal.pools.ray.pool import ClusterPool
from sabal.pools.ray.ray_crew import RayCrew
from sabal.pools.ray.ray_engine import cpus_of_cluster, session
from sabal.pools.ray.recipes import Recipes, Source, recipes_of
from sabal.selection import Selection
from sabal.sparse.formulate import RandomState
from sabal.strategies import Strategy, make_strategy, plain_options
from sabal.strategies.base import require, selection_of
from sabal.strategies.scores import Scored, tied
from sabal.strategies.sparse import Sparse
from sabal.strategies.uniform import Random

STRATEGIES = (
    "sabal",
    "sabal-greedy",
    "sabal-iht",
    "random",
    "entropy",
    "margin",
    "least-confidence",
)


@dataclass(frozen=True)
class Cluster:
    """Which cluster, and how much of it: see `select_on_ray`."""

    address: str | None = None
    workers: int | None = None
    threads: int = 1
    memory: int | str | None = None
    scratch: str | Path | None = None

    def __post_init__(self) -> None:
        check_whole(self.threads, "threads")
        if self.workers is not None:
            check_whole(self.workers, "workers")


def select_on_ray(
    source: Source,
    budget: int,
    *,
    strategy: str = "sabal",
    address: str | None = None,
    workers: int | None = None,
    threads: int = 1,
    memory: int | str | None = None,
    scratch: str | Path | None = None,
    labeled_features: Array | None = None,
    random_state: RandomState = None,
    **options: Any,
) -> Selection:
    """Choose `budget` items from a pool that is spread over a Ray cluster.

    The batch is the one that `sabal.select` chooses from the same pool in memory, with as many
    threads: the digits of a product of matrices depend on how many there are.

    source: a pool file or folder that every machine can read, a URL of Parquet files (s3://...), or
        arrays by name, {"features": ..., "logits": ..., "id": ...}.
    strategy: one of sabal, sabal-greedy, sabal-iht, random, entropy, margin, least-confidence.
    address: of the cluster, or "auto"; without it, what RAY_ADDRESS names or a Ray on this machine.
    workers: processes that hold a part of the pool each; as many as there are CPUs, if the pool is
        large enough. threads: of BLAS in each.
    memory: bytes (or "2GB") that each worker may take; what does not fit stays on disk.
    scratch: a folder on each machine for what has to be unpacked for that.
    labeled_features, random_state, options: as in `sabal.select`.
    """
    cluster = Cluster(address, workers, threads, memory, scratch)
    labeled = None if labeled_features is None else to_numpy(labeled_features)
    return choose_on_ray(source, budget, strategy, random_state, options, cluster, labeled)


def choose_on_ray(
    source: Source,
    budget: int,
    strategy: str,
    random_state: RandomState,
    options: dict[str, Any],
    cluster: Cluster,
    labeled_features: np.ndarray | None = None,
) -> Selection:
    """The same with the options of the strategy, and of the cluster, by themselves."""
    from threadpoolctl import threadpool_limits

    options = plain_options(options)
    chosen = _strategy(strategy, options)
    recipes = recipes_of(source, cluster.memory, cluster.scratch)
    budget = check_budget(budget, recipes.size)
    seed = seed_of(random_state)
    rng = generator(random_state if seed is None else seed)
    with _crew(recipes, cluster) as crew:
        pool = ClusterPool(crew, labeled_features)
        # It asks no more of outputs than what a pool can tell, too.
        require(chosen, cast(Outputs, pool))
        started = time.perf_counter()
        # As many threads as the workers have: the last digits of products depend on how many.
        with threadpool_limits(cluster.threads):
            selection = select_from(chosen, pool, budget, rng)
        seconds = time.perf_counter() - started
        done = {
            "workers": len(crew.ranges),
            "bytes_per_pass": crew.traffic.per_pass(),
            "bytes": crew.traffic.total(),
            "replaced": crew.replaced,
        }
    evidence = {
        "items": recipes.size,
        "budget": budget,
        **selection.evidence,
        "seconds": seconds,
        "options": options,
        "cluster": done,
    }
    return replace(selection, evidence=evidence, seed=seed)


@contextmanager
def _crew(recipes: Recipes, cluster: Cluster) -> Iterator[RayCrew]:
    """Workers with a shard each, for as long as it takes."""
    most, threads = most_workers(recipes.size), cluster.threads
    wanted = None if cluster.workers is None else min(cluster.workers, most)
    with session(cluster.address, cpus=(wanted or 1) * threads):
        count = wanted or max(1, min(cpus_of_cluster() // threads, most))
        with RayCrew(recipes, count, threads) as crew:
            yield crew


def select_from(
    strategy: Strategy, pool: ClusterPool, budget: int, rng: np.random.Generator
) -> Selection:
    """What `strategy` chooses from a pool in shards."""
    if isinstance(strategy, Sparse):
        return strategy.select_from(pool, budget, rng)
    if isinstance(strategy, Scored):
        top, level = pool.top(strategy, budget)
        warnings = tied(top.scores, level)
    else:
        top, warnings = _drawn(pool.size, budget, rng), ()
    return selection_of(strategy, pool, top.rows, top.scores, warnings=warnings)


def _strategy(name: str, options: dict[str, Any]) -> Strategy:
    strategy = make_strategy(name, options)
    if not isinstance(strategy, Sparse | Scored | Random):
        raise UnknownNameError(
            f"a strategy for pools on a cluster, out of {', '.join(STRATEGIES)}",
            repr(name),
            "pick one of these, or choose on one machine with `sabal select --memory`",
        )
    return strategy


def _drawn(size: int, budget: int, rng: np.random.Generator) -> Top:
    """The rows with the largest of `size` uniform draws, of which few are held at a time."""
    top = Top(np.zeros(0, dtype=np.int64), np.zeros(0))
    for rows in row_chunks(size, 8):
        drawn = Top.of(rng.random(rows.stop - rows.start), budget, rows.start)
        top = Top.merge([top, drawn], budget)
    return top
