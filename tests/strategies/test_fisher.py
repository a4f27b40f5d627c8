"""Bait: against explicit matrices and inverses, and on pools where there is little to learn."""

from __future__ import annotations

import json
from itertools import permutations, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from makers import make_pool
from reference_fisher import bait, matrices, normalised, trace
from sabal.errors import InputError, SabalWarning
from sabal.pools import ArrayPool
from sabal.strategies import bait as bait_module
from sabal.strategies import fisher
from sabal.strategies.bait import Bait


def arrays(n=20, dimensions=3, classes=4, seed=0, labeled=0):
    """Features, probabilities and labelled features that float32 holds as well as float64."""
    pool = make_pool(n=n, dimensions=dimensions, classes=classes, seed=seed)
    rng = np.random.default_rng(seed + 1)
    more = rng.normal(size=(labeled, dimensions)) if labeled else None
    parts = (pool.features, pool.probs, more)
    return tuple(None if a is None else a.astype("float32").astype("float64") for a in parts)


def run(features, probs, budget, labeled=None, seed=0, **options):
    outputs = ArrayPool(features=features, probs=probs, labeled_features=labeled)
    return Bait(**options).select(outputs, budget, np.random.default_rng(seed))


def search_and_blocks(parts, ridge):
    features, probs, _ = parts
    probs = normalised(probs)
    search = fisher.TraceSearch(features, probs, features[:0], ridge, np.arange(len(features)))
    return search, search.blocks()


def assert_same(selection, expected):
    assert selection.indices.tolist() == expected.picks
    np.testing.assert_allclose(selection.scores, expected.gains, rtol=1e-7, atol=1e-13)
    assert selection.evidence["trace_before"] == pytest.approx(expected.before, rel=1e-8)
    assert selection.evidence["trace_after"] == pytest.approx(expected.after, rel=1e-8)
    assert selection.evidence["forward_picks"] == len(expected.forward)


CASES = {
    "plain": ((20, 3, 4), 5, {}),
    "two classes": ((20, 4, 2), 4, {}),
    "bias": ((15, 2, 3), 5, {"bias": True}),
    "forward only": ((20, 3, 3), 6, {"oversample": 1.0}),
    "one and a half": ((20, 3, 3), 5, {"oversample": 1.5}),
    "oversampled beyond the pool": ((12, 3, 3), 5, {"oversample": 5}),
    "strong regularisation": ((20, 3, 4), 5, {"regularisation": 100.0}),
    "weak regularisation": ((20, 3, 4), 6, {"regularisation": 1e-3}),
    "the whole pool": ((9, 2, 3), 9, {}),
    "one item of two": ((2, 2, 3), 1, {}),
    "one item": ((1, 3, 2), 1, {}),
}


@pytest.mark.parametrize("labeled", [0, 4])
@pytest.mark.parametrize("case", CASES)
def test_picks_and_traces_are_those_of_explicit_inverses(case, labeled, library, dtype):
    shape, budget, options = CASES[case]
    features, probs, more = arrays(*shape, labeled=labeled)
    given = [None if a is None else library(a.astype(dtype)) for a in (features, probs, more)]
    selection = run(*given[:2], budget, given[2], **options)
    assert_same(selection, bait(features, probs, budget, more, **options))
    assert selection.evidence["labeled"] == labeled


@given(seed=st.integers(0, 10_000), classes=st.integers(2, 4), copies=st.integers(1, 3))
def test_picks_are_those_of_the_twin_with_duplicates(seed, classes, copies):
    features, probs, _ = arrays(5, 2, classes, seed=seed)
    features, probs = np.tile(features, (copies, 1)), np.tile(probs, (copies, 1))
    for budget in (1, 2, 5):
        assert_same(run(features, probs, budget), bait(features, probs, budget))


@given(seed=st.integers(0, 10_000))
def test_rounding_does_not_decide_between_equals(seed):
    """Every order of one item's features and classes: equal by symmetry, but summed differently."""
    rng = np.random.default_rng(seed)
    h, p = rng.normal(size=4), rng.dirichlet(np.ones(3))
    rows = list(product(permutations(h), permutations(p)))
    features, probs = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    assert run(features, probs, 1, oversample=1).indices.tolist() == [0]


