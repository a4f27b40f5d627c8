"""Coverage: fast greedy beside the plain one, the bound it rests on, and `sabal` by default."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_coverage as reference
import sabal
from makers import make_pool
from sabal.predictions import uncertainty
from sabal.strategies import coverage, greedy_cover
from sabal.strategies.greedy_cover import Coverage, Kernel


def points_of(seed, n=60, d=3, copies=0):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, d))
    points[n - copies :] = points[:copies]
    points -= points.mean(axis=0)
    return points, rng.random(n) ** 2, rng.standard_normal((7, d))


WHOLE, LITTLE = 10**9, 2_000
"""Bytes for the kernel: all of it is kept, or a few short rows."""


def cover_of(points, mass, labeled, radius, memory=WHOLE):
    labeled = None if labeled is None else labeled / radius
    return Coverage(Kernel(points / radius), mass / mass.sum(), labeled, memory)


def share_with(indices, points, mass, labeled, radius):
    near = points[indices] if labeled is None else np.concatenate([points[indices], labeled])
    return reference.kernel(points, near, radius).max(axis=1) @ mass / mass.sum()


@pytest.fixture(params=[(256, WHOLE), (8, WHOLE), (8, LITTLE), (8, 10 * LITTLE), (8, 0)], ids=str)
def memory(request, monkeypatch):
    block, memory = request.param
    monkeypatch.setattr(greedy_cover, "BLOCK", block)
    monkeypatch.setattr(greedy_cover, "MIN_BLOCK", 5)
    return memory


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("radius", [0.2, 1.0, 5.0])
def test_picks_are_those_of_plain_greedy(memory, labelled, radius):
    points, mass, labeled = points_of(0)
    labeled = labeled if labelled else None
    found = cover_of(points, mass, labeled, radius, memory).greedy(12)
    picks, gains, covered = reference.greedy(points, mass, labeled, radius, 12)
    np.testing.assert_array_equal(found.indices, picks)
    np.testing.assert_allclose(found.gains, gains, atol=1e-6)
    assert found.after == pytest.approx(covered @ mass / mass.sum())
    expected = reference.weights(points, mass, labeled, radius, picks)
    np.testing.assert_allclose(found.weights, expected, atol=1e-5)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 40),
    d=st.integers(1, 4),
    share=st.floats(0.01, 1.0),
    radius=st.floats(0.05, 10.0),
    memory=st.sampled_from([0, LITTLE, 2 * LITTLE, WHOLE]),
    labelled=st.booleans(),
    doubled=st.booleans(),
)
def test_lazy_greedy_is_greedy(seed, n, d, share, radius, memory, labelled, doubled):
    points, mass, labeled = points_of(seed, n, d, copies=n // 3 if doubled else 0)
    labeled, budget = labeled if labelled else None, max(1, int(share * n))
    found = cover_of(points, mass, labeled, radius, memory).greedy(budget)
    assert len(set(found.indices.tolist())) == budget
    assert np.all(found.weights >= 0)
    assert found.weights.mean() == pytest.approx(1.0)
    _, gains, covered = reference.greedy(points, mass, labeled, radius, budget)
    # Which of two equal points comes first may depend on rounding; what they cover may not.
    np.testing.assert_allclose(found.gains, gains, atol=1e-6)
    assert found.after == pytest.approx(covered @ mass / mass.sum(), abs=1e-6)
    assert np.all(np.diff(found.gains) <= 0)


def test_of_two_neighbours_that_cover_only_each_other_the_lower_is_picked(memory):
    rng = np.random.default_rng(0)
    one = 100.0 * rng.standard_normal((30, 3))
    points = np.concatenate([one, one + 0.3 * rng.standard_normal((30, 3))])
    found = cover_of(points - points.mean(axis=0), np.ones(60), None, 0.5, memory).greedy(30)
    assert set(found.indices.tolist()) == set(range(30))


def test_small_gains_after_large_ones_are_precise():
    points, mass, _ = points_of(3, n=400, d=2)
    found = cover_of(points, mass, None, 20.0).greedy(40)
    covered, near = np.zeros(400), reference.kernel(points, points, 20.0)
    for j, gain in zip(found.indices, found.gains, strict=True):
        exact = mass @ np.maximum(near[j] - covered, 0.0) / mass.sum()
        assert gain == pytest.approx(exact, rel=2e-3, abs=1e-9)
        covered = np.maximum(covered, near[j])
    assert found.gains[-1] < 1e-4 * found.gains[0]


def test_the_cover_does_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(greedy_cover, "THREADED", 0)
    points, mass, labeled = points_of(4, n=300)
    found = []
    for count in (1, 3):
        monkeypatch.setattr(greedy_cover, "blas_threads", lambda count=count: count)
        found.append(cover_of(points, mass, labeled, 0.5).greedy(40))
    np.testing.assert_array_equal(found[0].indices, found[1].indices)
    np.testing.assert_array_equal(found[0].gains, found[1].gains)


def test_the_kernel_is_computed_once_or_twice(monkeypatch):
    monkeypatch.setattr(greedy_cover, "BLOCK", 10)
    points, mass, labeled = points_of(0, n=200)
    assert cover_of(points, mass, labeled, 0.5).greedy(60).rows == 200
    assert 200 <= cover_of(points, mass, labeled, 0.5, memory=40_000).greedy(60).rows <= 400


def test_other_batches_cover_what_they_would_in_its_place(memory):
    points, mass, labeled = points_of(0)
    rng = np.random.default_rng(0)
    others = [rng.choice(60, size=12, replace=False) for _ in range(3)]
    expected = [share_with(each, points, mass, labeled, 1.0) for each in others]
    found = cover_of(points, mass, labeled, 1.0, memory).greedy(12, others=others)
    np.testing.assert_allclose(found.others, expected, rtol=1e-6)


@given(seed=st.integers(0, 10**6), radius=st.floats(0.1, 3.0), budget=st.integers(1, 20))
def test_what_is_uncovered_bounds_the_representation_error(seed, radius, budget):
    points, mass, _ = points_of(seed, n=30)
    found = cover_of(points, mass, None, radius).greedy(budget)
    weights = found.weights * mass.sum() / budget
    k = reference.kernel(points, points, radius)
    whole = np.zeros(30)
    whole[found.indices] = weights
    error = (mass - whole) @ k @ (mass - whole)
    assert error <= 2.0 * mass.sum() ** 2 * (1.0 - found.after) + 1e-6


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    width=st.integers(1, 5),
    levels=st.sampled_from([2, 5, 10**6]),
    scale=st.sampled_from([1e-30, 1.0, 1e12]),
)
def test_the_sphere_is_that_of_the_formula(seed, n, width, levels, scale):
    """With ties, copies, items at the mean, and an offset."""
    rng = np.random.default_rng(seed)
    points = scale * (rng.integers(levels, size=(n, width)) + 3.0)
    labeled = scale * rng.normal(size=(4, width))
    expected, expected_labeled = reference.on_sphere(points / scale, labeled / scale)
    centred, centred_labeled, _ = coverage.centred(points.copy(), labeled)
    found, found_labeled = coverage.on_sphere(centred, centred_labeled)
    distances = np.linalg.norm(expected[:, None] - expected_labeled, axis=2)
    np.testing.assert_allclose(
        np.linalg.norm(found[:, None] - found_labeled, axis=2), distances, atol=1e-6
    )
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-6)


def test_the_sphere_keeps_the_order_of_a_single_feature_and_tames_outliers():
    values = np.array([-3.0, -1.0, -0.5, 0.0, 0.4, 1.0, 2.0, 1e6])
    points, _ = reference.on_sphere(values[:-1, None])
    angles = np.arctan2(points[:, 0], points[:, 1])
    assert np.all(np.diff(angles) > 0.05)
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 3))
    features[0] = 1e6
    probs = rng.dirichlet(np.ones(3), 300)
    given = {"features": features, "probs": probs, "random_state": 0}
    plain = sabal.select(20, **given, metric="euclidean")
    mapped = sabal.select(20, **given)
    assert mapped.evidence["objective"] < plain.evidence["objective"]


@pytest.mark.parametrize("metric", ["sphere", "euclidean"])
@pytest.mark.parametrize("labelled", [0, 12])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_of_method_5_holds_for_what_a_user_gets(seed, labelled, metric):
    """Everything by hand but the batch and the radius: kernel, nearest, weights, both sides."""
    rng = np.random.default_rng(seed)
    features, probs = rng.normal(size=(150, 4)) * [1, 3, 1, 0.2], rng.dirichlet([1, 1, 1], 150)
    labeled = rng.normal(size=(labelled, 4)) if labelled else None
    arrays = {"features": features, "probs": probs, "labeled_features": labeled}
    batch = sabal.select(15, **arrays, metric=metric, random_state=seed)
    if metric == "sphere":
        features, labeled = reference.on_sphere(features, labeled)
    two = np.sort(probs, axis=1)[:, -2:]
    u = 1.0 - (two[:, 1] - two[:, 0])
    near = features[batch.indices]
    near = near if labeled is None else np.concatenate([near, labeled])
    k = reference.kernel(features, near, batch.evidence["radius"])
    represented_by = k.argmax(axis=1)
    w = np.bincount(represented_by, weights=u, minlength=len(near))
    everything = np.concatenate([features, near])
    signed = np.concatenate([u, -w])
    gram = reference.kernel(everything, everything, batch.evidence["radius"])
    uncovered = u @ (1.0 - k.max(axis=1))
    assert signed @ gram @ signed <= 2.0 * u.sum() * uncovered + 1e-9
    assert batch.evidence["objective"] == pytest.approx(uncovered / u.sum(), abs=1e-6)
    before = u @ (1.0 - k[:, 15:].max(axis=1, initial=0.0)) / u.sum()
    assert batch.evidence["objective_before"] == pytest.approx(before, abs=1e-6)
    np.testing.assert_allclose(batch.weights, w[:15] / w[:15].mean(), rtol=1e-5)


def test_single_precision_finds_a_batch_as_good():
    points, mass, labeled = points_of(1, n=300, d=8)
    double = cover_of(points, mass, labeled, 2.0).greedy(30)
    single = cover_of(points.astype("f4"), mass, labeled.astype("f4"), 2.0).greedy(30)
    assert single.after == pytest.approx(double.after, rel=1e-4)
    exact = share_with(single.indices, points, mass, labeled, 2.0)
    assert exact == pytest.approx(double.after, rel=1e-4)


@pytest.mark.parametrize("spread", [1e-3, 1e-4, 1e-5])
def test_tight_clusters_are_told_apart_in_single_precision_too(spread):
    """The same points in single and in double precision: the kernel's rounding decides nothing."""
    rng = np.random.default_rng(0)
    single = np.repeat(np.eye(4), 100, axis=0) + spread * rng.standard_normal((400, 4))
    single = single.astype(np.float32)
    found, exact = (
        sabal.select(20, features=each, random_state=0).evidence
        for each in (single, single.astype(np.float64))
    )
    assert found["objective"] == pytest.approx(exact["objective"], rel=1e-2)


