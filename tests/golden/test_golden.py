"""Batches of every strategy as they were recorded: no change of the code may change them silently.

`python tests/golden/test_golden.py` records those that are missing from batches.json (needs Ray);
delete an entry to record it anew, and say in the commit why it changed.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent))

import cases

import sabal
from sabal.pools import open_pool

FILE = Path(__file__).with_name("batches.json")
RECORDED = json.loads(FILE.read_text())
MEMORY = "900KB"
"""So little that the larger pools stay on disk."""


def entry(batch):
    """Indices, and weights where they are not all 1."""
    weights = np.round(batch.weights, 9).tolist()
    return [batch.indices.tolist(), [] if set(weights) == {1.0} else weights]


def answer(select):
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            return entry(select())
    except sabal.SabalError as error:
        return type(error).__name__


def requests(pool):
    for key, strategy, options in cases.requests():
        if pool in cases.SLOW_ON.get(strategy, ()):
            continue
        for seed in cases.SEEDS:
            yield f"{pool}/{seed}/{key}", strategy, {"random_state": seed, **options}


def in_memory(pool):
    arrays, loss = cases.pools()[pool], cases.losses().get(pool, "softmax")
    for case, strategy, options in requests(pool):

        def select(strategy=strategy, options=options):
            budget = cases.BUDGETS[pool]
            return sabal.select(budget, **arrays, loss=loss, strategy=strategy, **options)

        yield f"{case}/memory", answer(select)


def on_disk(pool, folder):
    path = Path(folder) / f"{pool}.npz"
    np.savez(path, **cases.pools()[pool])
    for case, strategy, options in requests(pool):

        def select(strategy=strategy, options=options):
            budget = cases.BUDGETS[pool]
            return sabal.select_pool(path, budget, strategy=strategy, memory=MEMORY, **options)

        yield f"{case}/disk", answer(select)


def on_ray(pool, folder):
    path = Path(folder) / f"{pool}.npz"
    np.savez(path, **cases.pools()[pool])
    with open_pool(path, engine="ray", workers=2) as shards:
        for case, strategy, options in requests(pool):

            def select(strategy=strategy, options=options):
                return sabal.select(cases.BUDGETS[pool], shards, strategy=strategy, **options)

            yield f"{case}/ray", answer(select)


def check(found):
    differing = []
    for case, got in found:
        meant = RECORDED[case]
        if isinstance(meant, str) or isinstance(got, str):
            same = meant == got
        else:
            weights = (
                np.allclose(got[1], meant[1], atol=1e-6) if len(got[1]) == len(meant[1]) else 0
            )
            same = got[0] == meant[0] and weights
        if not same:
            differing.append(case)
    assert not differing


@pytest.mark.parametrize("pool", cases.BUDGETS)
def test_batches_in_memory(pool):
    check(in_memory(pool))


@pytest.mark.parametrize("pool", ["classes", "posterior", "small"])
def test_batches_from_disk(pool, tmp_path):
    check(on_disk(pool, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["classes", "posterior"])
def test_batches_on_ray(pool, tmp_path):
    check(on_ray(pool, tmp_path))


def test_every_strategy_is_recorded():
    from sabal.strategies.registry import BUILT_IN

    assert {cls.name for cls in BUILT_IN} == {strategy for _, strategy, _ in cases.requests()}


def record():
    import tempfile

    import ray

    warnings.simplefilter("ignore")
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for pool in cases.BUDGETS:
            found |= dict(in_memory(pool))
            if pool in ("classes", "posterior", "small"):
                found |= dict(on_disk(pool, folder))
            if pool in ("classes", "posterior"):
                found |= dict(on_ray(pool, folder))
    print([case for case in found if case not in RECORDED], "added")
    FILE.write_text(json.dumps({**found, **RECORDED}, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    record()
