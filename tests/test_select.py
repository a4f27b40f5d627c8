"""`sabal.select` as users call it, for the strategies of sparse approximation."""

from __future__ import annotations

import json

import numpy as np
import pytest

import reference
import sabal
from makers import make_pool, softmax

SPARSE = ("sabal", "sabal-greedy", "sabal-iht")


def test_kernel_atoms_with_margin_and_greedy(library):
    pool = make_pool(n=60)
    features, probs = library(pool.features), library(pool.probs)
    selection = sabal.select(
        8, features=features, probs=probs, strategy="sabal-kernel", random_state=5
    )
    problem = sabal.kernel_problem(features, probs, 8, alpha=1.0, beta=1.0, random_state=5)
    expected = sabal.Greedy().solve(problem)
    np.testing.assert_array_equal(selection.indices, expected.indices)
    np.testing.assert_allclose(selection.weights, expected.weights)
    assert selection.evidence["atoms"] == "kernel"
    assert selection.evidence["objective"] == pytest.approx(expected.objective)


@pytest.mark.parametrize(
    ("options", "candidates"),
    [
        ({}, 24),
        ({"candidates": 2}, 16),
        ({"candidates": None}, 60),
        ({"scale": "literal"}, 60),
        ({"scale": "literal", "candidates": 2}, 16),
    ],
)
def test_iht_chooses_from_the_most_uncertain_items(options, candidates):
    pool = make_pool(n=60)
    selection = sabal.select(
        8, features=pool.features, probs=pool.probs, strategy="sabal-iht", random_state=0, **options
    )
    assert selection.evidence["candidates"] == candidates
    if not options:
        least = np.sort(np.sort(pool.probs)[:, -1] - np.sort(pool.probs)[:, -2])[candidates - 1]
        top = np.sort(pool.probs[selection.indices])
        assert np.all(top[:, -1] - top[:, -2] <= least)


def test_candidates_are_a_number_or_auto():
    pool = make_pool(n=60)
    with pytest.raises(sabal.SabalError, match="auto"):
        sabal.select(
            8, features=pool.features, probs=pool.probs, strategy="sabal-iht", candidates="few"
        )


@pytest.mark.parametrize(
    ("strategy", "solver"), [("sabal-greedy", sabal.Greedy()), ("sabal-iht", sabal.ProximalIHT())]
)
def test_the_papers_strategies_use_gradient_or_posterior_atoms(strategy, solver):
    pool = make_pool(n=60)
    names = ("features", "probs", "label_probs")
    options = {"strategy": strategy, "uncertainty": "variance", "candidates": None}
    selection = sabal.select(8, **pool.kwargs(names=names), alpha=0.5, **options)
    problem = sabal.gradient_problem(
        pool.features, pool.probs, pool.label_probs, 8, alpha=0.5, beta=1.0
    )
    np.testing.assert_array_equal(selection.indices, solver.solve(problem).indices)
    assert selection.evidence["atoms"] == "gradient"

    selection = sabal.select(8, log_probs=pool.log_probs, alpha=1.0, beta=0.1, **options)
    problem = sabal.posterior_problem(pool.log_probs, 8, alpha=1.0, beta=0.1)
    np.testing.assert_array_equal(selection.indices, solver.solve(problem).indices)
    assert selection.evidence["atoms"] == "posterior"


@pytest.mark.parametrize("atoms", ["gradient", "posterior", "curvature", "kernel"])
@pytest.mark.parametrize("uncertainty", ["variance", "margin", "entropy", "mutual-information"])
def test_every_combination_of_atoms_and_uncertainty_works(atoms, uncertainty, library):
    pool = make_pool(n=50)
    strategy = "sabal-greedy" if atoms in ("gradient", "posterior") else "sabal-kernel"
    options = {"atoms": atoms, "uncertainty": uncertainty, "random_state": 0}
    selection = sabal.select(6, **pool.kwargs(library), strategy=strategy, **options)
    assert len(set(selection.indices.tolist())) == 6
    assert selection.evidence["objective"] < selection.evidence["random_batch"]["objective"]


def test_evidence_names_what_the_batch_is_worth():
    pool = make_pool(n=80)
    selection = sabal.select(
        10, features=pool.features, probs=pool.probs, strategy="sabal-kernel", random_state=0
    )
    evidence = selection.evidence
    for key in ("objective", "bias", "variance", "zero_weights", "passes", "seconds", "warnings"):
        assert key in evidence
    assert set(evidence["random_batch"]) == {"objective", "bias", "variance"}
    assert evidence["objective"] < evidence["random_batch"]["objective"]
    json.dumps(evidence)


def test_candidates_restrict_to_the_most_uncertain_items():
    pool = make_pool(n=100)
    options = {"strategy": "sabal-kernel", "random_state": 0}
    selection = sabal.select(5, features=pool.features, probs=pool.probs, candidates=3, **options)
    margins = np.array([reference.margin(p) for p in pool.probs])
    allowed = set(np.argsort(-margins)[:15].tolist())
    assert set(selection.indices.tolist()) <= allowed
    assert selection.evidence["candidates"] == 15
    restricted = sorted(allowed)
    inside = {"features": pool.features[restricted], "probs": pool.probs[restricted]}
    inner = sabal.select(5, **inside, **options)
    np.testing.assert_array_equal(selection.indices, np.array(restricted)[inner.indices])