def test_labelled_features_may_be_more_precise_than_the_pool(library):
    pool = make_pool(n=40)
    given = {"features": library(pool.features.astype(np.float32)), "random_state": 0}
    one = sabal.select(5, **given, labeled_features=library(pool.features[:9]))
    two = sabal.select(5, **given, labeled_features=library(pool.features[:9].astype(np.float32)))
    np.testing.assert_array_equal(one.indices, two.indices)


def test_copies_of_what_is_labelled_come_last():
    pool = make_pool(n=40)
    probs = np.full_like(pool.probs, 1.0 / pool.probs.shape[1])
    labeled = pool.features[:30]
    selection = sabal.select(
        10, features=pool.features, probs=probs, labeled_features=labeled, random_state=0
    )
    assert set(selection.indices.tolist()) == set(range(30, 40))
    assert selection.evidence["labeled"] == 30


def test_the_undecided_part_of_the_pool_is_covered():
    rng = np.random.default_rng(0)
    features = np.concatenate([rng.normal(-5, 1, (100, 2)), rng.normal(5, 1, (100, 2))])
    probs = np.where(np.arange(200)[:, None] < 100, [0.999, 0.001], [0.5, 0.5])
    selection = sabal.select(10, features=features, probs=probs, random_state=0)
    assert np.count_nonzero(selection.indices >= 100) >= 9
    cold = sabal.select(10, features=features, random_state=0)
    assert 3 <= np.count_nonzero(cold.indices >= 100) <= 7


