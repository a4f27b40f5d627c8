"""Selections with regression and multi-label losses, as users ask for them."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import reference_losses as twins
import sabal
from fuzz_oracle import check_selection
from makers import by_atoms
from sabal.core.rows import StoredRows
from sabal.strategies import strategies

OTHERS = ("sigmoid", "squared")
SPARSE = ("sabal", "sabal-greedy", "sabal-iht", "sabal-kernel")
SUITABLE = {
    "sigmoid": {*SPARSE, "random", "entropy", "margin", "kcenter", "typiclust", "max-herding"},
    "squared": {*SPARSE, "random", "kcenter", "typiclust", "max-herding"},
}
ATOMS = ("gradient", "curvature", "kernel", "coverage")

every_loss = pytest.mark.parametrize("loss", OTHERS)


def pool_of(loss, n=40, columns=3, seed=0, convert=np.asarray, dtype="float64"):
    """What a model with this loss says, as keyword arguments of `select`."""
    rng = np.random.default_rng(seed)
    arrays = {"features": rng.normal(size=(n, 4))}
    if loss == "sigmoid":
        logits = arrays["features"] @ rng.normal(size=(4, columns)) - 1.0
        arrays["probs"] = 1.0 / (1.0 + np.exp(-logits))
        arrays["label_probs"] = 1.0 / (1.0 + np.exp(-logits / 2.0))
    else:
        arrays["means"] = rng.normal(size=(n, columns))
        arrays["variances"] = rng.gamma(0.5, size=(n, columns))
        arrays["label_means"] = arrays["means"] + 0.2 * rng.normal(size=(n, columns))
    return {"loss": loss, **{k: convert(a.astype(dtype)) for k, a in arrays.items()}}


def twin_of(pool, bias=True):
    """Atoms, variances and deviations by the slow way; deviations of normals are not computed."""
    h = reference.with_constant(pool["features"], bias)
    if pool["loss"] == "sigmoid":
        return twins.sigmoid_atoms(pool["features"], pool["probs"], pool["label_probs"], bias)
    residual = pool["means"] - pool["label_means"]
    atoms = np.stack([np.outer(r, row).ravel() for r, row in zip(residual, h, strict=True)])
    variance = np.sum(h**2, axis=1) * pool["variances"].sum(axis=1)
    return atoms, variance, None


# -- what every sparse strategy does, whatever the loss ------------------------------------------


@every_loss
@pytest.mark.parametrize(
    ("strategy", "atoms"),
    [*((by_atoms(atoms)["strategy"], atoms) for atoms in ATOMS), ("sabal-iht", "gradient")],
)
def test_b_distinct_items_better_than_chance_and_the_same_on_every_library(loss, atoms, strategy):
    options = {**by_atoms(atoms), "strategy": strategy, "random_state": 0}
    if atoms in ("curvature", "kernel"):
        options["width"] = 256
    answers = [
        sabal.select(6, **pool_of(loss, convert=convert, dtype=dtype), **options)
        for convert in (np.asarray, torch.as_tensor)
        for dtype in ("float64", "float32")
    ]
    for answer in answers:
        check_selection(answer, 40, 6)
        assert answer.evidence["loss"] == loss
        assert answer.evidence["atoms"] == atoms
        assert answer.evidence["objective"] < answer.evidence["random_batch"]["objective"]
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer.indices, answers[0].indices)
        np.testing.assert_allclose(answer.weights, answers[0].weights, atol=1e-3)


@every_loss
@settings(max_examples=12)
@given(
    n=st.integers(1, 12),
    columns=st.integers(1, 3),
    seed=st.integers(0, 100),
    atoms=st.sampled_from(ATOMS),
    change=st.sampled_from(
        ["nothing", "sure", "equal", "zero features", "tiny", "huge", "no labels", "one far out"]
    ),
    data=st.data(),
)
def test_degenerate_pools_still_give_b_distinct_items(loss, n, columns, seed, atoms, change, data):
    pool = pool_of(loss, n, columns, seed)
    spread = "probs" if loss == "sigmoid" else "variances"
    label = "label_probs" if loss == "sigmoid" else "label_means"
    if change == "sure":
        pool[spread] = np.zeros_like(pool[spread])
    elif change == "equal":
        pool = {k: v if k == "loss" else np.repeat(v[:1], n, axis=0) for k, v in pool.items()}
    elif change == "zero features":
        pool["features"] = np.zeros_like(pool["features"])
    elif change in ("tiny", "huge"):
        pool["features"] = pool["features"] * (1e-60 if change == "tiny" else 1e60)
        if loss == "squared":
            pool[spread] = pool[spread] * (1e-70 if change == "tiny" else 1e70)
    elif change == "no labels":
        del pool[label]
    elif change == "one far out" and loss == "squared":
        pool[spread][0] = 1e200
    budget = data.draw(st.integers(1, n))
    options = {"width": 32} if atoms in ("curvature", "kernel") else {}
    options |= {**by_atoms(atoms), "random_state": 0}
    check_selection(sabal.select(budget, **pool, **options), n, budget)


@every_loss
def test_inputs_are_left_as_they_were(loss):
    pool = pool_of(loss)
    before = {key: array.copy() for key, array in pool.items() if key != "loss"}
    for key in before:
        pool[key].setflags(write=False)
    for atoms in ATOMS:
        sabal.select(5, **pool, **by_atoms(atoms), random_state=0)
    for key, array in before.items():
        np.testing.assert_array_equal(pool[key], array)


@every_loss
@pytest.mark.parametrize("bias", [True, False])
def test_the_problem_is_that_of_the_atoms_written_out(loss, bias):
    pool = pool_of(loss)
    prediction, label = ("probs", "label_probs") if loss == "sigmoid" else ("means", "label_means")
    problem = sabal.gradient_problem(
        pool["features"],
        pool[prediction],
        pool[label],
        5,
        alpha=0.7,
        beta=0.3,
        bias=bias,
        loss=loss,
        variances=pool.get("variances"),
    )
    atoms, variance, _ = twin_of(pool, bias)
    dense = reference.DenseProblem.free(atoms, variance, 5, 0.7, 0.3)
    rng = np.random.default_rng(0)
    for _ in range(5):
        batch, weights = rng.permutation(40)[:5], rng.random(5)
        found = problem.objective(batch, weights)
        assert found == pytest.approx(dense.objective(batch, weights), rel=1e-9)


def test_the_papers_units_have_the_deviation():
    pool = pool_of("sigmoid", n=12)
    given_arrays = [pool[name] for name in ("features", "probs", "label_probs")]
    problem = sabal.gradient_problem(
        *given_arrays, 4, alpha=2.0, beta=0.5, scale="literal", loss="sigmoid"
    )
    atoms, _, deviation = twin_of(pool)
    dense = reference.DenseProblem.literal(atoms, (deviation / 12) ** 2, 4, 2.0, 0.5)
    batch, weights = np.array([1, 5, 7, 11]), np.array([1.0, 0.5, 2.0, 0.0])
    expected = dense.objective(batch, weights)
    assert problem.objective(batch, weights) == pytest.approx(expected, rel=1e-6)

    pool = pool_of("squared", n=12, columns=2)
    problem = sabal.gradient_problem(
        *(pool[name] for name in ("features", "means", "label_means")),
        4,
        alpha=2.0,
        beta=0.5,
        scale="literal",
        loss="squared",
        variances=pool["variances"],
    )
    norms = np.linalg.norm(reference.with_constant(pool["features"], True), axis=1)
    deviation = norms * [twins.normal_length(row) for row in pool["variances"]]
    dense = reference.DenseProblem.literal(twin_of(pool)[0], (deviation / 12) ** 2, 4, 2.0, 0.5)
    expected = dense.objective(batch, weights)
    assert problem.objective(batch, weights) == pytest.approx(expected, rel=1e-6)


@every_loss
def test_atoms_are_never_multiplied_out(loss):
    pool = pool_of(loss, n=50)
    prediction, label = ("probs", "label_probs") if loss == "sigmoid" else ("means", "label_means")
    problem = sabal.gradient_problem(
        *(pool[name] for name in ("features", prediction, label)),
        5,
        alpha=1.0,
        beta=1.0,
        loss=loss,
        variances=pool.get("variances"),
    )
    gathered = problem.items.gather(np.arange(50))
    assert gathered.atom_shape == (3, 5)
    assert max(factor.size for factor in gathered.factors) == 50 * 4


# -- what is true of one loss --------------------------------------------------------------------


def test_one_label_is_two_classes():
    pool = pool_of("sigmoid", columns=1)
    two = {
        name: np.concatenate([pool[name], 1.0 - pool[name]], axis=1)
        for name in ("probs", "label_probs")
    }
    for strategy in ("sabal-greedy", "sabal-iht", "margin", "entropy"):
        one = sabal.select(8, **pool, strategy=strategy, random_state=0)
        same = sabal.select(8, features=pool["features"], **two, strategy=strategy, random_state=0)
        np.testing.assert_array_equal(one.indices, same.indices)
        np.testing.assert_allclose(one.weights, same.weights, rtol=1e-6)


@pytest.mark.parametrize("atoms", ATOMS)
def test_the_units_of_the_targets_do_not_matter(atoms):
    pool = pool_of("squared")
    unit = 1e-9
    other = {
        **pool,
        "means": pool["means"] * unit,
        "label_means": pool["label_means"] * unit,
        "variances": pool["variances"] * unit**2,
    }
    answers = [sabal.select(6, **each, **by_atoms(atoms), random_state=0) for each in (pool, other)]
    np.testing.assert_array_equal(answers[0].indices, answers[1].indices)


@every_loss
@pytest.mark.parametrize("atoms", ["curvature", "kernel", "coverage"])
def test_what_the_model_is_sure_of_is_left_alone(loss, atoms):
    pool = pool_of(loss, n=100)
    # The second half is elsewhere, and all but known.
    pool["features"][50:] += 10.0
    if loss == "sigmoid":
        pool["probs"][:50], pool["probs"][50:] = 0.5, 1e-6
    else:
        pool["variances"][:50], pool["variances"][50:] = 1.0, 1e-6
    selection = sabal.select(10, **pool, **by_atoms(atoms), random_state=0)
    assert selection.indices.max() < 50


@every_loss
def test_atoms_that_vanish_are_said(loss):
    pool = pool_of(loss)
    del pool["label_probs" if loss == "sigmoid" else "label_means"]
    with pytest.warns(sabal.SabalWarning, match="atoms vanish"):
        selection = sabal.select(6, **pool, strategy="sabal-greedy", uncertainty="variance")
    h = reference.with_constant(pool["features"], True)
    p = pool.get("probs")
    spread = pool["variances"] if p is None else p * (1 - p)
    variance = np.sum(h**2, axis=1) * spread.sum(axis=1)
    assert set(selection.indices) == set(np.argsort(-variance)[:6])


@every_loss
def test_a_model_that_is_sure_of_everything_is_declared(loss):
    pool = pool_of(loss)
    name = "probs" if loss == "sigmoid" else "variances"
    pool[name] = np.zeros_like(pool[name])
    for options in ({}, by_atoms("kernel")):
        with pytest.warns(sabal.SabalWarning, match="certain of every item"):
            sabal.select(5, **pool, **options, random_state=0)


def test_logits_are_passed_through_a_sigmoid():
    pool = pool_of("sigmoid")
    probs = pool.pop("probs")
    from_logits = sabal.select(6, **pool, logits=np.log(probs / (1 - probs)), random_state=0)
    from_probs = sabal.select(6, **pool, probs=probs, random_state=0)
    np.testing.assert_array_equal(from_logits.indices, from_probs.indices)


def test_one_output_needs_no_axis_of_its_own():
    pool = pool_of("squared", columns=1)
    flat = {k: v if k in ("loss", "features") else v[:, 0] for k, v in pool.items()}
    for atoms in ATOMS:
        answers = [
            sabal.select(6, **each, **by_atoms(atoms), random_state=0) for each in (pool, flat)
        ]
        np.testing.assert_array_equal(answers[0].indices, answers[1].indices)


def test_rankings_of_multi_label_pools_are_those_of_their_scores():
    pool = pool_of("sigmoid")
    for strategy, twin in (("margin", twins.margin), ("entropy", twins.entropy)):
        scores = np.array([twin(p) for p in pool["probs"]])
        selection = sabal.select(7, **pool, strategy=strategy)
        assert selection.indices.tolist() == np.argsort(-scores)[:7].tolist()


@every_loss
@pytest.mark.parametrize("atoms", ATOMS)
def test_rows_on_disk_give_the_answer_of_memory(loss, atoms, tmp_path):
    pool = pool_of(loss, n=300, columns=1 if loss == "squared" else 3)
    if loss == "squared":  # an output without an axis of its own
        pool |= {name: pool[name][:, 0] for name in ("means", "variances", "label_means")}
    stored = {}
    for name, array in pool.items():
        if name != "loss":
            path = tmp_path / f"{os.urandom(8).hex()}.raw"
            path.write_bytes(array.tobytes())
            stored[name] = StoredRows(path, shape=array.shape, dtype=array.dtype)
    outputs = sabal.Outputs(**stored, loss=loss).check()
    outside = sabal.select(9, outputs, **by_atoms(atoms), random_state=0)
    inside = sabal.select(9, **pool, **by_atoms(atoms), random_state=0)
    np.testing.assert_array_equal(outside.indices, inside.indices)
    np.testing.assert_array_equal(outside.weights, inside.weights)


@every_loss
def test_candidates_are_the_most_uncertain(loss):
    pool = pool_of(loss, n=60)
    selection = sabal.select(5, **pool, **by_atoms("kernel"), candidates=2, random_state=0)
    if loss == "sigmoid":
        doubt = np.array([twins.margin(p) for p in pool["probs"]])
    else:
        doubt = twins.predictive_variance(pool["variances"])
    assert set(selection.indices) <= set(np.argsort(-doubt)[:10])


# -- what is refused -----------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("strategy", sorted(strategies()))
def test_strategies_that_would_misread_a_loss_say_which_do_not(loss, strategy):
    pool = pool_of(loss)
    if strategy in SUITABLE[loss]:
        check_selection(sabal.select(4, **pool, strategy=strategy, random_state=0), 40, 4)
        return
    with pytest.raises(sabal.SabalError, match=f"a strategy for loss='{loss}'") as caught:
        sabal.select(4, **pool, strategy=strategy, random_state=0)
    for name in SUITABLE[loss]:
        assert name in caught.value.expected


S, R = pool_of("sigmoid", n=10), pool_of("squared", n=10)
P, F, M, V = S["probs"], S["features"], R["means"], R["variances"]


def with_entry(array, value):
    copy = array.copy()
    copy.flat[7] = value
    return copy


CASES = {
    "an unknown loss": ({"features": F, "loss": "hinge"}, "`loss` as one of"),
    "a loss that is no name": ({"features": F, "loss": 3}, "`loss` as one of"),
    "means of a classifier": ({"features": F, "means": M, "variances": V}, "loss='squared'"),
    "probs of a regression": ({**R, "probs": P}, "loss='softmax'"),
    "log_probs of many labels": ({**S, "log_probs": np.log(P)[:, None]}, "loss='softmax'"),
    "means without variances": ({"means": M, "loss": "squared"}, "`variances` beside `means`"),
    "negative variances": ({**R, "variances": with_entry(V, -1e-9)}, "of at least 0"),
    "NaN in variances": ({**R, "variances": with_entry(V, np.nan)}, "NaN"),
    "infinite means": ({**R, "means": with_entry(M, np.inf)}, "infinity"),
    "variances out of range": ({**R, "variances": with_entry(V, 1e300)}, "at most 1e.280"),
    "means out of range": ({**R, "means": with_entry(M, 1e200)}, "at most 1e.140"),
    "variances of other outputs": ({**R, "variances": V[:, :2]}, "the same number"),
    "variances of other items": ({**R, "variances": V[:5]}, "5 rows"),
    "means with three axes": ({**R, "means": M[None]}, "2 axes"),
    "probs above 1": ({**S, "probs": P * 2}, "between 0 and 1"),
    "probs below 0": ({**S, "probs": with_entry(P, -0.1)}, "between 0 and 1"),
    "label_probs above 1": ({**S, "label_probs": P + 1}, "between 0 and 1"),
    "NaN in probs": ({**S, "probs": with_entry(P, np.nan)}, "NaN"),
    "logits that disagree": ({**S, "logits": P}, "say the same"),
    "a margin of a regression": ({**R, "uncertainty": "margin"}, "predictive-variance"),
    "an entropy of a regression": (
        {**R, **by_atoms("kernel"), "uncertainty": "entropy"},
        "an uncertainty of loss='squared'",
    ),
    "predictive variance of labels": (
        {**S, "uncertainty": "predictive-variance"},
        "variance, margin, entropy",
    ),
    "mutual information of labels": ({**S, "uncertainty": "mutual-information"}, "'sigmoid'"),
    "posterior atoms": ({**S, **by_atoms("posterior")}, "'gradient', 'curvature' or 'kernel'"),
    "a temperature of a regression": (
        {"features": F, "means": M, "variances": V, "loss": "squared", **by_atoms("gradient")}
        | {"temperature": 2.0},
        "a loss of probabilities",
    ),
    "gradients without means": (
        {"features": F, "variances": V, "loss": "squared", **by_atoms("gradient")},
        "`means`",
    ),
    "gradients without variances": (
        {"features": F, "loss": "squared", "strategy": "sabal-greedy"},
        "variances for the strategy",
    ),
    "gradients too large for single precision": (
        {
            "features": F.astype("float32") * np.float32(1e15),
            "means": M * 1e25,
            "label_means": M,
            "variances": V,
            "loss": "squared",
            **by_atoms("gradient"),
        },
        "`means` times `features`",
    ),
    "gradients that spread too far": (
        {**R, "features": F * 1e60, "variances": V * 1e200, **by_atoms("gradient")},
        "gradients",
    ),
    "an option of the arrays": ({"features": F, "mean": M}, "did you mean 'means'"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_a_sabal_error(case):
    arguments, message = CASES[case]
    with pytest.raises(sabal.SabalError, match=message):
        sabal.select(3, **arguments)