@pytest.mark.parametrize("kind", ["gradient", "posterior"])
def test_candidates_by_variance(kind):
    pool = make_pool(n=40)
    options = {"strategy": "sabal-iht", "atoms": kind, "uncertainty": "variance"}
    selection = sabal.select(4, **pool.kwargs(), candidates=2, **options)
    if kind == "gradient":
        _, variance, _ = reference.gradient_atoms(pool.features, pool.probs, pool.label_probs)
    else:
        _, variance, _ = reference.posterior_atoms(pool.log_probs, pool.label_probs)
    assert set(selection.indices.tolist()) <= set(np.argsort(-variance)[:8].tolist())


def test_without_a_label_distribution_the_gradient_is_said_to_vanish():
    pool = make_pool()
    with pytest.warns(sabal.SabalWarning, match="atoms vanish"):
        selection = sabal.select(
            5, features=pool.features, probs=pool.probs, strategy="sabal-greedy"
        )
    assert "atoms vanish" in selection.evidence["warnings"][0]
    with_temperature = sabal.select(
        5, features=pool.features, probs=pool.probs, strategy="sabal-greedy", temperature=2.0
    )
    assert with_temperature.evidence["warnings"] == []
    q = sabal.apply_temperature(pool.logits, 2.0)
    given = sabal.select(
        5, features=pool.features, probs=pool.probs, label_probs=q, strategy="sabal-greedy"
    )
    np.testing.assert_array_equal(with_temperature.indices, given.indices)


def test_logits_are_turned_into_probabilities():
    pool = make_pool()
    by_logits = sabal.select(5, features=pool.features, logits=pool.logits, random_state=0)
    by_probs = sabal.select(5, features=pool.features, probs=pool.probs, random_state=0)
    np.testing.assert_array_equal(by_logits.indices, by_probs.indices)


def test_sabal_makes_do_with_what_it_is_given():
    pool = make_pool()
    assert sabal.select(5, log_probs=pool.log_probs).evidence["atoms"] == "coverage"
    assert sabal.select(5, features=pool.features).evidence["atoms"] == "coverage"
    assert sabal.select(5, probs=pool.probs).evidence["atoms"] == "coverage"
    cold = sabal.select(5, features=pool.features, strategy="sabal-kernel", random_state=0)
    assert cold.evidence["variance"] == 0.0
    assert cold.evidence["bias"] < cold.evidence["random_batch"]["bias"]


def test_what_is_missing_or_says_nothing_is_declared():
    pool = make_pool()
    with pytest.warns(sabal.SabalWarning, match="no features"):
        sabal.select(5, probs=pool.probs)
    with pytest.warns(sabal.SabalWarning, match="all features are equal"):
        sabal.select(5, features=np.ones((40, 3)), probs=pool.probs)


def test_the_terms_of_the_objective_add_up():
    pool = make_pool()
    given = {"features": pool.features, "probs": pool.probs, "strategy": "sabal-kernel"}
    evidence = sabal.select(5, **given, alpha=2.0).evidence
    total = evidence["bias"] - evidence["variance"] + evidence["regulariser"]
    assert evidence["objective"] == pytest.approx(total)
    assert evidence["regulariser"] >= 0


def test_refit_lowers_the_objective_and_keeps_the_items():
    pool = make_pool(n=60)
    given = {"features": pool.features, "probs": pool.probs, "random_state": 0}
    given["strategy"] = "sabal-kernel"
    plain, refitted = sabal.select(9, **given), sabal.select(9, **given, refit=True)
    np.testing.assert_array_equal(plain.indices, refitted.indices)
    assert refitted.evidence["objective"] <= plain.evidence["objective"] + 1e-12


def test_literal_units_reproduce_the_papers_objective():
    pool = make_pool()
    selection = sabal.select(
        5, **pool.kwargs(names=("features", "probs", "label_probs")), strategy="sabal-greedy",
        scale="literal", score="first-order", alpha=1e-8, beta=0.1, refresh=1,
    )  # fmt: skip
    atoms, _, deviation = reference.gradient_atoms(pool.features, pool.probs, pool.label_probs)
    twin = reference.DenseProblem.literal(atoms, (deviation / 40) ** 2, 5, 1e-8, 0.1)
    indices, weights = reference.greedy(twin, "first-order")
    np.testing.assert_array_equal(selection.indices, indices)
    np.testing.assert_allclose(selection.weights, weights, atol=1e-5)


@pytest.mark.parametrize("strategy", ["sabal-greedy", "sabal-iht"])
def test_scaling_every_atom_changes_no_scale_free_selection(strategy):
    pool = make_pool(n=50)
    base = {"probs": pool.probs, "label_probs": pool.label_probs, "random_state": 0}
    options = {"strategy": strategy, "atoms": "gradient", "bias": False}
    plain = sabal.select(6, features=pool.features, **base, **options)
    for factor in (1e-6, 256.0, 1e8):
        scaled = sabal.select(6, features=pool.features * factor, **base, **options)
        np.testing.assert_array_equal(plain.indices, scaled.indices)
        np.testing.assert_allclose(plain.weights, scaled.weights, rtol=1e-6)