def test_evidence_says_what_is_left_uncovered():
    pool = make_pool(n=80)
    selection = sabal.select(10, features=pool.features, probs=pool.probs, random_state=0)
    evidence = selection.evidence
    assert evidence["atoms"] == "coverage"
    assert evidence["objective_before"] == 1.0
    assert 0 < evidence["objective"] < evidence["random_batch"]["objective"] < 1
    assert evidence["objective"] == pytest.approx(1.0 - selection.scores.sum())


def test_a_model_that_is_sure_of_everything_is_declared():
    pool = make_pool(n=30)
    sure = np.eye(pool.probs.shape[1])[np.arange(30) % pool.probs.shape[1]]
    with pytest.warns(sabal.SabalWarning, match="certain of every item"):
        selection = sabal.select(5, features=pool.features, probs=sure, random_state=0)
    cold = sabal.select(5, features=pool.features, random_state=0)
    np.testing.assert_array_equal(selection.indices, cold.indices)
    unsure = sabal.select(5, features=pool.features, probs=pool.probs, random_state=0)
    # Nothing is said where there is no model, or one with doubts.
    assert cold.evidence["warnings"] == unsure.evidence["warnings"] == []


def test_the_radius_shrinks_as_labels_come_in():
    points, _, _ = points_of(2, n=500)
    rng = np.random.default_rng(0)
    few = coverage.resolution(points, None, 5, np.random.default_rng(0))
    many = coverage.resolution(points, rng.standard_normal((400, 3)), 5, np.random.default_rng(0))
    assert many < few
    assert coverage.resolution(np.zeros((9, 2)), None, 3, rng) == 0.0
    assert coverage.resolution(np.ones((1, 2)), None, 1, rng) == 0.0


