"""Herding, ProbCover and DropQuery against their plain twins."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_rivals as twin
import sabal
from makers import make_pool, softmax
from sabal.pools import ArrayPool
from sabal.predictions.uncertainty import margin
from sabal.strategies import drop_query, greedy_cover, prob_cover
from sabal.strategies.drop_query import central_items, linear_head
from sabal.strategies.prob_cover import pure_radius
from sabal.strategies.uncertainty_herding import labeled_distance
from sabal.strategies.unit_features import unit_rows

NAMES = ("uncertainty-herding", "max-herding", "prob-cover", "drop-query")
NONE = np.empty((0, 5))


def choose(name, budget, seed=0, **parts):
    return sabal.select(budget, strategy=name, random_state=seed, **parts)


def blobs(rng, n, dimensions, count, spread=0.1):
    """Items around `count` far centres, and the number of each item's centre."""
    centre = np.arange(n) % count
    centres = 10.0 * rng.normal(size=(count, dimensions))
    return centres[centre] + spread * rng.normal(size=(n, dimensions)), centre


@pytest.fixture(params=[0, 10**9], ids=["small blocks", "whole kernel"])
def blocks(request, monkeypatch):
    monkeypatch.setattr(greedy_cover, "KERNEL_BYTES", request.param)
    monkeypatch.setattr(greedy_cover, "MIN_BLOCK", 5)


# -- herding --------------------------------------------------------------------------------------


@pytest.mark.parametrize("labeled", [0, 7])
@pytest.mark.parametrize("sigma", [0.2, 1.0])
def test_max_herding_picks_as_the_plain_one(labeled, sigma, blocks, library):
    pool, known = make_pool(n=60), make_pool(n=8, seed=5).features[:labeled]
    parts = {"features": library(pool.features)}
    if labeled:
        parts["labeled_features"] = library(known)
    ours = choose("max-herding", 12, sigma=sigma, **parts)
    picks, gains = twin.herding(pool.features, known, np.ones(60), sigma, 12)
    np.testing.assert_array_equal(ours.indices, picks)
    np.testing.assert_allclose(ours.scores, gains, atol=1e-6)
    assert ours.evidence["coverage"] == pytest.approx(ours.evidence["coverage_before"] + sum(gains))


@pytest.mark.parametrize("labeled", [0, 1, 2, 7])
def test_uncertainty_herding_picks_as_the_plain_one(labeled, blocks, library):
    pool, known = make_pool(n=60), make_pool(n=8, seed=5).features[:labeled]
    parts = pool.kwargs(library, names=("features", "probs", "label_probs"))
    if labeled:
        parts["labeled_features"] = library(known)
    sigma = twin.smallest_distance(known)
    for calibrated, probs in ((True, pool.label_probs), (False, pool.probs)):
        ours = choose("uncertainty-herding", 15, calibrated=calibrated, **parts)
        picks, gains = twin.herding(pool.features, known, margin(probs), sigma, 15)
        np.testing.assert_array_equal(ours.indices, picks)
        np.testing.assert_allclose(ours.scores, gains, rtol=1e-6, atol=1e-9)
        assert ours.evidence["sigma"] == pytest.approx(sigma)
        assert ours.evidence["calibrated"] is calibrated


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 30),
    d=st.integers(1, 4),
    labeled=st.integers(0, 4),
    data=st.data(),
)
def test_herding_with_ties_and_copies_gains_as_much_as_the_plain_one(seed, n, d, labeled, data):
    budget = data.draw(st.integers(1, n))
    rng = np.random.default_rng(seed)
    features = rng.integers(-1, 2, size=(n, d)).astype(float)
    known = rng.integers(-1, 2, size=(labeled, d)).astype(float)
    probs = softmax(rng.integers(-1, 2, size=(n, 3)).astype(float))
    parts = {"features": features, "probs": probs}
    if labeled:
        parts["labeled_features"] = known
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sabal.SabalWarning)
        ours = choose("uncertainty-herding", budget, **parts)
    gains = twin.herding(features, known, margin(probs), ours.evidence["sigma"], budget)[1]
    # Ties may be decided by rounding, but never cost anything.
    assert ours.evidence["coverage"] == pytest.approx(
        ours.evidence["coverage_before"] + gains.sum(), abs=0.02
    )
    np.testing.assert_allclose(ours.scores[0], gains[0], atol=1e-6)


def test_the_radius_is_the_smallest_distance_between_labels_that_are_no_copies():
    known = make_pool(n=9, seed=3).features
    assert labeled_distance(twin.unit(known)) == pytest.approx(twin.smallest_distance(known))
    twice = twin.unit(np.concatenate([known, 2.0 * known[:3]]))
    assert labeled_distance(twice) == pytest.approx(twin.smallest_distance(known))
    assert labeled_distance(twin.unit(known[[0, 0]])) == labeled_distance(None) == 1.0


