"""One suite that every registered strategy runs through, whatever it does inside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sabal
from fuzz_oracle import check_selection
from libraries import LIBRARIES
from makers import Pool, make_pool, softmax
from sabal.strategies import coverage, strategies

NAMES = sorted(strategies())
BY_CHANCE = {"random", "badge", "power-bald", "drop-query"}
"""Strategies that draw: a permuted pool gets other draws, so the answer need not follow it."""

BY_COUNT = {"prob-cover", "max-herding"}
"""Strategies that count all items alike, where the lower row wins many ties: whole numbers of
items, or two items of which each is all that the other covers beside itself.
"""

every_strategy = pytest.mark.parametrize("name", NAMES)


def choose(name, pool, budget, convert=np.asarray, dtype="float64", seed=0, **more):
    return sabal.select(
        budget, **pool.kwargs(convert, dtype), strategy=name, random_state=seed, **more
    )


@every_strategy
@pytest.mark.parametrize("budget", [1, 7, 40])
def test_exactly_b_distinct_items_on_every_library_and_precision(name, budget, library, dtype):
    pool = make_pool(n=40)
    selection = choose(name, pool, budget, library, dtype)
    check_selection(selection, 40, budget)
    assert selection.strategy == name


@every_strategy
def test_the_same_seed_gives_the_same_answer_on_every_library(name):
    pool = make_pool(n=50)
    answers = [choose(name, pool, 8, convert) for convert in LIBRARIES.values()]
    answers.append(choose(name, pool, 8))
    answers.append(choose(name, pool, 8, seed=np.random.default_rng(0)))
    for answer in answers[1:]:
        np.testing.assert_array_equal(answers[0].indices, answer.indices)
        np.testing.assert_allclose(answers[0].weights, answer.weights, atol=1e-4)


@every_strategy
def test_no_draw_comes_from_a_global_generator(name):
    pool = make_pool(n=50)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    choose(name, pool, 8)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@every_strategy
def test_inputs_are_left_as_they_were(name, library):
    pool = make_pool(n=30)
    given_arrays = pool.kwargs(library)
    before = {key: np.asarray(value).copy() for key, value in given_arrays.items()}
    if library is np.asarray:
        for array in given_arrays.values():
            array.setflags(write=False)
    sabal.select(6, **given_arrays, strategy=name, random_state=0)
    for key, array in given_arrays.items():
        np.testing.assert_array_equal(np.asarray(array), before[key])


@every_strategy
def test_only_what_is_needed_is_computed(name):
    pool = make_pool(n=30)
    asked = []

    def part(key):
        def compute():
            asked.append(key)
            return getattr(pool, key)

        return compute

    keys = ("features", "probs", "label_probs", "log_probs")
    outputs = sabal.Outputs(size=30, **{key: part(key) for key in keys})
    strategy = strategies()[name]()
    strategy.require(outputs)
    strategy.select(outputs, 5, np.random.default_rng(0))
    allowed = {key for need in strategy.needs for key in need.split("|")}
    if name.startswith("sabal-"):
        allowed |= {"label_probs"}
    assert set(asked) <= allowed
    assert len(asked) == len(set(asked))


@every_strategy
def test_a_missing_input_is_named(name):
    needs = strategies()[name].needs
    if needs:
        with pytest.raises(sabal.SabalError, match=needs[0].split("|")[0]):
            sabal.select(3, ids=range(10), strategy=name)


@every_strategy
def test_an_unknown_option_is_refused(name):
    with pytest.raises(sabal.SabalError, match="no_such_option"):
        choose(name, make_pool(n=10), 3, no_such_option=1)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BY_CHANCE | BY_COUNT])
@pytest.mark.parametrize("n", [30, 200])
def test_permuting_the_pool_permutes_the_answer(name, n, monkeypatch):
    # It is measured on random rows.
    monkeypatch.setattr(coverage, "resolution", lambda *given: 0.5)
    pool = make_pool(n=n)
    order = np.random.default_rng(1).permutation(n)
    moved = Pool(**{key: value[order] for key, value in vars(pool).items()})
    labeled = make_pool(n=5, seed=9).features
    plain = choose(name, pool, 6, labeled_features=labeled)
    permuted = choose(name, moved, 6, labeled_features=labeled)
    assert set(order[permuted.indices].tolist()) == set(plain.indices.tolist())


def degenerate_pools(n=12):
    """Pools with nothing, or too much, to tell items apart by."""
    base = make_pool(n=n)
    classes, samples = 4, 6

    def with_probs(probs, features=base.features):
        log_probs = np.log(np.maximum(probs, 1e-300))
        posterior = np.repeat(log_probs[:, None], samples, axis=1)
        return Pool(features, log_probs, probs, probs, posterior)

    one_hot = np.eye(classes)[np.arange(n) % classes]
    uniform = np.full((n, classes), 1 / classes)
    first = Pool(**{key: np.repeat(value[:1], n, axis=0) for key, value in vars(base).items()})
    twice = Pool(
        **{key: np.repeat(value[: n // 2], 2, axis=0) for key, value in vars(base).items()}
    )
    yield "identical rows", first
    yield "every row twice", twice
    yield "zero features", with_probs(base.probs, np.zeros_like(base.features))
    yield "one-hot", with_probs(one_hot)
    yield "uniform", with_probs(uniform)
    yield "uniform on identical rows", with_probs(uniform, first.features)
    yield "one-hot on zero features", with_probs(one_hot, np.zeros_like(base.features))
    yield "constant column", with_probs(base.probs, np.ones((n, 1)))
    yield "one class", with_probs(np.ones((n, 1)))
    yield "tiny features", with_probs(base.probs, base.features * 1e-30)
    yield "huge features", with_probs(base.probs, base.features * 1e30)
    yield "offset features", with_probs(base.probs, base.features + 1e6)


@every_strategy
@pytest.mark.parametrize("budget", [1, 5, 12])
def test_degenerate_pools_still_give_b_distinct_items(name, budget):
    for what, pool in degenerate_pools():
        selection = choose(name, pool, budget)
        assert len(set(selection.indices.tolist())) == budget, what
        check_selection(selection, 12, budget)


@every_strategy
def test_a_pool_of_one_item(name):
    pool = make_pool(n=1)
    assert choose(name, pool, 1).indices.tolist() == [0]


@every_strategy
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    n=st.integers(1, 25),
    dimensions=st.integers(1, 4),
    classes=st.integers(1, 4),
    samples=st.integers(1, 4),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_any_shape_works(name, n, dimensions, classes, samples, seed, data):
    rng = np.random.default_rng(seed)
    budget = data.draw(st.integers(1, n))
    # Few distinct values make ties and duplicates likely.
    features = rng.integers(-1, 2, size=(n, dimensions)).astype(float)
    logits = rng.integers(-2, 3, size=(n, samples, classes)).astype(float)
    log_probs = np.log(softmax(logits))
    probs = np.exp(log_probs).mean(axis=1)
    pool = Pool(features, np.log(probs), probs, softmax(logits[:, 0] / 2), log_probs)
    check_selection(choose(name, pool, budget), n, budget)
