"""KCenter, Badge, TypiClust and ClusterMargin against their plain twins."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import reference_distances as twin
import sabal
from makers import make_pool, softmax
from sabal.core.arrays import to_numpy
from sabal.pools import ArrayPool
from sabal.predictions.uncertainty import margin
from sabal.strategies import cluster_margin, kcenter, seeding, typiclust
from sabal.strategies.badge import Badge
from sabal.strategies.cluster_margin import ClusterMargin
from sabal.strategies.kcenter import KCenter
from sabal.strategies.typiclust import TypiClust

ALL = [KCenter(), Badge(), Badge(refresh=1), Badge(bias=True), TypiClust(), ClusterMargin()]


def choose(strategy, budget, seed=0, **parts):
    """A selection with everything that holds for every one of them checked."""
    before = {name: to_numpy(part).copy() for name, part in parts.items()}
    outputs = ArrayPool(**parts).check()
    selection = strategy.select(outputs, budget, np.random.default_rng(seed))
    assert selection.indices.shape == (budget,)
    assert len(set(selection.indices.tolist())) == budget
    assert set(selection.indices.tolist()) <= set(range(outputs.size))
    assert np.isfinite(selection.scores).all()
    json.dumps(selection.evidence, allow_nan=False)
    for name, part in parts.items():
        np.testing.assert_array_equal(before[name], to_numpy(part))
    return selection


def blobs(rng, n, dimensions, count, spread=0.1):
    """Items around `count` far centres, and the number of each item's centre."""
    centre = rng.integers(count, size=n)
    centres = 10.0 * rng.normal(size=(count, dimensions))
    return centres[centre] + spread * rng.normal(size=(n, dimensions)), centre


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks so small that every path through them is taken on small pools."""
    monkeypatch.setattr(kcenter, "CANDIDATES", 20)
    monkeypatch.setattr(kcenter, "CENTRES", 3)
    monkeypatch.setattr(seeding, "CENTRES", 3)
    monkeypatch.setattr(seeding, "DRAWS", 4)


# -- KCenter --------------------------------------------------------------------------------------


def check_against_plain(features, labelled, budget, seed, convert=np.asarray, rtol=1e-9):
    parts = {"features": convert(features)}
    if len(labelled):
        parts["labeled_features"] = convert(labelled)
    ours = choose(KCenter(), budget, seed, **parts)
    first = int(np.random.default_rng(seed).integers(len(features)))
    chosen, scores, radius = twin.furthest_first(features, labelled, first, budget)
    if len(labelled) == 0:
        # No centre to be away from: the score of the first is the radius that it leaves.
        scores[0] = twin.furthest_first(features, labelled, first, 1)[2]
    np.testing.assert_array_equal(ours.indices, chosen)
    np.testing.assert_allclose(ours.scores, scores, rtol=rtol)
    assert ours.evidence["covering_radius"] == pytest.approx(radius, rel=rtol)
    return ours


@pytest.mark.parametrize("kind", ["random", "blobs", "offset"])
@pytest.mark.parametrize("labelled", [0, 7])
@pytest.mark.usefixtures("small_blocks")
def test_kcenter_is_the_plain_pass_per_pick(kind, labelled, library, dtype):
    rng = np.random.default_rng(1)
    features = blobs(rng, 200, 6, 9, 1.0 if kind == "random" else 0.1)[0]
    if kind == "offset":
        features += 3000.0
    features = features.astype(dtype)
    ours = check_against_plain(features[labelled:], features[:labelled], 40, 3, library)
    assert ours.evidence["labeled"] == labelled


@given(data=st.data())
def test_kcenter_on_grids_breaks_ties_as_the_plain_one(data):
    """Small whole numbers: many copies and equal distances, all exact in floating point."""
    n, d = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    top = data.draw(st.integers(1, 4))
    features = rng.integers(top, size=(n, d)).astype("float64")
    labelled = rng.integers(top, size=(data.draw(st.integers(0, 4)), d)).astype("float64")
    budget = data.draw(st.integers(1, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kcenter, "CANDIDATES", data.draw(st.integers(1, 20)))
        patch.setattr(kcenter, "CENTRES", data.draw(st.integers(1, 4)))
        check_against_plain(features, labelled, budget, 0)


def test_kcenter_covers_within_twice_the_best_radius():
    rng = np.random.default_rng(0)
    for seed in range(10):
        features = rng.normal(size=(12, 2))
        radius = choose(KCenter(), 3, seed, features=features).evidence["covering_radius"]
        assert radius <= 2.0 * twin.best_covering_radius(features, 3) + 1e-12


def test_kcenter_needs_far_fewer_rounds_than_picks():
    features = np.random.default_rng(0).normal(size=(6000, 8))
    assert choose(KCenter(), 300, features=features).evidence["rounds"] <= 60


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_distances_do_not_depend_on_the_scale_of_float32_features(scale, library):
    pool = make_pool(n=60)
    for strategy in (KCenter(), Badge(), TypiClust(), ClusterMargin()):
        one, other = (
            choose(
                strategy, 9, features=library((c * pool.features).astype("float32")),
                probs=library(pool.probs.astype("float32")),
            )
            for c in (1.0, scale)
        )  # fmt: skip
        np.testing.assert_array_equal(one.indices, other.indices)
        power = {"kcenter": 1, "badge": 1, "typiclust": -1, "cluster-margin": 0}[strategy.name]
        np.testing.assert_allclose(other.scores, one.scores * scale**power, rtol=1e-3)


# -- Badge ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [False, True])
def test_badge_with_a_pass_per_pick_is_plain_kmeans_plus_plus(bias, library, dtype):
    pool = make_pool(n=50)
    features, probs = pool.features.astype(dtype), pool.probs.astype(dtype)
    gradients = twin.guessed_gradients(features, probs, bias)
    for seed in range(5):
        ours = choose(
            Badge(refresh=1, bias=bias), 12, seed, features=library(features), probs=library(probs)
        )
        expected = twin.badge(gradients, 12, np.random.default_rng(seed))
        np.testing.assert_array_equal(ours.indices, expected)
        before = [np.sqrt(twin.d2(gradients, expected[:k])[expected[k]]) for k in range(1, 12)]
        norm = np.linalg.norm(gradients[expected[0]])
        np.testing.assert_allclose(ours.scores, [norm, *before], rtol=1e-4)
        assert ours.evidence["passes"] == 11


@pytest.mark.parametrize(("refresh", "draws"), [(1, None), (5, None), ("auto", 256), ("auto", 2)])
def test_badge_draws_from_the_exact_distribution(refresh, draws, monkeypatch):
    """The second and third pick over many seeds; the plain D in place of D^2 is told apart."""
    if draws is not None:
        monkeypatch.setattr(seeding, "DRAWS", draws)
    pool = make_pool(n=6, dimensions=2, classes=3, seed=4)
    outputs = ArrayPool(features=pool.features, probs=pool.probs).check()
    counts = np.zeros((6, 6))
    for seed in range(2500):
        chosen = Badge(refresh=refresh).select(outputs, 3, np.random.default_rng(seed)).indices
        counts[chosen[1], chosen[2]] += 1
    gradients = twin.guessed_gradients(pool.features, pool.probs)

    def p_value(power):
        expected = twin.second_and_third_pick(gradients, power)
        possible = expected > 0
        assert counts[~possible].sum() == 0
        common = counts.sum() * expected > 5
        rest = possible & ~common
        observed = np.append(counts[common], counts[rest].sum())
        wanted = np.append(expected[common], expected[rest].sum()) * counts.sum()
        return chisquare(observed[wanted > 0], wanted[wanted > 0]).pvalue

    assert p_value(2) > 1e-3
    assert p_value(1) < 1e-6


def test_badge_makes_many_picks_from_one_pass():
    pool = make_pool(n=3000, dimensions=16, classes=5)
    parts = {"features": pool.features, "probs": pool.probs}
    assert choose(Badge(), 200, **parts).evidence["passes"] <= 20
    assert choose(Badge(refresh=50), 200, **parts).evidence["passes"] >= 4


@pytest.mark.parametrize("refresh", [1, "auto"])
def test_badge_takes_no_copy_before_it_must(refresh, library, dtype):
    """Long non-negative rows: rounding next to large norms must not pass for a distance."""
    rng = np.random.default_rng(0)
    features = np.abs(rng.normal(size=(12, 2000))).astype(dtype) + np.asarray(5.0, dtype)
    probs = softmax(rng.normal(size=(12, 4))).astype(dtype)
    which = rng.permutation(np.repeat(np.arange(12), 40))
    parts = {"features": library(features[which]), "probs": library(probs[which])}
    outputs = ArrayPool(**parts)
    with pytest.warns(sabal.SabalWarning, match="8 of 20 items were drawn uniformly"):
        ours = Badge(refresh=refresh).select(outputs, 20, np.random.default_rng(0))
    assert set(which[ours.indices[:12]]) == set(range(12))
    assert len(set(ours.indices.tolist())) == 20
    assert np.all(ours.scores[12:] == 0)


@pytest.mark.parametrize("refresh", [1, "auto"])
def test_badge_never_takes_an_item_twice_even_if_only_rounding_is_left(refresh, dtype, monkeypatch):
    monkeypatch.setattr(seeding, "ROUNDING", 0)
    pool = make_pool(n=3, dimensions=300)
    features, probs = pool.features.astype(dtype), softmax(pool.logits / 20).astype(dtype)
    rows = np.repeat(np.arange(3), 8)
    for seed in range(20):
        choose(Badge(refresh=refresh), 20, seed, features=features[rows], probs=probs[rows])


def test_badge_draws_uniformly_among_items_without_gradients():
    features, probs = np.ones((5, 2)), np.eye(3)[[0, 1, 2, 0, 1]]
    outputs = ArrayPool(features=features, probs=probs)
    counts = np.zeros(5)
    for seed in range(500):
        with pytest.warns(sabal.SabalWarning, match="2 of 2 items"):
            counts[Badge().select(outputs, 2, np.random.default_rng(seed)).indices] += 1
    assert chisquare(counts).pvalue > 1e-3


def test_badge_reads_a_posterior_by_its_mean():
    pool = make_pool()
    mean = np.exp(pool.log_probs).mean(axis=1)
    ours = choose(Badge(), 8, features=pool.features, log_probs=pool.log_probs)
    np.testing.assert_array_equal(
        ours.indices, choose(Badge(), 8, features=pool.features, probs=mean).indices
    )


# -- TypiClust and ClusterMargin ------------------------------------------------------------------


@pytest.mark.parametrize("labelled", [0, 9])
def test_typiclust_goes_round_the_clusters_as_the_plain_one(labelled, library, dtype, monkeypatch):
    pool = make_pool(n=70)
    features, extra = pool.features.astype(dtype), pool.features[:labelled].astype(dtype) + 0.5
    # Sizes from 1 to many, so that small clusters are kept for last and some run out.
    given = np.random.default_rng(0).geometric(0.25, size=70 + labelled) - 1
    given = np.minimum(given, 11)
    monkeypatch.setattr(typiclust, "k_means", lambda points, count, rng: given)
    parts = {"features": library(features)}
    if labelled:
        parts["labeled_features"] = library(extra)
    for budget in (12, 70):
        ours = choose(TypiClust(neighbours=6), budget, **parts)
        chosen, scores = twin.typiclust(features, extra, given, budget, neighbours=6)
        np.testing.assert_array_equal(ours.indices, chosen)
        np.testing.assert_allclose(ours.scores, scores, rtol=1e-4)


def test_typiclust_takes_the_middle_of_each_cluster_and_leaves_labelled_ones_for_later():
    rng = np.random.default_rng(0)
    features, centre = blobs(rng, 400, 5, 8)
    assert set(centre[choose(TypiClust(), 8, features=features).indices]) == set(range(8))
    # As many clusters as blobs: the three with labels wait until the others have given.
    ours = choose(
        TypiClust(max_clusters=8), 5, features=features, labeled_features=features[centre < 3]
    )
    assert set(centre[ours.indices]) == {3, 4, 5, 6, 7}


def test_typiclust_does_not_depend_on_the_order_of_the_pool():
    features = np.random.default_rng(0).normal(size=(300, 3))
    order = np.random.default_rng(1).permutation(300)
    one, other = (choose(TypiClust(), 20, features=x).indices for x in (features, features[order]))
    np.testing.assert_array_equal(one, order[other])


def test_typiclust_in_large_clusters_looks_at_a_sample(monkeypatch):
    monkeypatch.setattr(typiclust, "NEIGHBOUR_ITEMS", 60)
    features, _ = blobs(np.random.default_rng(0), 300, 4, 2)
    with pytest.warns(sabal.SabalWarning, match="random sample"):
        choose(TypiClust(), 2, features=features)
    sample = np.sort(np.random.default_rng(5).choice(300, size=60, replace=False))
    items, typicality = TypiClust()._most_typical(features, sample, 300, 300)
    assert sorted(items) == list(range(300))
    for i, ours in zip(items, typicality, strict=True):
        points = [features[i], *(features[j] for j in sample if j != i)]
        assert ours == pytest.approx(twin.typicality(points, 0, 20), rel=1e-6)


def test_cluster_margin_is_round_robin_over_average_linkage(library, dtype):
    pool = make_pool(n=80)
    features, probs = pool.features.astype(dtype), pool.probs.astype(dtype)
    ours = choose(
        ClusterMargin(candidates=4, cluster_size=5), 7,
        features=library(features), probs=library(probs),
    )  # fmt: skip
    candidates = twin.least_certain(probs, 28)
    groups = twin.average_linkage(features[candidates], 6)
    which = [next(k for k, g in enumerate(groups) if i in g) for i in range(28)]
    np.testing.assert_array_equal(ours.indices, twin.round_robin(candidates, which, 7))
    np.testing.assert_allclose(ours.scores, margin(probs)[ours.indices])


def test_cluster_margin_with_many_candidates_takes_kmeans(monkeypatch):
    rng = np.random.default_rng(0)
    features, _ = blobs(rng, 300, 4, 6)
    probs = softmax(rng.normal(size=(300, 3)))
    monkeypatch.setattr(cluster_margin, "LINKAGE_ITEMS", 100)
    found = []
    monkeypatch.setattr(
        cluster_margin, "k_means",
        lambda *a, real=cluster_margin.k_means, **k: found.append(real(*a, **k)) or found[-1],
    )  # fmt: skip
    ours = choose(ClusterMargin(candidates=20), 10, features=features, probs=probs)
    candidates = twin.least_certain(probs, 200)
    np.testing.assert_array_equal(ours.indices, twin.round_robin(candidates, found[0], 10))
    assert ours.evidence["clustering"] == "k-means"


# -- all of them ----------------------------------------------------------------------------------


@given(data=st.data())
def test_exactly_b_distinct_items_from_any_pool(data):
    n, d, c = (data.draw(st.integers(1, top)) for top in (25, 4, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    features = {
        "random": rng.normal(size=(n, d)),
        "copies": rng.normal(size=(3, d))[rng.integers(3, size=n)],
        "zero": np.zeros((n, d)),
        "far": np.where(np.arange(n)[:, None] == 0, 1e6, rng.normal(size=(n, d))),
    }[data.draw(st.sampled_from(["random", "copies", "zero", "far"]))]
    probs = {
        "random": softmax(3.0 * rng.normal(size=(n, c))),
        "one-hot": np.eye(c)[rng.integers(c, size=n)],
        "uniform": np.full((n, c), 1.0 / c),
    }[data.draw(st.sampled_from(["random", "one-hot", "uniform"]))]
    parts = {"features": features, "probs": probs}
    if data.draw(st.booleans()):
        parts["labeled_features"] = rng.normal(size=(data.draw(st.integers(1, 3)), d))
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    parts = {name: part.astype(dtype) for name, part in parts.items()}
    budget = data.draw(st.integers(1, n))
    for strategy in ALL:
        ours = choose(strategy, budget, **parts)
        again = choose(strategy, budget, **{k: torch.as_tensor(v) for k, v in parts.items()})
        if dtype == "float64" or strategy.name != "badge":
            np.testing.assert_array_equal(ours.indices, again.indices)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Badge(refresh=0), lambda: Badge(refresh="often"), lambda: Badge(bias="yes"),
        lambda: TypiClust(max_clusters=0), lambda: TypiClust(min_size=1.5),
        lambda: TypiClust(neighbours=0), lambda: ClusterMargin(candidates=0.5),
        lambda: ClusterMargin(cluster_size=float("nan")),
    ],
)  # fmt: skip
def test_options_out_of_range_are_said(make):
    with pytest.raises(sabal.SabalError):
        make()