def test_the_radius_is_the_median_distance_to_what_is_nearest():
    points, _, labeled = points_of(4, n=60, d=2)
    order = np.random.default_rng(0).permutation(60)
    near = np.concatenate([points[order[:5]], labeled])
    distances = np.linalg.norm(points[order[5:], None] - near[None], axis=2).min(axis=1)
    found = coverage.resolution(points, labeled, 5, np.random.default_rng(0))
    assert found == pytest.approx(np.median(distances))


def test_an_item_between_two_picks_belongs_to_the_first(memory):
    points, ends = np.array([[-1.0], [0.0], [1.0]]), np.array([True, False, True])
    found = cover_of(points, np.ones(3), None, 1.0, memory).greedy(2, candidate_M=ends)
    assert found.indices.tolist() == [0, 2]
    np.testing.assert_allclose(found.weights, [4 / 3, 2 / 3])


def test_far_labelled_items_call_for_double_precision():
    near, far = np.ones((4, 2), dtype=np.float32), np.full((3, 2), 1e4, dtype=np.float32)
    kinds = [greedy_cover.in_units_of(1.0, *each)[0].dtype for each in ((near, far), (far, near))]
    assert kinds == [np.float64, np.float64]
    assert greedy_cover.in_units_of(1.0, near, near)[0].dtype == np.float32