@pytest.mark.parametrize("regularisation", [1e-4, 1e-5])
def test_small_regularisation_is_followed_by_computing_afresh(regularisation, monkeypatch):
    """The blocks fall by many orders: what updates would lose is computed from M again."""
    features, probs, _ = arrays(40, 2, 3)
    expected = bait(features, probs, 15, regularisation=regularisation)
    inverted = []
    invert = fisher.TraceSearch.invert
    monkeypatch.setattr(
        fisher.TraceSearch,
        "invert",
        lambda self, chosen: (inverted.append(1), invert(self, chosen)),
    )
    selection = run(features, probs, 15, regularisation=regularisation)
    assert len(inverted) > 1  # more than before pruning
    assert selection.indices.tolist() == expected.picks
    assert selection.evidence["trace_after"] == pytest.approx(expected.after, rel=1e-8)


def test_updated_blocks_are_what_computing_afresh_gives():
    search, blocks = search_and_blocks(arrays(60, 4, 3), 0.1)
    for item, sign in ((3, 1.0), (40, 1.0), (17, 1.0), (40, -1.0)):
        blocks.update(*search.step(item, sign), sign)
    updated, trace_now = search.k.dense(), search.trace
    search.invert([3, 17])
    np.testing.assert_allclose(updated, search.k.dense(), atol=1e-12)
    assert trace_now == pytest.approx(search.trace)
    afresh = search.blocks()
    np.testing.assert_allclose(blocks.a_NCC, afresh.a_NCC, atol=1e-11)
    np.testing.assert_allclose(blocks.g_NCC, afresh.g_NCC, atol=1e-10)


@pytest.mark.parametrize("labeled", [0, 9])
@pytest.mark.parametrize("part", [3, 128])
def test_the_coordinates_leave_information_and_blocks_as_they_are(labeled, part, monkeypatch):
    """Against the written-out matrices: M, F, and A and G of every item after three picks."""
    monkeypatch.setattr(fisher, "PART", part)
    features, probs, more = arrays(30, 7, 4, labeled=labeled)
    more = features[:0] if more is None else more
    search = fisher.TraceSearch(features, normalised(probs), more, 0.5, np.arange(30))
    m, f, pool = matrices(features, normalised(probs), 0.5, labeled=more)
    assert search.trace == pytest.approx(trace(m, f), rel=1e-10)
    for item in (4, 11, 20):
        search.step(item, 1.0)
        m = m + pool[item]
    assert search.k.is_diagonal
    assert search.trace == pytest.approx(trace(m, f), rel=1e-10)
    k = np.linalg.inv(m)
    blocks = search.blocks()
    for item, p in enumerate(normalised(probs)):
        v = np.kron(np.diag(np.sqrt(p)) - np.outer(p, np.sqrt(p)), features[item][:, None])
        np.testing.assert_allclose(blocks.a_NCC[item], v.T @ k @ v, atol=1e-10)
        np.testing.assert_allclose(blocks.g_NCC[item], v.T @ k @ f @ k @ v, atol=1e-10)


def test_directions_are_kept_apart_until_they_are_many():
    features, probs, _ = arrays(20, 4, 3)
    search = fisher.TraceSearch(features, normalised(probs), features[:0], 0.3, np.arange(20))
    x = np.random.default_rng(0).normal(size=(8, 3))
    for count, item in enumerate((3, 9, 4, 11, 7), start=1):
        search.step(item, 1.0)
        assert search.k.is_diagonal == (count <= 4)  # of two directions each, with P = 8
        afresh = fisher.TraceSearch(features, normalised(probs), features[:0], 0.3, np.arange(20))
        afresh.invert([3, 9, 4, 11, 7][:count])
        np.testing.assert_allclose(search.k.times(x)[0], afresh.k.base @ x, atol=1e-11)
        np.testing.assert_allclose(search.k.dense(), afresh.k.base, atol=1e-11)


def test_joint_blocks_are_what_computing_afresh_gives():
    features, probs, labeled = arrays(20, 9, 3, labeled=3)
    search = fisher.TraceSearch(features, normalised(probs), labeled, 0.3, np.arange(20))
    chosen = np.array([3, 9, 4, 11, 7])
    for item in chosen:
        search.step(item, 1.0)
    joint = fisher.JointBlocks(*search.k.of_directions(), len(chosen))
    kept = np.arange(5)
    for removed in (2, 0):
        search.invert(chosen[kept])
        expected = search.blocks(chosen).losses(kept)
        np.testing.assert_allclose(joint.losses(kept), expected, rtol=1e-9)
        joint.remove(kept[removed])
        kept = np.delete(kept, removed)


@pytest.fixture
def single(monkeypatch):
    """Single precision for pools of any size, and the precisions that blocks had."""
    monkeypatch.setattr(fisher, "SINGLE_FROM", 0)
    made = []
    blocks = fisher.TraceSearch.blocks
    monkeypatch.setattr(
        fisher.TraceSearch,
        "blocks",
        lambda self, *args, **more: (found := blocks(self, *args, **more), made.append(found))[0],
    )
    return made