def test_with_a_small_radius_uncertainty_herding_is_margin():
    pool = make_pool(n=80)
    parts = pool.kwargs(names=("features", "probs"))
    ours = choose("uncertainty-herding", 10, sigma=1e-5, **parts)
    np.testing.assert_array_equal(ours.indices, choose("margin", 10, probs=pool.probs).indices)


def test_where_the_model_is_certain_uncertainty_herding_is_max_herding():
    pool = make_pool(n=40)
    certain = np.eye(4)[np.arange(40) % 4]
    with pytest.warns(sabal.SabalWarning, match="certain of every item"):
        ours = choose("uncertainty-herding", 8, features=pool.features, probs=certain)
    np.testing.assert_array_equal(
        ours.indices, choose("max-herding", 8, features=pool.features).indices
    )


def test_herding_ignores_the_length_of_features():
    pool = make_pool(n=50)
    lengths = np.random.default_rng(4).uniform(0.1, 10.0, size=(50, 1))
    for name in ("max-herding", "uncertainty-herding"):
        one, other = (
            choose(name, 9, features=features, probs=pool.probs).indices
            for features in (pool.features, lengths * pool.features)
        )
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", NAMES[:3])
def test_a_large_pool_is_represented_by_a_sample(name):
    pool = make_pool(n=200)
    parts = pool.kwargs(names=("features", "probs"))
    ours = choose(name, 10, candidates=40, **parts)
    assert ours.evidence["candidates"] == 40
    again = choose(name, 10, candidates=40, **parts)
    np.testing.assert_array_equal(ours.indices, again.indices)
    assert choose(name, 60, candidates=40, **parts).evidence["candidates"] == 60
    assert choose(name, 10, candidates=200, **parts).evidence["candidates"] == 200


# -- ProbCover ------------------------------------------------------------------------------------


@pytest.mark.parametrize("labeled", [0, 7])
@pytest.mark.parametrize("delta", [0.3, 0.6])
def test_prob_cover_picks_as_the_plain_one(labeled, delta, blocks, library):
    pool, known = make_pool(n=60), make_pool(n=8, seed=5).features[:labeled]
    parts = {"features": library(pool.features)}
    if labeled:
        parts["labeled_features"] = library(known)
    picks, degrees = twin.prob_cover(pool.features, known, delta, 12)
    ours = choose("prob-cover", len(picks), delta=delta, **parts)
    np.testing.assert_array_equal(ours.indices, picks)
    np.testing.assert_array_equal(ours.scores, degrees)
    share = ours.evidence["coverage_before"] + sum(degrees) / 60
    assert ours.evidence["coverage"] == pytest.approx(share)


@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), delta=st.sampled_from([0.1, 0.5, 0.9]))
def test_prob_cover_breaks_ties_by_the_lower_row(seed, n, delta):
    features = np.random.default_rng(seed).integers(-1, 2, size=(n, 2)).astype(float)
    picks, degrees = twin.prob_cover(features, NONE, delta, n)
    ours = choose("prob-cover", len(picks), delta=delta, features=features)
    np.testing.assert_array_equal(ours.indices, picks)
    np.testing.assert_array_equal(ours.scores, degrees)


def test_once_all_is_covered_prob_cover_draws():
    features, centre = blobs(np.random.default_rng(0), 60, 5, 6)
    with pytest.warns(sabal.SabalWarning, match="4 of 10 items were drawn uniformly"):
        ours = choose("prob-cover", 10, features=features, delta=0.3)
    assert set(centre[ours.indices[:6]]) == set(range(6))
    np.testing.assert_array_equal(ours.scores, [10] * 6 + [0] * 4)
    assert ours.evidence["coverage"] == 1.0


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 1.0])
def test_delta_is_the_largest_radius_of_this_purity(share, monkeypatch):
    rng = np.random.default_rng(3)
    points = twin.unit(blobs(rng, 80, 4, 3, spread=6.0)[0])
    known, points = points[:10], points[10:]
    clusters = rng.integers(3, size=80)
    monkeypatch.setattr(prob_cover, "k_means", lambda points, count, rng: clusters)
    everything = np.concatenate([points, known])
    delta = pure_radius(points, known, 3, share, rng)
    assert twin.purity(everything, clusters, delta) >= share
    others = twin.distances(everything, everything)
    larger = np.sort(others[others > delta])[0] * (1 + 1e-9)
    nearest = np.sort(np.where(clusters[:, None] == clusters, np.inf, others).min(axis=1))
    first_impure = nearest[int((1 - share) * 80 + 1e-9)] * (1 + 1e-9)
    assert larger <= first_impure
    assert twin.purity(everything, clusters, first_impure) < share


