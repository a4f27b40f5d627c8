"""BALD, PowerBALD, BatchBALD and the Bayesian coreset against their twins."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import reference
import reference_bayesian as twin
import sabal
from makers import make_pool, softmax
from sabal.pools import ArrayPool
from sabal.strategies.bald import Bald
from sabal.strategies.batchbald import BatchBald, Outcomes
from sabal.strategies.bayesian_coreset import BayesianCoreset
from sabal.strategies.power_bald import PowerBald


def choose(strategy, budget, seed=0, **arrays):
    return strategy.select(ArrayPool(**arrays), budget, np.random.default_rng(seed))


def posterior(n, samples, classes, seed=0, spread=1.0):
    """Log-probabilities of unrelated items: sharp and spread apart where `spread` is large."""
    rng = np.random.default_rng(seed)
    return np.log(softmax(spread * rng.normal(size=(n, samples, classes))))


# -- BALD ------------------------------------------------------------------------------------------


def test_bald_is_the_per_item_formula(library, dtype):
    log_probs = make_pool().log_probs.astype(dtype)
    expected = twin.bald(log_probs.astype("float64"))
    selection = choose(Bald(), 9, log_probs=library(log_probs))
    np.testing.assert_array_equal(selection.indices, np.argsort(-expected)[:9])
    np.testing.assert_allclose(selection.scores, expected[selection.indices], rtol=1e-9)
    assert selection.evidence["warnings"] == []


def test_bald_says_when_there_is_nothing_to_rank_by():
    with pytest.warns(sabal.SabalWarning, match="only one posterior sample"):
        one = choose(Bald(), 3, log_probs=posterior(8, 1, 3))
    with pytest.warns(sabal.SabalWarning, match="all 5 posterior samples agree"):
        same = choose(Bald(), 3, log_probs=np.repeat(posterior(8, 1, 3), 5, axis=1))
    assert one.indices.tolist() == [0, 1, 2]
    assert len(set(same.indices.tolist())) == 3


# -- PowerBALD -------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.5, 1.0, 4.0])
def test_power_bald_draws_in_proportion_to_the_powered_score(power):
    """The first pick, and the second given the first, over many seeds (a Plackett-Luce draw)."""
    log_probs = posterior(4, 5, 3, spread=1.5)
    share = twin.bald(log_probs) ** power
    outputs, strategy = ArrayPool(log_probs=log_probs), PowerBald(power=power)
    counts = np.zeros((4, 4))
    for seed in range(4000):
        first, second = strategy.select(outputs, 2, np.random.default_rng(seed)).indices
        counts[first, second] += 1
    expected = np.zeros((4, 4))
    for i in range(4):
        for j in set(range(4)) - {i}:
            expected[i, j] = share[i] / share.sum() * share[j] / (share.sum() - share[i])
    firsts = chisquare(counts.sum(axis=1), 4000 * expected.sum(axis=1))
    pairs = chisquare(counts[expected > 0], 4000 * expected[expected > 0])
    assert firsts.pvalue > 1e-3
    assert pairs.pvalue > 1e-3


def test_power_bald_puts_items_of_score_zero_last_and_in_random_order():
    log_probs = posterior(7, 4, 3)
    log_probs[2:5] = log_probs[2:5, :1]  # all samples agree: no mutual information
    outputs = ArrayPool(log_probs=log_probs)
    first_zero = np.zeros(7)
    for seed in range(600):
        with pytest.warns(sabal.SabalWarning, match="2 of the 6 items are a uniform draw"):
            selection = PowerBald().select(outputs, 6, np.random.default_rng(seed))
        assert set(selection.indices[:4].tolist()) == {0, 1, 5, 6}
        assert selection.evidence["zero_score_items"] == 2
        first_zero[selection.indices[4]] += 1
    assert chisquare(first_zero[2:5]).pvalue > 1e-3


def test_scores_up_to_the_rounding_error_are_zero():
    scores = np.repeat([1e-12, 0.0], 5)
    firsts = set()
    for seed in range(20):
        with pytest.warns(sabal.SabalWarning, match="uniform draw"):
            batch = sabal.select(1, scores=scores, strategy="power-bald", random_state=seed)
        firsts.add(int(batch.indices[0]))
    assert max(firsts) >= 5


def test_power_bald_serves_models_without_a_posterior(library, dtype):
    pool = make_pool()
    probs = library(pool.probs.astype(dtype))
    for score, formula in (("entropy", reference.entropy), ("margin", reference.margin)):
        expected = np.array([formula(p) for p in pool.probs])
        # An extreme power leaves the noise no say.
        selection = choose(PowerBald(power=1e12, score=score), 6, probs=probs)
        np.testing.assert_array_equal(selection.indices, np.argsort(-expected)[:6])
        np.testing.assert_allclose(selection.scores, np.sort(-expected)[:6] * -1, rtol=1e-4)
    with pytest.raises(sabal.SabalError, match=r"expected log_probs .* got outputs without"):
        choose(PowerBald(), 6, probs=probs)


def test_a_vanishing_power_is_a_uniform_draw():
    log_probs = posterior(5, 6, 3, spread=3.0)
    counts = np.zeros(5)
    for seed in range(1000):
        counts[choose(PowerBald(power=1e-300), 1, seed, log_probs=log_probs).indices] += 1
    assert chisquare(counts).pvalue > 1e-3


# -- BatchBALD: all outcomes listed ----------------------------------------------------------------


@pytest.mark.parametrize(("samples", "classes", "budget"), [(5, 2, 5), (6, 3, 4), (4, 4, 3)])
def test_batchbald_is_the_enumerated_greedy(samples, classes, budget, library, dtype):
    log_probs = posterior(9, samples, classes, seed=samples).astype(dtype)
    picks, gains, _ = twin.batchbald(log_probs.astype("float64"), budget)
    selection = choose(BatchBald(), budget, log_probs=library(log_probs))
    assert selection.indices.tolist() == picks
    # The twin subtracts joint entropies and sees that float32 rows do not quite sum to 1.
    np.testing.assert_allclose(selection.scores, gains, atol=1e-11 if dtype == "float64" else 1e-6)
    evidence = selection.evidence
    assert (evidence["exact_picks"], evidence["sampled_picks"]) == (budget, 0)
    assert evidence["joint_mutual_information"] == pytest.approx(
        twin.joint_information(log_probs.astype("float64"), picks), abs=1e-6
    )


def test_the_limit_on_configurations_decides_what_is_exact():
    log_probs = posterior(12, 30, 3, spread=0.5)
    for limit, exact in ((1, 1), (3, 2), (26, 3), (27, 4)):
        selection = choose(
            BatchBald(exact_configurations=limit, samples=500), 5, log_probs=log_probs
        )
        evidence = selection.evidence
        assert (evidence["exact_picks"], evidence["sampled_picks"]) == (exact, 5 - exact)


def test_impossible_outcomes_are_not_kept():
    """One-hot rows have one outcome per posterior sample at most, however many items there are."""
    rng = np.random.default_rng(0)
    with np.errstate(divide="ignore"):
        log_probs = np.log(np.eye(4)[rng.integers(4, size=(10, 6))])
    selection = choose(BatchBald(exact_configurations=24, saturation=0.0), 5, log_probs=log_probs)
    assert selection.evidence["sampled_picks"] == 0
    assert selection.evidence["joint_mutual_information"] == pytest.approx(np.log(6))


@pytest.mark.parametrize("seed", range(4))
def test_only_gains_that_may_be_the_best_are_computed_again(seed, library, monkeypatch):
    monkeypatch.setattr("sabal.strategies.batchbald.MAX_AT_ONCE", 1)
    log_probs = posterior(60, 8, 3, seed=seed, spread=1.5)
    log_probs[20:40] = log_probs[:20] + 0.01 * log_probs[40:]  # near-copies lose their gain
    log_probs -= np.log(np.exp(log_probs).sum(axis=2, keepdims=True))
    selection = choose(BatchBald(), 6, log_probs=library(log_probs))
    outcomes, left = Outcomes(np.zeros((1, 8))), np.ones(60, dtype=bool)
    for item in selection.indices:
        gains, _ = outcomes.gains(log_probs)
        assert item == np.argmax(np.where(left, gains, -np.inf))
        left[item] = False
        outcomes = outcomes.enumerated_with(log_probs[item])
    assert selection.evidence["gains_computed"] < 4 * 60
    assert outcomes.weight_M.sum() == pytest.approx(1.0)
    assert np.log(8) - outcomes.remaining == pytest.approx(
        selection.evidence["joint_mutual_information"], abs=1e-12
    )


def test_a_row_that_sums_to_a_little_more_than_1_does_not_add_up():
    """Off by 9e-4 for one sample, copies of one item would seem to tell that sample apart."""
    log_probs = np.full((60, 4, 2), np.log(0.5))
    log_probs[:, 0] += 9e-4
    log_probs[0] = posterior(1, 4, 2, spread=0.5)
    evidence = choose(BatchBald(), 40, log_probs=log_probs).evidence
    expected = twin.bald(log_probs)[0]
    assert evidence["joint_mutual_information"] == pytest.approx(expected, abs=1e-6)


def test_old_gains_spare_most_of_the_pool():
    """A few items matter: the others are not looked at after the first pick."""
    log_probs = posterior(5000, 20, 4, spread=0.05)
    log_probs[::500] = posterior(10, 20, 4, seed=1, spread=1.5)
    selection = choose(BatchBald(samples=2000, exact_configurations=64), 6, log_probs=log_probs)
    assert np.all(selection.indices % 500 == 0)
    assert selection.evidence["gains_computed"] < 2 * 5000


def test_batchbald_does_not_take_copies_that_bald_takes():
    log_probs = posterior(10, 40, 3, spread=1.2)
    log_probs[3:6] = posterior(1, 40, 3, seed=9, spread=8.0)
    bald = choose(Bald(), 3, log_probs=log_probs)
    joint = choose(BatchBald(), 3, log_probs=log_probs)
    assert set(bald.indices.tolist()) == {3, 4, 5}
    assert joint.indices[0] == 3
    assert len(set(joint.indices.tolist()) & {3, 4, 5}) < 3


# -- BatchBALD: outcomes drawn ---------------------------------------------------------------------


def drawn(log_probs, batch, draws, seed=0):
    rng = np.random.default_rng(seed)
    outcomes = Outcomes.undrawn(log_probs.shape[1], draws, rng)
    for item in batch:
        outcomes = outcomes.drawn_with(log_probs[item], rng)
    return outcomes


def test_gains_given_drawn_outcomes_are_the_formula(library):
    log_probs = posterior(6, 5, 3, spread=1.5)
    outcomes = drawn(log_probs, [0, 1, 2], 300)
    gains, errors = outcomes.gains(library(log_probs))
    weights = np.full(300, 1 / 300)
    for j in range(6):
        mean, variance = twin.gain_given_outcomes(outcomes.log_likelihood_MK, weights, log_probs[j])
        assert gains[j] == pytest.approx(mean, abs=1e-12)
        assert errors[j] == pytest.approx(np.sqrt(variance / 300), abs=1e-9)


def test_gains_do_not_depend_on_the_chunks(monkeypatch):
    log_probs = posterior(6, 5, 3)
    outcomes = drawn(log_probs, [0, 1, 2], 300)
    whole = outcomes.gains(log_probs)
    chunks = sabal.strategies.batchbald.row_chunks
    monkeypatch.setattr(
        "sabal.strategies.batchbald.row_chunks", lambda rows, size: chunks(rows, size, 7 * size)
    )
    np.testing.assert_allclose(outcomes.gains(log_probs), whole, rtol=1e-9, atol=1e-15)


def test_drawn_outcomes_estimate_the_enumerated_information():
    """Unbiased: over 40 draws the mean is within 4 of its (small) standard errors."""
    log_probs = posterior(6, 6, 3, spread=1.2)
    batch, item = [0, 1, 2, 3], 4
    expected = twin.joint_information(log_probs, batch)
    expected_gain = twin.joint_information(log_probs, [*batch, item]) - expected
    information, gains, errors = [], [], []
    for seed in range(40):
        outcomes = drawn(log_probs, batch, 1000, seed)
        gain, error = outcomes.gains(log_probs[item : item + 1])
        information.append(np.log(6) - outcomes.remaining)
        gains.append(gain[0])
        errors.append(error[0])
    for values, truth in ((information, expected), (gains, expected_gain)):
        standard_error = np.std(values, ddof=1) / np.sqrt(40)
        assert standard_error < 0.005
        assert np.mean(values) == pytest.approx(truth, abs=4 * standard_error)
    # The reported error is about the true one (draws are stratified, so it may be too large).
    assert 0.5 < np.std(gains) / np.mean(errors) < 1.5


def test_sampled_picks_are_the_enumerated_ones_where_gains_are_apart(library, dtype):
    """8,000 draws: a gain has a standard error below 0.004; picks lead by 7 of them or more."""
    compared = 0
    spread = 0.5 * 1.6 ** np.arange(6)[:, None, None]
    for seed in range(20):
        logits = spread * np.random.default_rng(seed).normal(size=(6, 8, 3))
        log_probs = np.log(softmax(logits)).astype(dtype)
        picks, gains, leads = twin.batchbald(log_probs.astype("float64"), 4)
        if min(leads) < 0.03:
            continue
        compared += 1
        selection = choose(
            BatchBald(exact_configurations=1, samples=8000), 4, seed, log_probs=library(log_probs)
        )
        assert selection.indices.tolist() == picks
        np.testing.assert_allclose(selection.scores, gains, atol=0.03)
        assert selection.evidence["joint_mutual_information"] == pytest.approx(sum(gains), abs=0.05)
        assert selection.evidence["sampled_picks"] == 3
    assert compared >= 3


def test_many_picks_do_not_underflow():
    """p(m | theta) is far below the smallest float64 after 250 picks of 20 classes."""
    log_probs = posterior(260, 20, 20, spread=0.05)
    strategy = BatchBald(samples=100, exact_configurations=20)
    selection = choose(strategy, 250, log_probs=log_probs)
    assert selection.evidence["sampled_picks"] > 200
    assert np.all(np.isfinite(selection.scores))
    assert np.all(selection.scores > 0)
    assert 0 < selection.evidence["joint_mutual_information"] < np.log(20)
    assert drawn(log_probs, range(250), 10).log_likelihood_MK.max() < -745


def test_saturation_is_said_and_the_rest_is_in_bald_order():
    log_probs = posterior(30, 3, 4, spread=4.0)
    with pytest.warns(sabal.SabalWarning, match="posterior samples, all that they can tell"):
        selection = choose(BatchBald(), 20, log_probs=log_probs)
    evidence = selection.evidence
    picks = evidence["exact_picks"] + evidence["sampled_picks"]
    assert evidence["bald_picks"] == 20 - picks > 0
    assert f"the other {20 - picks} of 20 items are in BALD order" in evidence["warnings"][0]
    assert evidence["joint_mutual_information"] >= 0.99 * np.log(3)
    expected = twin.bald(log_probs)
    left = [j for j in np.argsort(-expected) if j not in selection.indices[:picks]]
    assert selection.indices[picks:].tolist() == left[: 20 - picks]
    np.testing.assert_allclose(selection.scores[picks:], expected[left[: 20 - picks]], rtol=1e-9)
    # A looser tolerance stops no later.
    looser = choose(BatchBald(saturation=0.3), 20, log_probs=log_probs)
    assert looser.evidence["bald_picks"] > evidence["bald_picks"]


@pytest.mark.parametrize("limit", [1, 100])
def test_items_that_add_nothing_are_not_ranked_jointly(limit):
    """Copies that tell samples {0, 1} from {2, 3} and nothing else: one pick, half of log K."""
    with np.errstate(divide="ignore"):
        log_probs = np.log(np.tile(np.eye(2)[[0, 0, 1, 1]], (6, 1, 1)))
    with pytest.warns(sabal.SabalWarning, match="no item adds more than rounding or sampling"):
        selection = choose(BatchBald(exact_configurations=limit), 3, log_probs=log_probs)
    assert selection.indices.tolist() == [0, 1, 2]
    assert selection.evidence["bald_picks"] == 2
    assert selection.evidence["joint_mutual_information"] == pytest.approx(np.log(2))


def test_gains_within_sampling_noise_end_the_joint_ranking():
    log_probs = posterior(30, 8, 3, spread=2.5)
    strategy = BatchBald(exact_configurations=1, samples=40, saturation=0.0)
    with pytest.warns(sabal.SabalWarning, match="no item adds more than rounding or sampling"):
        selection = choose(strategy, 25, log_probs=log_probs)
    assert selection.evidence["sampled_picks"] > 0
    assert selection.evidence["bald_picks"] > 0
    assert selection.evidence["joint_mutual_information"] < np.log(8)
    # More draws can tell smaller gains from nothing.
    more = choose(replace(strategy, samples=4000), 25, log_probs=log_probs)
    assert more.evidence["sampled_picks"] > selection.evidence["sampled_picks"]


@pytest.mark.parametrize("samples", [1, 5])
def test_batchbald_without_information_is_bald(samples):
    log_probs = np.repeat(posterior(8, 1, 3), samples, axis=1)
    with pytest.warns(sabal.SabalWarning, match="the other 4 of 4 items are in BALD order"):
        selection = choose(BatchBald(), 4, log_probs=log_probs)
    assert selection.evidence["bald_picks"] == 4
    assert selection.evidence["joint_mutual_information"] == 0


# -- Bayesian coreset ------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "samples", "budget"), [(40, 6, 5), (60, 12, 20), (100, 30, 25)])
def test_coreset_is_dense_frank_wolfe(n, samples, budget, library, dtype):
    log_probs = make_pool(n=n, samples=samples).log_probs.astype(dtype)
    atoms, _, _ = reference.posterior_atoms(log_probs.astype("float64"))
    picks, w, iterations, residual = twin.frank_wolfe(atoms, budget, 10 * budget)
    assert len(picks) == budget
    selection = choose(BayesianCoreset(), budget, log_probs=library(log_probs))
    assert selection.indices.tolist() == picks
    expected = w[picks] / w[picks].mean()
    rtol, atol = (1e-8, 1e-10) if dtype == "float64" else (2e-3, 2e-3)
    np.testing.assert_allclose(selection.weights, expected, rtol=rtol, atol=atol)
    evidence = selection.evidence
    assert evidence["iterations"] == iterations
    assert evidence["topped_up_items"] == 0
    relative = np.linalg.norm(residual) / np.linalg.norm(atoms.sum(axis=0))
    assert evidence["relative_residual"] == pytest.approx(relative, rel=1e-3, abs=1e-8)


def test_coreset_looks_for_b_items_and_tops_up_what_is_missing():
    log_probs = make_pool(n=60, samples=6).log_probs
    atoms, _, _ = reference.posterior_atoms(log_probs)
    picks, w, _, residual = twin.frank_wolfe(atoms, 20, 14)
    assert len(picks) < 14  # an iteration is not always a new item
    with pytest.warns(sabal.SabalWarning, match="14 Frank-Wolfe iterations found"):
        selection = choose(BayesianCoreset(max_iterations=14), 20, log_probs=log_probs)
    found = len(picks)
    assert selection.evidence["frank_wolfe_items"] == found
    assert selection.evidence["topped_up_items"] == 20 - found
    scores = atoms @ residual / np.linalg.norm(atoms, axis=1)
    rest = [j for j in np.argsort(-scores) if j not in picks][: 20 - found]
    assert selection.indices.tolist() == [*picks, *rest]
    sigma = np.linalg.norm(atoms, axis=1).sum()
    np.testing.assert_allclose(selection.scores[found:], scores[rest] / sigma, atol=1e-12)
    np.testing.assert_allclose(selection.weights[:found], w[picks] / w[picks].mean(), rtol=1e-8)
    np.testing.assert_array_equal(selection.weights[found:], 1.0)


def test_items_without_an_atom_come_last():
    log_probs = make_pool(n=12, samples=8).log_probs
    log_probs[2:9] = log_probs[2:9, :1]
    with pytest.warns(sabal.SabalWarning, match="top-up of weight 1"):
        selection = choose(BayesianCoreset(), 9, log_probs=log_probs)
    assert set(selection.indices[:5].tolist()) == {0, 1, 9, 10, 11}
    assert selection.indices[5:].tolist() == [2, 3, 4, 5]
    np.testing.assert_array_equal(selection.scores[5:], 0.0)
    assert selection.evidence["items_without_atom"] == 7
    assert selection.weights.mean() == pytest.approx(1.0)


def test_one_item_stands_in_for_a_pool_of_copies(library, dtype):
    log_probs = np.repeat(posterior(1, 6, 3), 10, axis=0).astype(dtype)
    with pytest.warns(sabal.SabalWarning, match="the whole pool is represented by 1 item:"):
        selection = choose(BayesianCoreset(), 4, log_probs=library(log_probs))
    assert selection.indices.tolist() == [0, 1, 2, 3]
    assert selection.evidence["relative_residual"] < 1e-6


def test_atoms_that_cancel_leave_nothing_to_represent():
    """Two items with opposite atoms: L = 0, so the pick is by norm."""
    a = np.log(np.array([[0.9, 0.1], [0.6, 0.4]]))
    log_probs = np.stack([a, a[::-1], a, a[::-1]])
    with pytest.warns(sabal.SabalWarning, match="the whole pool is represented by 0 items"):
        selection = choose(BayesianCoreset(), 2, log_probs=log_probs)
    assert len(set(selection.indices.tolist())) == 2
    np.testing.assert_array_equal(selection.weights, 1.0)


def test_impossible_labels_are_said():
    log_probs = make_pool(n=10).log_probs
    log_probs[4, 2] = [0.0, -np.inf, -np.inf, -np.inf]
    with pytest.warns(sabal.SabalWarning, match="3 log-probabilities below"):
        selection = choose(BayesianCoreset(), 3, log_probs=log_probs)
    assert np.all(np.isfinite(selection.weights))


# -- all of them -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        (PowerBald, {"power": 0.0}),
        (PowerBald, {"score": "bald"}),
        (BatchBald, {"samples": 1}),
        (BatchBald, {"exact_configurations": 0}),
        (BatchBald, {"saturation": 1.0}),
        (BatchBald, {"saturation": -0.1}),
        (BayesianCoreset, {"max_iterations": 0}),
    ],
)
def test_options_are_checked(strategy, options):
    with pytest.raises(sabal.SabalError, match=f"`{next(iter(options))}`"):
        strategy(**options)


STRATEGIES = [
    Bald(),
    PowerBald(),
    PowerBald(power=0.3, score="margin"),
    PowerBald(score="entropy"),
    BatchBald(),
    BatchBald(exact_configurations=2, samples=50),
    BayesianCoreset(),
    BayesianCoreset(max_iterations=1),
]


@st.composite
def pools(draw):
    """Pools with copies, certain items (-inf), level items, agreeing samples, and any shape."""
    n, samples, classes = (draw(st.integers(1, high)) for high in (12, 4, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    log_probs = np.log(softmax(rng.normal(size=(n, samples, classes)) * 2))
    kinds = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    for j, kind in enumerate(kinds):
        if kind == 1:
            log_probs[j] = -np.inf
            log_probs[j, np.arange(samples), rng.integers(classes, size=samples)] = 0.0
        elif kind == 2:
            log_probs[j] = -np.log(classes)
        elif kind == 3:
            log_probs[j] = log_probs[j, :1]
        elif kind == 4:
            log_probs[j] = log_probs[0]
    dtype = draw(st.sampled_from(["float32", "float64"]))
    return log_probs.astype(dtype), draw(st.integers(1, n))


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@given(pool=pools(), seed=st.integers(0, 100))
@settings(max_examples=40)
def test_exactly_b_items_the_same_for_every_library(strategy, pool, seed):
    log_probs, budget = pool
    before = log_probs.copy()
    selection = choose(strategy, budget, seed, log_probs=log_probs)
    assert len(selection) == budget == len(set(selection.indices.tolist()))
    assert selection.indices.min() >= 0
    assert selection.indices.max() < len(log_probs)
    for values in (selection.weights, selection.scores):
        assert values.shape == (budget,)
        assert np.all(np.isfinite(values))
    assert np.all(selection.weights >= 0)
    assert selection.weights.mean() == pytest.approx(1.0)
    json.dumps(selection.evidence, allow_nan=False)
    np.testing.assert_array_equal(log_probs, before)

    again = choose(strategy, budget, seed, log_probs=log_probs)
    other = choose(strategy, budget, seed, log_probs=torch.as_tensor(log_probs))
    np.testing.assert_array_equal(again.indices, selection.indices)
    np.testing.assert_array_equal(other.indices, selection.indices)
    np.testing.assert_allclose(other.weights, selection.weights, rtol=1e-3, atol=1e-3)


@given(seed=st.integers(0, 500), budget=st.integers(2, 6))
@settings(max_examples=25)
def test_information_only_grows_and_never_passes_log_k(seed, budget):
    log_probs = posterior(8, 4, 3, seed=seed, spread=2.0)
    exact = choose(BatchBald(saturation=0.0), budget, log_probs=log_probs).evidence
    drawn_ = choose(
        BatchBald(saturation=0.0, exact_configurations=1, samples=300), budget, log_probs=log_probs
    ).evidence
    for evidence in (exact, drawn_):
        assert 0 <= evidence["joint_mutual_information"] <= np.log(4) + 1e-12
    best = twin.bald(log_probs).max()
    assert exact["joint_mutual_information"] >= best - 1e-12