@pytest.mark.parametrize("case", CASES)
def test_single_precision_picks_as_the_twin(case, single, library, dtype):
    shape, budget, options = CASES[case]
    features, probs, more = arrays(*shape, labeled=4)
    given = [library(a.astype(dtype)) for a in (features, probs, more)]
    assert_same(
        run(*given[:2], budget, given[2], **options), bait(features, probs, budget, more, **options)
    )
    assert single[0].single


@given(seed=st.integers(0, 10_000))
def test_single_precision_does_not_decide_between_close_gains(seed):
    """Pairs whose features differ by a part in ten million."""
    features, probs, _ = arrays(8, 3, 3, seed=seed)
    features = np.repeat(features, 2, axis=0)
    features[1::2] *= 1.0 + 1e-7
    probs = np.repeat(probs, 2, axis=0)
    expected = bait(features, probs, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fisher, "SINGLE_FROM", 0)
        assert_same(run(features, probs, 3), expected)


def test_many_equal_gains_end_single_precision(single):
    features, probs, _ = arrays(4, 3, 3)
    features, probs = np.tile(features, (30, 1)), np.tile(probs, (30, 1))
    assert_same(run(features, probs, 3), bait(features, probs, 3))
    assert [blocks.single for blocks in single[:2]] == [True, False]


def test_blocks_that_shrink_end_single_precision(single):
    features, probs, _ = arrays(40, 2, 3)
    expected = bait(features, probs, 15, regularisation=1e-3)
    assert_same(run(features, probs, 15, regularisation=1e-3), expected)
    assert {blocks.single for blocks in single} == {True, False}


def test_extreme_regularisation_is_in_double_precision(single):
    features, probs, _ = arrays(20, 3, 3)
    run(features, probs, 3, regularisation=1e12)
    assert not single[0].single


def test_the_smallest_direction_decides_about_single_precision(monkeypatch):
    """Labelled items fill one direction; the others have nothing but a tiny regularisation."""
    monkeypatch.setattr(fisher, "SINGLE_FROM", 0)
    features, probs, _ = arrays(20, 3, 3)
    rows = np.arange(20)
    for ridge, may in ((1e-10, False), (1e-3, True), (1e10, False)):
        search = fisher.TraceSearch(features, normalised(probs), features[:1], ridge, rows)
        assert search._may_be_single == may


def test_items_of_the_smallest_variance_are_no_candidates(monkeypatch):
    monkeypatch.setattr(bait_module, "MIN_VARIANCE", 0.5)
    features, _, _ = arrays(9, 3, 3)
    probs = np.repeat([[0.5, 0.5, 0.0], [0.4, 0.3, 0.3], [1.0, 0.0, 0.0]], 3, axis=0)
    found = run(features, probs, 3)
    assert found.evidence["candidates"] == 3
    assert set(found.indices) == {3, 4, 5}


def test_pools_with_more_features_than_picks_are_those_of_the_twin():
    features, probs, labeled = arrays(25, 9, 3, labeled=4)
    for budget in (1, 2):
        assert_same(run(features, probs, budget, labeled), bait(features, probs, budget, labeled))


@given(seed=st.integers(0, 10_000), ridge=st.sampled_from([1e-3, 0.1, 1.0, 100.0]))
def test_bounds_never_rule_out_the_best(seed, ridge):
    search, blocks = search_and_blocks(arrays(50, 3, 4, seed=seed), ridge)
    open_N = np.ones(50, dtype=bool)
    for _ in range(6):
        gains = np.where(open_N, blocks.gains(np.arange(50)), -np.inf)
        best = int(gains.argmax())
        assert best in blocks.contenders(open_N)
        open_N[best] = False
        blocks.update(*search.step(best, 1.0), 1.0)


def test_bounds_leave_few_to_look_at():
    _, blocks = search_and_blocks(arrays(2000, 8, 4), 10.0)
    assert len(blocks.contenders(np.ones(2000, dtype=bool))) < 500


def test_every_library_and_dtype_picks_the_same():
    features, probs, labeled = arrays(400, 6, 4, labeled=7)
    picks = {
        tuple(
            run(
                *(convert(a.astype(dtype)) for a in (features, probs)), 25,
                convert(labeled.astype(dtype)), regularisation=0.01,
            ).indices.tolist()
        )
        for convert in (np.asarray, torch.as_tensor)
        for dtype in ("float32", "float64")
    }  # fmt: skip
    assert len(picks) == 1


