"""Shards in this process: merged, they answer every question as the whole pool does."""

from __future__ import annotations

import pickle
from contextlib import ExitStack
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sabal
from local_workers import LocalWorkers, short_segments, write_pool
from makers import make_pool
from sabal.core.arrays import segments_of
from sabal.errors import InputError, SabalWarning
from sabal.pools import ArrayPool
from sabal.pools.pool import TopRows, coordinate_norm_sums, float64_rows, most_uncertain
from sabal.pools.ray import RayPool
from sabal.pools.ray.ray_pool import ids_at
from sabal.pools.ray.shards import RowsByShard, row_ranges
from sabal.sparse.greedy import Ranking
from sabal.sparse.iht import Proximity
from sabal.sparse.items import (
    PoolItems,
    Setup,
    SparseWeights,
    Step,
    build_items,
    descent_sums,
    most_uncertain_items,
    nearest_items,
)
from sabal.sparse.problem import Problem, ProblemSpec

KINDS = ("gradient", "posterior", "curvature", "kernel")


def outputs_for(kind, n, seed=0):
    pool = make_pool(n=n, seed=seed)
    if kind == "posterior":
        return {"log_probs": pool.log_probs}
    return {"features": pool.features, "probs": pool.probs, "label_probs": pool.label_probs}


def same(one, other, names):
    for name in names:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


BEST = ("indices", "scores", "value", "uncertainty", "norms_squared")


@given(st.integers(1, 300_000), st.integers(1, 80))
def test_shares_are_whole_segments_in_order(size, workers):
    ranges = row_ranges(size, workers)
    starts = {segment.start for segment in segments_of(size)}
    assert ranges[0][0] == 0
    assert ranges[-1][1] == size
    assert all(before[1] == after[0] for before, after in pairwise(ranges))
    assert all(start in starts and start < stop for start, stop in ranges)
    assert len(ranges) == min(workers, len(starts))