@pytest.mark.parametrize("factor", [1e-20, 1e15])
def test_extreme_float32_scales_choose_the_same_items(factor):
    pool = make_pool(n=50)
    names = ("probs", "label_probs")
    options = {"strategy": "sabal-greedy", "bias": False}
    features = pool.features.astype("float32")
    plain = sabal.select(6, features=features, **pool.kwargs(names=names), **options)
    scaled = sabal.select(
        6, features=features * np.float32(factor), **pool.kwargs(names=names), **options
    )
    np.testing.assert_array_equal(plain.indices, scaled.indices)


def test_the_seed_in_the_answer_repeats_it():
    pool = make_pool(n=60)
    first = sabal.select(6, features=pool.features, probs=pool.probs, strategy="random")
    again = sabal.select(
        6, features=pool.features, probs=pool.probs, strategy="random", random_state=first.seed
    )
    np.testing.assert_array_equal(first.indices, again.indices)
    assert sabal.select(6, probs=pool.probs, random_state=np.random.default_rng(0)).seed is None


def test_random_looks_at_nothing():
    def never():
        raise AssertionError("computed")

    outputs = sabal.Outputs(size=20, features=never, probs=never)
    from sabal.api import choose

    assert len(choose(outputs, 5, "random", 0, {})) == 5
    with pytest.raises(AssertionError, match="computed"):
        choose(outputs, 5, "sabal", 0, {})


def test_ids_come_back_in_the_callers_terms():
    pool = make_pool(n=12)
    names = [f"photo-{k}.jpg" for k in range(12)]
    selection = sabal.select(4, features=pool.features, ids=names, random_state=0)
    assert [names[i] for i in selection.indices] == selection.ids.tolist()


def test_lists_integers_halves_and_frames_are_accepted():
    import pandas as pd

    pool = make_pool(n=12)
    assert len(sabal.select(3, features=pool.features.tolist(), probs=pool.probs.tolist())) == 3
    assert len(sabal.select(3, features=(pool.features * 9).astype("uint8"))) == 3
    assert len(sabal.select(3, features=pool.features.astype("float16"))) == 3
    frame = pd.DataFrame(pool.features)
    assert len(sabal.select(3, features=frame)) == 3
    assert len(sabal.select(3, features=frame.astype("Float64"))) == 3
    with pytest.raises(sabal.SabalError, match="NaN"):
        sabal.select(3, features=frame.where(frame > 0).astype("Float64"))


def test_gradients_are_detached():
    import torch

    pool = make_pool(n=20)
    features = torch.tensor(pool.features, requires_grad=True)
    logits = features @ torch.ones(5, 3, dtype=torch.float64)
    assert len(sabal.select(3, features=features, logits=logits)) == 3


def test_one_class_and_certain_models_still_give_a_batch():
    features = np.random.default_rng(0).normal(size=(20, 3))
    assert len(sabal.select(4, features=features, probs=np.ones((20, 1)))) == 4
    sure = softmax(np.eye(3)[np.arange(20) % 3] * 1e3)
    with pytest.warns(sabal.SabalWarning, match="certain of every item"):
        assert len(sabal.select(4, features=features, probs=sure)) == 4


def test_literal_units_mean_the_algorithm_as_printed():
    pool = make_pool()
    given = {**pool.kwargs(names=("features", "probs", "label_probs")), "strategy": "sabal-greedy"}
    given |= {"alpha": 1e-8, "beta": 0.1, "scale": "literal"}
    printed = sabal.select(5, **given, score="first-order", refresh=1)
    by_default = sabal.select(5, **given)
    np.testing.assert_array_equal(by_default.indices, printed.indices)
    np.testing.assert_array_equal(by_default.weights, printed.weights)
    assert by_default.evidence["passes"] == 5
    free = sabal.select(5, **{**given, "scale": "free"})
    same = sabal.select(5, **{**given, "scale": "free"}, score="optimal-step", refresh="auto")
    np.testing.assert_array_equal(free.indices, same.indices)


def test_an_inert_uncertainty_is_warned_of_under_the_optimal_step():
    pool = make_pool(n=60)
    given = {**pool.kwargs(names=("features", "probs", "label_probs")), "strategy": "sabal-greedy"}

    def warned(**options):
        found = sabal.select(8, **given, **options).evidence["warnings"]
        return any("next to no effect" in text for text in found)

    corrected = {"scale": "literal", "beta": 0.1, "score": "optimal-step"}
    assert warned(**corrected, alpha=1e-8)
    assert not warned(**corrected, alpha=1e4)
    assert not warned(**corrected, alpha=0.0)
    assert not warned(scale="literal", beta=0.1, alpha=1e-8)
    assert not warned()


def test_a_posterior_needs_no_features_and_is_not_warned_of():
    batch = sabal.select(4, log_probs=make_pool().log_probs, strategy="sabal-greedy")
    assert not any("no features" in each for each in batch.evidence.get("warnings", ()))
