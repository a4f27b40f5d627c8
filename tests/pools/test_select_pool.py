"""A pool on disk gets the answer that the same pool gets in memory, to the last digit."""

from __future__ import annotations

import numpy as np
import pytest

import sabal
from makers import make_pool
from sabal.core.memory import PeakMemory
from sabal.strategies import strategies

N = 9_000
"""More rows than a segment and a block have."""

LITTLE = 700_000
"""Bytes: less than the pool, enough to keep a few numbers of every item."""


def arrays(n=N, seed=0):
    pool = make_pool(n=n, dimensions=12, classes=4, samples=5, seed=seed)
    names = ("features", "probs", "label_probs", "log_probs")
    return {name: getattr(pool, name).astype("float32") for name in names}


@pytest.fixture(scope="module")
def pool():
    return arrays()


@pytest.fixture(scope="module")
def folder(pool, tmp_path_factory):
    path = tmp_path_factory.mktemp("pool")
    for name, array in pool.items():
        np.save(path / f"{name}.npy", array)
    np.save(path / "id.npy", np.arange(N) * 3)
    return path


STREAMING = sorted(name for name, cls in strategies().items() if getattr(cls, "streams", False))


def assert_same(ours, theirs):
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_array_equal(ours.weights, theirs.weights)
    np.testing.assert_array_equal(ours.ids, theirs.ids)


@pytest.mark.parametrize("name", STREAMING)
@pytest.mark.parametrize("memory", [LITTLE, "4MB"])
def test_a_pool_on_disk_gives_the_same_answer(name, memory, pool, folder):
    inside = sabal.select(40, **pool, ids=np.arange(N) * 3, strategy=name, random_state=0)
    outside = sabal.select_pool(folder, 40, strategy=name, memory=memory, random_state=0)
    assert_same(outside, inside)


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "sabal-kernel"},
        {"strategy": "sabal", "uncertainty": "entropy"},
        {"strategy": "sabal-kernel", "candidates": 5},
        {"strategy": "sabal-kernel", "atoms": "curvature", "width": 64},
        {"strategy": "sabal-kernel", "uncertainty": "entropy", "width": 64},
        {"strategy": "sabal-kernel", "uncertainty": "mutual-information", "width": 64},
        {"strategy": "sabal-greedy", "atoms": "gradient"},
        {"strategy": "sabal-greedy", "atoms": "gradient", "uncertainty": "margin"},
        {"strategy": "sabal-greedy", "scale": "literal"},
        {"strategy": "sabal-iht", "atoms": "gradient", "iterations": 20, "candidates": None},
        {"strategy": "sabal-greedy", "refit": True},
        {"strategy": "sabal-greedy", "refresh": 1},
    ],
    ids=str,
)
def test_every_kind_of_atoms_does(options, pool, folder):
    inside = sabal.select(20, **pool, ids=np.arange(N) * 3, random_state=0, **options)
    outside = sabal.select_pool(folder, 20, memory=LITTLE, random_state=0, **options)
    assert_same(outside, inside)


def test_labelled_features_may_come_from_elsewhere(pool, folder):
    labeled = pool["features"][:50] + 0.01
    inside = sabal.select(
        20, **pool, ids=np.arange(N) * 3, labeled_features=labeled, random_state=0
    )
    outside = sabal.select_pool(folder, 20, memory=LITTLE, labeled_features=labeled, random_state=0)
    assert_same(outside, inside)
    assert inside.evidence["labeled"] == 50
    with pytest.raises(sabal.SabalError, match="columns"):
        sabal.select_pool(folder, 20, labeled_features=labeled[:, 1:])


@pytest.mark.parametrize("source", ["logits", "log_probs"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strategy": "sabal-greedy", "atoms": "gradient", "temperature": 2.0},
        {"strategy": "margin"},
    ],
    ids=str,
)
def test_predictions_that_follow_from_others_are_not_held(source, options, tmp_path):
    made = make_pool(n=N, dimensions=12, classes=4)
    given = {name: getattr(made, name).astype("float32") for name in ("features", source)}
    np.savez(tmp_path / "pool.npz", **given)
    inside = sabal.select(20, **given, random_state=0, **options)
    outside = sabal.select_pool(tmp_path / "pool.npz", 20, memory=LITTLE, random_state=0, **options)
    assert_same(outside, inside)


@pytest.mark.parametrize("rows", [1_000, 4_097, N])
def test_chunks_of_any_size_give_the_same_answer(rows, pool):
    chunks = (
        {name: array[start : start + rows] for name, array in pool.items()}
        for start in range(0, N, rows)
    )
    outside = sabal.select_pool(chunks, 20, memory=LITTLE, random_state=0)
    assert_same(outside, sabal.select(20, **pool, random_state=0))


@pytest.mark.parametrize("name", ["badge", "kcenter", "typiclust"])
def test_a_strategy_that_needs_the_pool_in_memory_loads_what_it_needs(name, pool, folder):
    inside = sabal.select(10, **pool, ids=np.arange(N) * 3, strategy=name, random_state=0)
    outside = sabal.select_pool(folder, 10, strategy=name, memory="3.5MB", random_state=0)
    assert_same(outside, inside)


def test_or_says_how_much_it_would_need(folder):
    with pytest.raises(sabal.SabalError, match=r"passes.*'badge'.*allow memory"):
        sabal.select_pool(folder, 10, strategy="badge", memory=LITTLE)


def test_a_limit_below_a_few_numbers_per_item_is_refused(folder):
    with pytest.raises(sabal.SabalError, match="`memory` of at least"):
        sabal.select_pool(folder, 10, memory=100_000)


def test_bad_numbers_on_disk_are_found(tmp_path, pool):
    features = pool["features"].copy()
    features[8_999, 3] = np.nan
    np.savez(tmp_path / "pool.npz", features=features, probs=pool["probs"])
    with pytest.raises(sabal.SabalError, match="first at row 8999"):
        sabal.select_pool(tmp_path / "pool.npz", 10, memory=500_000)


@pytest.mark.parametrize("strategy", ["sabal", "sabal-greedy", "sabal-iht"])
def test_a_selection_takes_little_beside_its_inputs(strategy, monkeypatch):
    """Hardly more than the inputs' 42 MB; stored, kernel atoms alone would take 164 MB.

    How much it is in a process of its own, `python -m research bench` measures. The default may
    keep a kernel of 268 MB; here it is told not to.
    """
    monkeypatch.setattr("sabal.strategies.greedy_cover.KERNEL_BYTES", 10_000_000)
    rng = np.random.default_rng(0)
    features = rng.standard_normal((40_000, 256), dtype=np.float32)
    probs = sabal.apply_temperature(features[:, :10], 1.0)
    given = {"features": features, "probs": probs, "strategy": strategy, "random_state": 0}
    given["label_probs"] = sabal.apply_temperature(features[:, :10], 2.0)
    if strategy == "sabal-iht":
        given["iterations"] = 5
    sabal.select(20, **given)
    memory = PeakMemory()
    sabal.select(200, **given)
    grown = memory.megabytes()
    if grown is None:
        pytest.skip("this system does not tell")
    assert grown < 60
