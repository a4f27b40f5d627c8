"""Pools on a Ray cluster of three nodes: the same batches, whatever comes and goes meanwhile."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster
from threadpoolctl import threadpool_limits

import sabal
from makers import make_pool
from sabal.errors import ClusterError
from sabal.pools.ray import RayPool
from sabal.pools.ray.ray_workers import RayWorkers
from sabal.pools.ray.shard_sources import shard_sources
from sabal.strategies.registry import strategies

N = 9_000
NODE_MEMORY = 2**30


def add_node(cluster, cpus=1):
    return cluster.add_node(
        num_cpus=cpus, memory=NODE_MEMORY, object_store_memory=80 * 2**20, wait=False
    )


@pytest.fixture
def cluster():
    """A head, which has no CPU for workers, and three nodes with one each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 0,
                "memory": NODE_MEMORY,
                "object_store_memory": 80 * 2**20,
                "include_dashboard": False,
            },
        )
        for _ in range(3):
            add_node(cluster)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    with threadpool_limits(1):
        yield cluster
    ray.shutdown()
    cluster.shutdown()


def arrays_of(loss):
    """Arrays of a pool with this loss."""
    pool = make_pool(n=N, dimensions=6, classes=3)
    rng = np.random.default_rng(0)
    features = pool.features.astype(np.float32)
    if loss == "softmax":
        return {"features": features, "probs": pool.probs, "label_probs": pool.label_probs}
    if loss == "sigmoid":
        return {"features": features, "probs": rng.random((N, 3))}
    variances = rng.random((N, 2)) ** 2 * [1e-3, 50.0]
    return {"features": features, "means": rng.normal(size=(N, 2)), "variances": variances}


OPTIONS = {
    # How many candidates a pass brings depends on where the pool is, unless `refresh` says.
    "sabal-greedy": {"refresh": 32},
    "sabal-kernel": {"refresh": 32, "width": 64},
    "sabal-iht": {"iterations": 5},
}


def node_of(worker):
    """The node that a worker runs on, by its id."""
    return ray.get(worker.__ray_call__.remote(lambda _: ray.get_runtime_context().get_node_id()))


def same(found, expected, what):
    assert np.array_equal(found.indices, expected.indices), what
    assert np.array_equal(found.weights, expected.weights), what
    assert np.array_equal(found.scores, expected.scores), what


def test_every_strategy_that_streams_and_every_loss_choose_as_in_memory(cluster):
    tried = set()
    for loss in ("softmax", "sigmoid", "squared"):
        arrays = arrays_of(loss)
        with RayWorkers(shard_sources(arrays, loss=loss), 3) as held:
            assert len({node_of(worker) for worker in held._workers}) == 3
            pool = RayPool(held)
            for name, strategy in strategies().items():
                if not (strategy.streams and strategy.supports_loss(loss)) or name == "bald":
                    continue  # "bald" needs a posterior, see below
                told = {"strategy": name, "random_state": 3, **OPTIONS.get(name, {})}
                expected = sabal.select(40, **arrays, loss=loss, **told)
                same(sabal.select(40, pool, **told), expected, (loss, name))
                tried.add((loss, name))
            assert held.replaced == 0
    log_probs = make_pool(n=N, classes=3).log_probs
    with RayWorkers(shard_sources({"log_probs": log_probs}), 3) as held:
        for name in ("bald", "sabal-greedy"):
            told = {"strategy": name, "random_state": 3, **OPTIONS.get(name, {})}
            expected = sabal.select(40, log_probs=log_probs, **told)
            same(sabal.select(40, RayPool(held), **told), expected, name)
    print(f"{len(tried) + 2} pairs of a loss and a strategy")
    assert {loss for loss, _ in tried} == {"softmax", "sigmoid", "squared"}


@pytest.mark.parametrize(
    ("strategy", "question", "time"),
    [("sabal-greedy", "best_items", 1), ("sabal-iht", "descent_sums", 2)],
)
def test_a_node_that_holds_a_shard_is_killed_in_the_middle(
    cluster, monkeypatch, strategy, question, time
):
    arrays, options = arrays_of("softmax"), OPTIONS[strategy]
    expected = sabal.select(40, **arrays, strategy=strategy, random_state=3, **options)
    asked, lost = [], []
    ask = RayWorkers.ask

    def ask_and_kill(self, asked_question, *args):
        if asked_question.__name__ == question:
            asked.append(question)
            if len(asked) == time + 1:
                victim = node_of(self._workers[1])
                lost.append(victim)
                add_node(cluster)
                node = next(n for n in cluster.worker_nodes if n.node_id == victim)
                cluster.remove_node(node, allow_graceful=False)
        return ask(self, asked_question, *args)

    with RayWorkers(shard_sources(arrays), 3) as held:
        monkeypatch.setattr(RayWorkers, "ask", ask_and_kill)
        found = sabal.select(40, RayPool(held), strategy=strategy, random_state=3, **options)
        assert held.replaced >= 1
        # The replacement runs, elsewhere, and answered what came after.
        assert node_of(held._workers[1]) not in lost
        assert len(asked) > time + 1
    same(found, expected, strategy)
    assert len(lost) == 1


def test_more_workers_than_cpus_wait_for_the_cluster_to_grow(cluster, monkeypatch):
    arrays = {"probs": make_pool(n=20_000, classes=3).probs}
    options = {"strategy": "margin", "engine": "ray", "address": cluster.address}
    wait = RayWorkers._await

    def grow_and_wait(self, workers):
        add_node(cluster)  # as an autoscaler does for workers that do not fit
        wait(self, workers)

    with monkeypatch.context() as patched:
        patched.setattr(RayWorkers, "_await", grow_and_wait)
        with pytest.warns(sabal.SabalWarning, match="4 CPUs of 4 workers, but 3: waiting for more"):
            found = sabal.select_pool(arrays, 5, workers=4, **options)
    assert found.evidence["cluster"]["workers"] == 4
    same(found, sabal.select(5, **arrays, strategy="margin"), "margin")

    monkeypatch.setattr("sabal.pools.ray.ray_workers.START_SECONDS", 3.0)
    with (
        pytest.warns(sabal.SabalWarning, match="waiting"),
        pytest.raises(ClusterError, match="5 more workers of 1 CPUs each"),
    ):
        sabal.select_pool(arrays, 5, workers=5, **options)


def test_workers_reserve_the_memory_that_they_are_given(cluster, monkeypatch):
    sources = shard_sources({"probs": make_pool(n=N, classes=3).probs})
    size = 600 * 2**20
    with RayWorkers(sources, 3, memory=size) as held:
        assert len({node_of(worker) for worker in held._workers}) == 3
        left = {node["NodeID"]: node["Resources"] for node in ray.nodes() if node["Alive"]}
        assert all(left[node_of(worker)]["memory"] >= size for worker in held._workers)
        free = ray._private.state.available_resources_per_node()
        for worker in held._workers:
            assert free[node_of(worker)].get("memory", 0) == NODE_MEMORY - size
    # No node has as much as this.
    monkeypatch.setattr("sabal.pools.ray.ray_workers.START_SECONDS", 3.0)
    with (
        pytest.raises(ClusterError, match="1 CPUs and 2,048 MiB each"),
        RayWorkers(sources, 3, memory=2 * 2**30),
    ):
        pass