def test_prob_cover_finds_the_clusters_by_itself():
    features, centre = blobs(np.random.default_rng(2), 90, 6, 5)
    probs = np.full((90, 5), 0.2)
    ours = choose("prob-cover", 5, features=features, probs=probs)
    assert set(centre[ours.indices]) == set(range(5))
    known = features[centre < 3]
    pool, rest = features[centre >= 3], centre[centre >= 3]
    ours = choose("prob-cover", 2, features=pool, classes=5, labeled_features=known)
    assert set(rest[ours.indices]) == {3, 4}


def test_prob_cover_needs_to_know_the_number_of_classes():
    features = make_pool(n=20).features
    with pytest.raises(sabal.SabalError, match="option `classes`"):
        choose("prob-cover", 3, features=features)
    assert choose("prob-cover", 3, features=features, classes=4).evidence["delta"] > 0


def test_purity_of_many_items_is_measured_on_some(monkeypatch):
    features, _ = blobs(np.random.default_rng(2), 300, 6, 5, spread=3.0)
    exact = choose("prob-cover", 5, features=features, classes=5).evidence["delta"]
    monkeypatch.setattr(prob_cover, "BALLS", 100)
    rough = choose("prob-cover", 5, features=features, classes=5).evidence["delta"]
    assert rough != exact
    assert rough == pytest.approx(exact, rel=0.5)


# -- DropQuery ------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["logits", "probs"])
def test_the_layer_of_a_linear_model_is_found(given):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 5)) + 3.0
    weights, bias = rng.normal(size=(5, 4)), rng.normal(size=4)
    logits = features @ weights + bias
    pool = ArrayPool(features=features, **{given: softmax(logits) if given == "probs" else logits})
    found, constant = linear_head(features, drop_query._log_scores(pool), rng)
    np.testing.assert_allclose(found, weights - weights.mean(axis=1, keepdims=True), atol=1e-9)
    np.testing.assert_allclose(constant, bias - bias.mean(), atol=1e-9)


def test_the_layer_of_a_fitted_logistic_regression_is_found():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    x, y = blobs(rng, 90, 5, 3, spread=20.0)
    for classes in (2, 3):
        model = LogisticRegression(max_iter=5000).fit(x[y < classes], y[y < classes])
        # A class that has no label so far has a column of zeros.
        probs = np.column_stack([model.predict_proba(x), np.zeros(90)])
        weights, bias = linear_head(x, drop_query._log_scores(ArrayPool(probs=probs)), rng)
        masked = x * (rng.random(x.shape) < 0.25)
        np.testing.assert_array_equal(
            np.argmax(masked @ weights + bias, axis=1), model.predict(masked)
        )


def test_a_layer_is_fitted_to_some_of_many_items(monkeypatch):
    monkeypatch.setattr(drop_query, "HEAD_ITEMS", 10)
    rng = np.random.default_rng(0)
    features, weights = rng.normal(size=(200, 3)), rng.normal(size=(3, 4))
    found, _ = linear_head(features, features @ weights, rng)
    np.testing.assert_allclose(found, weights - weights.mean(axis=1, keepdims=True), atol=1e-9)


@pytest.mark.parametrize("samples", [1, 3, 4])
def test_disagreements_are_those_of_the_plain_one(samples):
    pool = make_pool(n=50)
    features = pool.features / 2.0
    head = (np.random.default_rng(1).normal(size=(5, 4)), np.random.default_rng(2).normal(size=4))
    strategy = drop_query.DropQuery(samples=samples)
    ours = strategy._disagreements(features, head, np.random.default_rng(3))
    theirs = twin.disagreements(features, *head, samples, 0.75, np.random.default_rng(3))
    np.testing.assert_array_equal(ours, theirs)


def test_central_items_are_nearest_to_the_middle_of_their_cluster(monkeypatch):
    points = twin.unit(make_pool(n=70).features)
    clusters = np.random.default_rng(0).integers(8, size=70)
    clusters[clusters == 5] = 6
    monkeypatch.setattr(drop_query, "k_means", lambda points, count, rng, few: clusters)
    ours = central_items(points, 8, np.random.default_rng(0))
    np.testing.assert_array_equal(ours, twin.central(points, clusters))