def test_scores_add_up_to_the_fall_of_the_trace_without_pruning():
    features, probs, _ = arrays(100, 4, 3)
    selection = run(features, probs, 30, oversample=1)
    fall = selection.evidence["trace_before"] - selection.evidence["trace_after"]
    assert selection.scores.sum() == pytest.approx(fall, rel=1e-10)


def test_pruning_beats_forward_selection_somewhere_and_a_random_batch_everywhere():
    better = 0
    for seed in range(10):
        features, probs, _ = arrays(60, 3, 3, seed=seed)
        after = run(features, probs, 5).evidence["trace_after"]
        better += after < run(features, probs, 5, oversample=1).evidence["trace_after"] * (1 - 1e-9)
        m, f, pool = matrices(features, probs, 1.0)
        batch = np.random.default_rng(seed).choice(60, size=5, replace=False)
        assert after < trace(m + sum(pool[j] for j in batch), f)
    assert better > 0


@given(
    n=st.integers(1, 12),
    dimensions=st.integers(1, 4),
    classes=st.integers(1, 4),
    share=st.floats(0, 1),
    seed=st.integers(0, 10_000),
    bias=st.booleans(),
    labeled=st.booleans(),
)
def test_any_pool_gives_distinct_items(n, dimensions, classes, share, seed, bias, labeled):
    """Features of -1, 0 and 1, predictions from a few rows (one-hot, uniform, in between)."""
    rng = np.random.default_rng(seed)
    kinds = np.concatenate([np.eye(classes), np.full((2, classes), 1.0 / classes)])
    kinds[-1] = rng.dirichlet(np.ones(classes))
    features = rng.integers(-1, 2, size=(n, dimensions)).astype(float)
    probs = kinds[rng.integers(len(kinds), size=n)]
    more = features[:1] + 1.0 if labeled else None
    before = features.copy(), probs.copy()
    budget = 1 + int(share * (n - 1))
    selection = run(features, probs, budget, more, bias=bias)
    tensors = [None if a is None else torch.as_tensor(a) for a in (features, probs, more)]
    again = run(*tensors[:2], budget, tensors[2], bias=bias)
    assert len(set(selection.indices.tolist())) == len(selection) == budget
    assert 0 <= selection.indices.min() <= selection.indices.max() < n
    assert np.all(np.isfinite(selection.scores))
    assert np.all(selection.scores >= 0)
    json.dumps(selection.evidence)
    np.testing.assert_array_equal(selection.indices, again.indices)
    np.testing.assert_array_equal(features, before[0])
    np.testing.assert_array_equal(probs, before[1])


def test_identical_rows_are_taken_in_order():
    selection = run(np.ones((10, 3)), np.full((10, 4), 0.25), 4)
    assert selection.indices.tolist() == [0, 1, 2, 3]
    assert np.all(selection.scores > 0)
    assert selection.evidence["warnings"] == []


@pytest.mark.parametrize("kind", ["one-hot", "one class", "zero features"])
def test_a_pool_without_information_is_said_and_still_gives_a_batch(kind, library):
    features, probs, _ = arrays(12, 3, 1 if kind == "one class" else 3)
    if kind == "one-hot":
        probs = np.eye(3)[np.arange(12) % 3]
    if kind == "zero features":
        features = np.zeros((12, 3))
    with pytest.warns(SabalWarning, match="only 0 items could be chosen by their information"):
        selection = run(library(features), library(probs), 5)
    assert len(set(selection.indices.tolist())) == 5
    assert np.all(selection.scores == 0)
    assert selection.evidence["trace_after"] == 0
    if kind == "zero features":
        top = np.sort(probs, axis=1)
        assert selection.indices.tolist() == np.argsort(top[:, -1] - top[:, -2])[:5].tolist()
    else:
        other = run(library(features), library(probs), 5, seed=1)
        assert selection.indices.tolist() != other.indices.tolist()


def test_items_without_information_come_last():
    features, probs, _ = arrays(10, 3, 3)
    probs[[0, 1, 2, 4, 5, 7, 9]] = [0.0, 1.0, 0.0]
    with pytest.warns(SabalWarning, match="only 3 items.* the other 2"):
        selection = run(features, probs, 5)
    assert set(selection.indices[:3].tolist()) == {3, 6, 8}
    assert np.all(selection.scores[:3] > 0)
    assert np.all(selection.scores[3:] == 0)