@pytest.mark.parametrize("kind", KINDS)
@given(n=st.integers(2, 90), workers=st.integers(1, 9), seed=st.integers(0, 5))
def test_merged_answers_are_those_of_the_whole(kind, n, workers, seed):
    given_arrays = outputs_for(kind, n, seed)
    spec = ProblemSpec(atoms=kind, width=32 if kind in ("kernel", "curvature") else None)
    rng = np.random.default_rng(seed)
    with short_segments():
        here = ArrayPool(**given_arrays)
        there = RayPool(LocalWorkers(given_arrays, workers))
        draws = spec.draw(here, np.random.default_rng(1))
        elsewhere = spec.draw(there, np.random.default_rng(1))
        for name, value in vars(draws).items() if draws else ():
            assert np.array_equal(value, getattr(elsewhere, name)), name
        one, other = PoolItems(here, spec, draws), PoolItems(there, spec, draws)
        assert (one.size, one.atom_bytes) == (other.size, other.atom_bytes)
        same(one.sums(), other.sums(), ("sizes", "atoms", "norms_squared", "uncertainty"))
        same(one.sums(), other.sums(), ("variance", "clipped"))
        rows = rng.permutation(n)[: rng.integers(1, n + 1)]
        known = (items.norms_and_uncertainty(rows) for items in (one, other))
        for mine, theirs in zip(*known, strict=True):
            assert np.array_equal(mine, theirs)
        for asked in (rows, rows[:0]):
            mine, theirs = one.gather(asked), other.gather(asked)
            assert type(mine) is type(theirs)
            for a, b in zip(mine.factors, theirs.factors, strict=True):
                assert a.dtype == b.dtype
                assert np.array_equal(a, b)
        problem = Problem.scale_free(one, 1, alpha=1.0, beta=1.0)
        direction = rng.normal(size=problem.target.shape)
        ranking = Ranking(problem.terms, "optimal-step", 1.0)
        for count in (1, 3, n):
            question = (direction, ranking, count, rows[: n // 3])
            same(one.best(*question), other.best(*question), BEST)
        z = SparseWeights.of(rows, rng.random(rows.size))
        down, there_down = (items.descend(direction, z, 0.7) for items in (one, other))
        same(down, there_down, ("total", "square", "slope"))
        near = Proximity(problem.terms, "exact", 0.3)
        same(down.nearest(near, 5), there_down.nearest(near, 5), BEST)


@pytest.mark.parametrize("kind", KINDS)
def test_pools_tell_the_same(kind):
    pool = make_pool(n=50)
    given_arrays = {**outputs_for(kind, 50), "id": [f"item {k}" for k in range(50)]}
    ids = given_arrays["id"]
    spec = ProblemSpec(atoms=kind)
    with short_segments():
        parts = {name: array for name, array in given_arrays.items() if name != "id"}
        here = ArrayPool(**parts, ids=ids)
        there = RayPool(LocalWorkers(given_arrays, 4))
        for name in ("features", "logits", "probs", "label_probs", "log_probs"):
            assert here.has(name) == there.has(name)
        for count in (1, 17, 50):
            mine, theirs = (
                TopRows.merge(each.map(most_uncertain_items, spec, count), count)
                for each in (here, there)
            )
            assert np.array_equal(mine.rows, theirs.rows)
            one, other = here.sample(None, count, 5), there.sample(None, count, 5)
            assert np.array_equal(one.rows, other.rows)
            assert np.array_equal(one.sizes, other.sizes)
        rows = np.array([49, 0, 7, 8, 30])
        assert np.array_equal(here.ids[rows], there.ids[rows])
        mine, theirs = here.take(rows), there.take(rows)
        assert mine.given() == theirs.given()
        assert np.array_equal(mine.ids, theirs.ids)
        for name in mine.given():
            assert np.array_equal(getattr(mine, name), getattr(theirs, name))
        assert (here.size, here.classes) == (there.size, there.classes)
        assert here.model_is_certain() == there.model_is_certain()
        if kind != "posterior":
            sums = (np.concatenate(each.map(coordinate_norm_sums)) for each in (here, there))
            assert np.array_equal(*sums)
            for each in (here, there):
                assert np.array_equal(float64_rows(each, rows), pool.features[rows])


CASES = {
    "sabal-kernel": {"refresh": 8},
    "sabal, coverage": {},
    "sabal, cold": {},
    "sabal-kernel, no model": {"refresh": 8},
    "sabal-greedy": {"refresh": 8},
    "sabal-greedy, literal": {"scale": "literal", "refresh": 8},
    "sabal-greedy, temperature": {"temperature": 2.0, "refresh": 8, "refit": True},
    "sabal-greedy, posterior": {},
    "sabal-iht": {"iterations": 10, "candidates": None},
    "sabal-iht, posterior": {"iterations": 10},
    "sabal-kernel, curvature": {"atoms": "curvature", "width": 64, "refresh": 8},
    "sabal-kernel, candidates": {"candidates": 3},
    "bald, posterior": {},
    "random": {},
    "entropy": {},
    "margin": {},
    "least-confidence": {},
}


@pytest.mark.parametrize("forgetful", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_every_strategy_chooses_what_it_chooses_in_memory(case, forgetful):
    name, _, variant = case.partition(", ")
    options = CASES[case]
    pool = make_pool(n=400)
    cold = ("features",)
    names = {"posterior": ("log_probs",), "no model": cold, "cold": cold, "temperature": ("probs",)}
    names = names.get(variant, ("features", "probs", "label_probs"))
    given_arrays = {each: getattr(pool, each) for each in ({"features"} | set(names))}
    if variant == "posterior":
        given_arrays = {"log_probs": pool.log_probs}
    small = {"sabal.sparse.greedy.SMALL_POOL": 100, "sabal.strategies.coverage.SAMPLE": 100}
    with ExitStack() as stack:
        stack.enter_context(short_segments(50))
        for constant, value in small.items():
            stack.enter_context(patch(constant, value))
        expected = sabal.select(24, **given_arrays, strategy=name, random_state=5, **options)
        pool = RayPool(LocalWorkers(given_arrays, 3, forgetful))
        found = sabal.select(24, pool, strategy=name, random_state=5, **options)
    assert np.array_equal(found.indices, expected.indices)
    assert np.array_equal(found.weights, expected.weights)
    assert np.array_equal(found.scores, expected.scores)
    assert np.array_equal(found.ids, expected.ids)
    own = ("seconds", "cluster")
    told, meant = ({k: v for k, v in e.evidence.items() if k not in own} for e in (found, expected))
    assert told == meant


def arrays_of(loss, n=400):
    """Arrays of a pool of this loss; the first shard has outputs without variance."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, 4))
    if loss == "sigmoid":
        return {"features": features, "probs": rng.random((n, 3))}
    variances = rng.random((n, 2)) ** 2 * [1e-3, 50.0]
    variances[:150, 0] = 0.0
    return {"features": features, "means": rng.normal(size=(n, 2)), "variances": variances}


@pytest.mark.parametrize("loss", ["sigmoid", "squared"])
def test_every_loss_is_chosen_from_as_in_memory(loss):
    given_arrays = arrays_of(loss)
    with short_segments(50), patch("sabal.strategies.coverage.SAMPLE", 100):
        pools = [RayPool(LocalWorkers(given_arrays, 3, f, loss)) for f in (False, True)]
        for name, strategy in sabal.strategies.strategies().items():
            if not (strategy.streams and strategy.supports_loss(loss)):
                continue
            options = {"refresh": 8} if name == "sabal-kernel" else {}
            for more in (options, {"atoms": "curvature", **options}) if options else (options,):
                told = {"strategy": name, "random_state": 5, **more}
                expected = sabal.select(24, **given_arrays, loss=loss, **told)
                for pool in pools:
                    found = sabal.select(24, pool, **told)
                    assert np.array_equal(found.indices, expected.indices), (name, more)
                    assert np.array_equal(found.weights, expected.weights), (name, more)
                    assert np.array_equal(found.scores, expected.scores), (name, more)


def test_ties_are_told_as_they_are_in_memory():
    probs = np.tile([[0.5, 0.5]], (40, 1))
    probs[:3] = [0.9, 0.1]
    with short_segments():
        with pytest.warns(SabalWarning, match="score the same") as expected:
            sabal.select(5, probs=probs, strategy="margin")
        pool = RayPool(LocalWorkers({"probs": probs}, 4))
        with pytest.warns(SabalWarning, match="score the same") as found:
            batch = sabal.select(5, pool, strategy="margin")
    assert [str(each.message) for each in found] == [str(each.message) for each in expected]
    assert batch.indices.tolist() == [3, 4, 5, 6, 7]


def test_random_draws_are_those_of_one_long_draw():
    probs = np.full((600_000, 2), 0.5, dtype=np.float32)
    expected = sabal.select(9, probs=probs, strategy="random", random_state=3)
    pool = RayPool(LocalWorkers({"probs": probs}, 5))
    found = sabal.select(9, pool, strategy="random", random_state=3)
    assert np.array_equal(found.indices, expected.indices)
    assert np.array_equal(found.scores, expected.scores)


def test_a_shard_that_was_just_read_knows_what_the_lost_one_knew():
    given_arrays = outputs_for("gradient", 60)
    with short_segments():
        old, new = (LocalWorkers(given_arrays, 2).shard(1) for _ in range(2))
        spec = ProblemSpec(atoms="gradient")
        setup = Setup(0, spec, None)
        built = build_items(old, setup)
        rng = np.random.default_rng(0)
        z = SparseWeights.of(np.array([3, 40, 59]), np.ones(3))
        step = Step(0, rng.normal(size=built.sums.atoms.shape[1:]), z, 1.0)
        descent_sums(old, setup, step)
        problem = Problem.scale_free(spec.local_items(old, None), 1, alpha=1.0, beta=1.0)
        near = Proximity(problem.terms, "exact", 0.3)
        found, again = (nearest_items(each, setup, step, near, 4) for each in (old, new))
        same(found, again, BEST)
        assert found.indices.min() >= old.start


def test_answers_do_not_grow_with_the_pool():
    sizes = []
    for n in (2_000, 8_000):
        pool = make_pool(n=n)
        with short_segments(100):
            workers = LocalWorkers({"probs": pool.probs}, 2)
            sizes.append(len(pickle.dumps(workers.ask(most_uncertain, "margin", 50))))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("kind", [int, str])
def test_ids_have_to_be_distinct_all_over_the_pool(tmp_path, kind):
    ids = [kind(k) for k in range(39)]
    write_pool(tmp_path / "pool", ids=[*ids, ids[3]])
    with short_segments(), pytest.raises(InputError, match="distinct; got 3 2 times"):
        RayPool(LocalWorkers(tmp_path / "pool", 4))


def test_a_mistake_in_a_later_row_is_told_by_where_its_shard_begins():
    probs = make_pool(n=40).probs
    probs[31] = np.nan
    with short_segments(), pytest.raises(InputError, match="at row 10, counted from row 21 of"):
        RayPool(LocalWorkers({"probs": probs}, 2))


def test_shards_have_to_be_alike(tmp_path):
    arrays_of_pool = write_pool(tmp_path / "pool")
    with short_segments():
        workers = LocalWorkers(arrays_of_pool, 2)
        other = LocalWorkers({**arrays_of_pool, "features": arrays_of_pool["features"][:, :3]}, 2)
        workers.shards[1] = other.shard(1)
        with pytest.raises(InputError, match=r"features: .*row=\(5,\).*got .*row=\(3,\)"):
            RayPool(workers)


def test_rows_come_back_in_the_order_they_were_asked_for():
    with short_segments():
        workers = LocalWorkers({"probs": make_pool(n=30).probs}, 4)
        rows = np.array([29, 3, 3, 15, 0])
        wanted = RowsByShard(workers, rows)
        assert np.array_equal(wanted.join(workers.ask_each(ids_at, wanted.args())), rows)


@pytest.mark.parametrize("strategy", ["badge", "kcenter", "power-bald"])
def test_strategies_that_need_all_rows_at_once_are_refused(strategy):
    pool = make_pool(n=20)
    arrays = {"features": pool.features, "probs": pool.probs}
    with pytest.raises(InputError, match="sabal, sabal-greedy, sabal-iht, sabal-kernel, random"):
        sabal.select(1, RayPool(LocalWorkers(arrays, 2)), strategy=strategy)