def test_drop_query_takes_items_whose_predictions_change(library, dtype):
    features, centre = blobs(np.random.default_rng(7), 400, 6, 4, spread=1.0)
    weights = np.random.default_rng(8).normal(size=(6, 4))
    logits = features @ weights
    ours = choose(
        "drop-query",
        6,
        features=library(features.astype(dtype)),
        logits=library(logits.astype(dtype)),
    )
    assert ours.evidence["disagreements"] == (2 if ours.evidence["candidates"] >= 150 else 1)
    assert (ours.scores >= ours.evidence["disagreements"] / 3 - 1e-12).all()
    assert (np.diff(ours.scores) <= 0).all()
    assert len(set(centre[ours.indices])) > 1


def test_without_changes_drop_query_draws():
    features = np.random.default_rng(0).normal(size=(40, 3))
    # The constant decides.
    logits = np.tile([9.0, 0.0, 0.0], (40, 1))
    with pytest.warns(sabal.SabalWarning, match="5 of 5 items were drawn uniformly"):
        first = choose("drop-query", 5, features=features, logits=logits)
    with pytest.warns(sabal.SabalWarning, match="drawn uniformly"):
        second = choose("drop-query", 5, seed=1, features=features, logits=logits)
    assert first.indices.tolist() != second.indices.tolist()
    assert first.evidence["candidates"] == 0


@pytest.mark.parametrize("candidates", [4, 5, 6])
def test_no_more_candidates_than_picks_are_all_chosen(candidates, monkeypatch):
    changed = np.zeros(40, dtype=np.int64)
    changed[10 : 10 + candidates] = 1
    monkeypatch.setattr(drop_query.DropQuery, "_disagreements", lambda *args: changed)
    features = np.random.default_rng(0).normal(size=(40, 3))
    features[10:14] = features[10]  # clusters of copies are fewer than picks
    pool = ArrayPool(features=features, logits=features)
    ours = drop_query.DropQuery().select(pool, 5, np.random.default_rng(0))
    assert set(ours.indices[ours.scores > 0]) <= set(range(10, 10 + candidates))
    assert np.count_nonzero(ours.scores) == min(candidates, 5)
    said = {4: "1 of 5 items were drawn uniformly: no other", 5: "", 6: "are copies of these"}
    assert said[candidates] in " ".join(ours.evidence["warnings"])
    assert len(ours.evidence["warnings"]) == bool(said[candidates])


def test_herding_draws_what_covers_nothing_more():
    features = np.repeat(np.eye(3), 20, axis=0)
    batches = []
    for seed in range(2):
        with pytest.warns(sabal.SabalWarning, match="3 of 6 items were drawn uniformly"):
            ours = choose("max-herding", 6, seed=seed, features=features, sigma=0.01)
        assert set(ours.indices[:3]) == {0, 20, 40}
        assert len(set(ours.indices)) == 6
        batches.append(ours.indices[3:].tolist())
    assert batches[0] != batches[1]
    ours = choose("max-herding", 6, features=make_pool(n=30).features)
    assert ours.evidence["warnings"] == []


def test_copies_of_candidates_are_drawn_last():
    features = np.repeat(np.random.default_rng(0).normal(size=(3, 4)), 20, axis=0)
    weights = np.random.default_rng(1).normal(size=(4, 3))
    with pytest.warns(sabal.SabalWarning, match="copies"):
        ours = choose("drop-query", 6, features=features, logits=features @ weights, dropout=0.5)
    assert len({tuple(row) for row in features[ours.indices]}) >= 2


# -- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("max-herding", {"sigma": 0.0}),
        ("max-herding", {"candidates": 0}),
        ("uncertainty-herding", {"sigma": -1.0}),
        ("uncertainty-herding", {"calibrated": "yes"}),
        ("prob-cover", {"delta": 0.0}),
        ("prob-cover", {"delta": 5.0}),
        ("prob-cover", {"purity": 0.0}),
        ("prob-cover", {"purity": 1.5}),
        ("prob-cover", {"classes": 0}),
        ("drop-query", {"samples": 0}),
        ("drop-query", {"dropout": 1.0}),
        ("drop-query", {"dropout": 0.0}),
    ],
)
def test_options_out_of_range_are_refused(name, options):
    pool = make_pool(n=10)
    with pytest.raises(sabal.SabalError, match=next(iter(options))):
        choose(name, 3, **pool.kwargs(names=("features", "probs")), **options)


@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e160])
def test_rows_are_scaled_to_length_1_whatever_their_unit(scale):
    rows = np.random.default_rng(0).normal(size=(20, 3))
    found = unit_rows(scale * rows)
    np.testing.assert_allclose(found, rows / np.linalg.norm(rows, axis=1, keepdims=True))