def test_a_sample_stands_for_a_large_pool(monkeypatch):
    monkeypatch.setattr(coverage, "SAMPLE", 200)
    pool = make_pool(n=2_000)
    outputs = {"features": pool.features, "probs": pool.probs}
    sampled = sabal.select(20, **outputs, random_state=0)
    assert sampled.evidence["candidates"] == 200
    monkeypatch.setattr(coverage, "SAMPLE", 8192)
    whole = sabal.select(20, **outputs, random_state=0)
    assert whole.evidence["candidates"] == 2_000
    mass = np.array([1.0 - np.diff(np.sort(p)[-2:])[0] for p in pool.probs])
    points, _ = reference.on_sphere(pool.features)
    covered = share_with(sampled.indices, points, mass, None, whole.evidence["radius"])
    by_chance = whole.evidence["random_batch"]["objective"]
    # Most of what looking at everything gains over a random batch.
    assert by_chance - (1.0 - covered) > 0.5 * (by_chance - whole.evidence["objective"])


@pytest.mark.parametrize(
    ("budget", "size"), [(1, 6_148), (10, 6_184), (512, 8_192), (2_730, 8_192), (2_731, 8_193)]
)
def test_the_size_of_the_sample_is_the_one_that_is_documented(budget, size):
    assert coverage.sample_size(budget) == size


@pytest.mark.parametrize(
    "options",
    [
        {"atoms": "coverage"},
        {"strategy": "sabal-kernel", "radius": 2.0},
        {"alpha": 2.0, "radius": 2.0},
        {"radius": 0.0},
        {"radius": 1e-200},
        {"radius": "wide"},
    ],
)
def test_options_that_say_nothing_are_refused(options):
    pool = make_pool(n=20)
    with pytest.raises(sabal.SabalError):
        sabal.select(3, features=pool.features, probs=pool.probs, **options)


@pytest.mark.parametrize("option", ["alpha", "refit", "step", "scale", "atoms", "width"])
def test_options_of_other_strategies_are_refused_by_name(option):
    pool = make_pool(n=40)
    with pytest.raises(sabal.SabalError, match=r"option of sabal-(greedy|kernel)"):
        sabal.select(5, features=pool.features, probs=pool.probs, **{option: 2.0})


def test_the_batch_is_chosen_from_the_share_that_it_can_represent():
    rng = np.random.default_rng(0)
    features, probs = rng.normal(size=(400, 3)), rng.dirichlet(np.ones(3), size=400)
    order = np.argsort(-uncertainty.margin(probs))
    for labeled in (0, 20, 180):
        given = {"labeled_features": rng.normal(size=(labeled, 3))} if labeled else {}
        found = sabal.select(20, features=features, probs=probs, random_state=0, **given)
        count = max(60, 400 * 20 // (20 + labeled))
        assert found.evidence["candidates"] == count
        assert set(found.indices) <= set(order[:count])
    whole = sabal.select(20, features=features, probs=probs, random_state=0, share=1.0, **given)
    assert whole.evidence["candidates"] == 400
    assert not set(whole.indices) <= set(order[:60])


def test_without_a_model_all_items_are_candidates():
    features = np.random.default_rng(0).normal(size=(100, 3))
    found = sabal.select(5, features=features, labeled_features=features[:50], random_state=0)
    assert found.evidence["candidates"] == 100


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5, "half"])
def test_a_share_is_above_0_and_at_most_1(share):
    with pytest.raises(sabal.SabalError, match="`share`"):
        sabal.select(1, features=np.eye(4), share=share)


def test_candidates_that_cover_nothing_more_come_before_others():
    points, mass = np.zeros((6, 2)), np.array([0.1, 0.2, 0.1, 0.3, 0.2, 0.1])
    candidate = np.array([True, True, True, False, False, False])
    found = Coverage(Kernel(points), mass).greedy(4, candidate_M=candidate)
    assert set(found.indices[:3].tolist()) == {0, 1, 2}
    assert found.indices[3] == 3