def test_nearly_one_hot_predictions_do_not_drown_in_rounding():
    """(1 - 2s, s, s): to first order in s, tr(Lam_i Lam_j) = 10 s_i s_j, and M stays lambda I."""
    features, _, _ = arrays(30, 3, 3)
    small = 1e-12 * (1 + np.arange(30))
    probs = np.stack([1 - 2 * small, small, small], axis=1)
    gains = 10 * small * np.mean(small * (features @ features.T) ** 2, axis=1)
    selection = run(features, probs, 4, oversample=1)
    assert selection.indices.tolist() == np.argsort(-gains)[:4].tolist()
    np.testing.assert_allclose(selection.scores, np.sort(gains)[::-1][:4], rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-120, 1e-30, 1e-3, 1e4, 1e30, 1e120])
def test_the_unit_of_the_features_is_a_matter_of_lambda(scale):
    features, probs, labeled = arrays(50, 3, 3, labeled=3)
    plain = run(features, probs, 6, labeled)
    scaled = run(scale * features, probs, 6, scale * labeled, regularisation=scale**2)
    np.testing.assert_array_equal(plain.indices, scaled.indices)
    np.testing.assert_allclose(plain.scores, scaled.scores, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1e9, 1e200])
def test_features_out_of_proportion_to_lambda(scale):
    features, probs, _ = arrays(50, 3, 3)
    selection = run(scale * features, probs, 10)
    assert len(set(selection.indices.tolist())) == 10
    assert np.all(np.isfinite(selection.scores))
    raised = [w for w in selection.evidence["warnings"] if "regularisation was raised" in w]
    assert len(raised) == (scale > 1)
    # What lambda is next to nothing, or next to everything, does not depend on the scale.
    np.testing.assert_array_equal(selection.indices, run(scale * 7 * features, probs, 10).indices)


def test_an_outlier_is_survived():
    features, probs, _ = arrays(50, 3, 3)
    features[7] *= 1e7
    selection = run(features, probs, 10)
    assert len(set(selection.indices.tolist())) == 10
    assert np.all(np.isfinite(selection.scores))


def test_features_that_do_not_fit_are_projected(library, dtype):
    features, probs, labeled = arrays(60, 12, 3, labeled=5)
    room = 4 * 8 * (3 * 5) ** 2 / 2**30  # five dimensions, three classes
    options = {"memory_gib": room * 3, "regularisation": 0.1}
    given = [library(a.astype(dtype)) for a in (features, probs, labeled)]
    with pytest.warns(SabalWarning, match="projected at random from 12 to 8 dimensions"):
        selection = run(*given[:2], 6, given[2], **options)
    assert selection.evidence["projected_dimensions"] == 8
    projection = np.random.default_rng(0).standard_normal((12, 8)) / np.sqrt(8)
    expected = run(features @ projection, probs, 6, labeled @ projection, regularisation=0.1)
    assert expected.evidence["projected_dimensions"] is None
    np.testing.assert_array_equal(selection.indices, expected.indices)


def test_items_that_do_not_fit_are_left_out_by_margin(library):
    features, probs, _ = arrays(50, 3, 3)
    room = 20 * 2 * 8 * 3**2 / 2**30
    with pytest.warns(SabalWarning, match="only the 20 most uncertain of 50 items"):
        selection = run(library(features), library(probs), 6, memory_gib=room)
    top = np.sort(probs, axis=1)
    only = np.sort(np.argsort(top[:, -1] - top[:, -2])[:20])
    assert_same(selection, bait(features, probs, 6, only=only.tolist()))
    with pytest.warns(SabalWarning, match="the other 5 are the most uncertain of the rest"):
        larger = run(library(features), library(probs), 25, memory_gib=room)
    assert set(larger.indices[:20].tolist()) == set(only.tolist())
    assert larger.indices[20:].tolist() == np.argsort(top[:, -1] - top[:, -2])[20:25].tolist()


def test_labelled_items_count_as_chosen_ones():
    """With every prediction alike their information is exact, and what they cover is not asked."""
    features = np.repeat(np.eye(3), 4, axis=0)
    probs = np.full((12, 2), 0.5)
    selection = run(features, probs, 2, labeled=np.repeat(np.eye(3)[:2], 3, axis=0))
    assert set(selection.indices.tolist()) <= {8, 9, 10, 11}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"oversample": 0.5}, "oversample"),
        ({"oversample": float("nan")}, "oversample"),
        ({"regularisation": 0.0}, "regularisation"),
        ({"memory_gib": 0}, "memory_gib"),
    ],
)
def test_options_are_checked(options, match):
    with pytest.raises(InputError, match=match):
        Bait(**options)


def test_too_little_memory_for_the_classes_is_said():
    features, probs, _ = arrays(10, 3, 4)
    with pytest.raises(InputError, match="room for 4 classes"):
        run(features, probs, 2, memory_gib=1e-8)
