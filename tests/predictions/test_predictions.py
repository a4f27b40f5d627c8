"""The formulas of every loss against automatic differentiation, enumeration and many draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import binom
from sklearn.ensemble import RandomForestRegressor

import reference
import reference_losses as twins
from makers import make_pool
from sabal.pools import ArrayPool
from sabal.predictions import BY_LOSS, Gaussian, Sigmoid, Softmax
from sabal.predictions.from_estimator import _rates
from sabal.predictions.gaussian import predictive_variance
from sabal.predictions.mean_root import mean_root
from sabal.predictions.sigmoid import binary_entropy, mean_margin, sigmoid
from sabal.predictions.spread import means_and_variances
from sabal.sparse.atoms import curvature_atoms, gradient_atoms
from sabal.sparse.random_features import draw_curvature

ROOT_ERROR = 1.5e-7
"""What `mean_root` promises, in units of the root of the mean."""


def tolerance(dtype):
    return {"rtol": 2e-4, "atol": 2e-5} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-11}


def all_atoms(operator):
    return np.stack([operator.combine(row).ravel() for row in np.eye(operator.size)])


def regression(n=12, outputs=2, seed=0):
    """Features, means, variances and the means of the labels."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n, outputs))
    shifted = means + 0.3 * rng.normal(size=means.shape)
    return rng.normal(size=(n, 3)), means, rng.random((n, outputs)) ** 2, shifted


def labelled(name, seed=0):
    """A last layer, features, what it puts out, what that predicts, and labels as vectors."""
    rng = np.random.default_rng(seed)
    weights, bias, h = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=(6, 3))
    outputs = h @ weights.T + bias
    if name == "squared":
        return weights, bias, h, outputs, outputs, rng.normal(size=(6, 4))
    if name == "sigmoid":
        labels = rng.integers(0, 2, size=(6, 4)).astype(float)
    else:
        labels = np.eye(4)[rng.integers(0, 4, size=6)]
    return weights, bias, h, outputs, BY_LOSS[name].probabilities(outputs), labels


# -- the gradient and its spread -----------------------------------------------------------------


@pytest.mark.parametrize("name", BY_LOSS)
def test_gradients_are_those_of_automatic_differentiation(name):
    weights, bias, h, _, prediction, labels = labelled(name)
    # With the label known, the atom is the gradient itself.
    spread = np.zeros_like(labels) if name == "squared" else None
    atoms = gradient_atoms(h, prediction, labels, True, kind=BY_LOSS[name], dispersion_NC=spread)
    for atom, h_j, label in zip(all_atoms(atoms.operator), h, labels, strict=True):
        expected = twins.gradient(name, weights, bias, h_j, label)
        np.testing.assert_allclose(atom, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(atoms.variance_N, 0.0, atol=1e-12)
    np.testing.assert_allclose(atoms.deviation_N, 0.0, atol=1e-9)


@pytest.mark.parametrize("bias", [True, False])
def test_atoms_of_sigmoids_are_the_expectation_over_all_sets_of_labels(library, dtype, bias):
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=(9, 3)), rng.random((9, 4)), rng.random((9, 4))]
    arrays[2][0], arrays[2][1, 0] = [0.0, 1.0, 1.0, 0.0], 1e-12
    given_arrays = [library(array.astype(dtype)) for array in arrays]
    atoms = gradient_atoms(*given_arrays, bias, kind=Sigmoid)
    expected = twins.sigmoid_atoms(*arrays, bias)
    np.testing.assert_allclose(all_atoms(atoms.operator), expected[0], **tolerance(dtype))
    np.testing.assert_allclose(atoms.variance_N, expected[1], **tolerance(dtype))
    # What `mean_root` is off by, and what single precision is.
    np.testing.assert_allclose(atoms.deviation_N, expected[2], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("outputs", [1, 3])
def test_atoms_of_the_squared_error_are_the_expectation_over_normal_labels(library, outputs):
    features, means, variances, label_means = regression(n=6, outputs=outputs)
    h, m, s2, mu = (library(a) for a in (features, means, variances, label_means))
    atoms = gradient_atoms(h, m, mu, True, kind=Gaussian, dispersion_NC=s2)
    expected = twins.squared_atoms(features, means, variances, label_means)
    np.testing.assert_allclose(all_atoms(atoms.operator), expected[0], atol=0.02)
    np.testing.assert_allclose(atoms.variance_N, expected[1], rtol=0.02)
    np.testing.assert_allclose(atoms.deviation_N, expected[2], rtol=0.01)


def test_the_deviation_of_normal_labels_is_its_closed_form():
    rng = np.random.default_rng(2)
    pairs = np.exp(rng.normal(scale=6.0, size=(200, 2)))
    pairs[0], pairs[1] = [0.0, 3.0], [1e-200, 1e200]
    for variances in (pairs, np.full((1, 7), 0.3), np.full((1, 300), 1e-9), pairs[:, :1]):
        expected = np.array([twins.normal_length(row) for row in variances])
        bound = ROOT_ERROR * np.sqrt(variances.sum(axis=1))
        assert np.all(np.abs(Gaussian.deviation(variances) - expected) <= bound)
    assert Gaussian.deviation(np.zeros((2, 3))).tolist() == [0.0, 0.0]


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 5), st.integers(1, 6)),
        elements=st.one_of(st.sampled_from([0.0, 0.5, 1.0, 1e-300, 1e-9]), st.floats(0, 1)),
    )
)
def test_the_deviation_of_independent_labels_is_within_its_bound(q):
    expected = [
        sum(weight * np.linalg.norm(row - y) for y, weight in twins.all_labels(row)) for row in q
    ]
    variance = Sigmoid.variance(q)
    np.testing.assert_allclose(variance, np.sum(q * (1 - q), axis=1), atol=1e-12)
    assert np.all(np.abs(Sigmoid.deviation(q) - expected) <= ROOT_ERROR * np.sqrt(variance) + 1e-12)


@pytest.mark.parametrize("q", [0.5, 0.01, 0.9])
def test_the_deviation_of_very_many_labels_is_a_binomial_sum(q):
    labels = 500
    on = np.arange(labels + 1)
    length = np.sqrt(on * (1 - q) ** 2 + (labels - on) * q**2)
    expected = np.sum(binom.pmf(on, labels, q) * length)
    found = Sigmoid.deviation(np.full((1, labels), q))[0]
    assert abs(found - expected) <= ROOT_ERROR * np.sqrt(labels * q * (1 - q)) + 1e-12


@given(
    values=st.lists(st.floats(0, 1e6), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
)
@example(values=[0.0, 1e6], seed=3)
def test_the_mean_of_a_root_is_within_its_bound_whatever_is_under_it(values, seed):
    values = np.array(values)
    weights = np.random.default_rng(seed).dirichlet(np.full(len(values), 0.3))
    mean = float(weights @ values)
    if not mean > 0:
        return

    def log_transform(t):
        # Small t lose their digits in a plain logarithm of a sum.
        # The weights may sum to a little more than 1.
        return np.array([np.log1p(max(weights @ np.expm1(-t * values / mean), -1.0))])

    with np.errstate(divide="ignore"):
        found = mean_root(log_transform, np.array([mean]))[0]
    assert abs(found - weights @ np.sqrt(values)) <= ROOT_ERROR * np.sqrt(mean) * (1 + 1e-6)


# -- curvature -----------------------------------------------------------------------------------


def matrices(loss, spread):
    """Lam_j itself, from products with unit vectors."""
    columns = spread.shape[1]
    u, v = np.repeat(np.eye(columns), columns, axis=1), np.tile(np.eye(columns), columns)
    return loss.curvature(spread, u, v, u * v).reshape(-1, columns, columns)


@pytest.mark.parametrize("name", ["softmax", "sigmoid"])
def test_curvature_is_the_hessian_in_the_logits_whatever_the_label(name):
    _, _, _, outputs, prediction, labels = labelled(name)
    for lam, values, label in zip(
        matrices(BY_LOSS[name], prediction), outputs, labels, strict=True
    ):
        np.testing.assert_allclose(lam, twins.hessian(name, values, label), atol=1e-12)


def test_curvature_of_the_squared_error_is_the_second_moment_of_its_gradient():
    _, means, variances, _ = regression(n=4, outputs=3)
    z = np.random.default_rng(0).standard_normal((200_000, 3))
    for lam, mean, s2 in zip(matrices(Gaussian, variances), means, variances, strict=True):
        residual = mean - (mean + np.sqrt(s2) * z)
        np.testing.assert_allclose(lam, residual.T @ residual / len(z), atol=0.01)
        np.testing.assert_allclose(twins.hessian("squared", mean, mean + 1.0), np.eye(3))


@pytest.mark.parametrize("name", ["sigmoid", "squared"])
def test_curvature_atoms_match_their_formula_entry_by_entry(name, library):
    rng = np.random.default_rng(5)
    features, spread = rng.normal(size=(6, 3)), rng.random((6, 4))
    part = "probs" if name == "sigmoid" else "variances"
    # Far outside of what single precision holds.
    scale = 1.0 if name == "sigmoid" else 1e-60
    outputs = ArrayPool(features=features, loss=name, **{part: spread * scale})
    draws = draw_curvature(outputs, 8, True, rng)
    arrays = library(features), library(spread * scale)
    atoms = curvature_atoms(*arrays, draws, True, kind=BY_LOSS[name])
    h = reference.with_constant(features, True)
    h = h / np.sqrt(np.mean(np.sum(h**2, axis=1)))
    lam = np.apply_along_axis(
        np.diag, 1, spread * (1 - spread) if name == "sigmoid" else spread / spread.max()
    )
    expected = np.einsum("cm,ncd,dm->nm", draws.u_CM, lam, draws.v_CM)
    expected *= (h @ draws.s_DM) * (h @ draws.t_DM) / 4.0
    rows = atoms.operator.take(np.arange(6)).atoms_NM
    np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=1e-5)


# -- uncertainty ---------------------------------------------------------------------------------


def test_uncertainties_are_their_formulas(library, dtype):
    rng = np.random.default_rng(0)
    p = rng.random((20, 3))
    p[0], p[1] = [0.0, 1.0, 1.0], 0.5
    given_p = library(p.astype(dtype))
    close = {"atol": 1e-5 if dtype == "float32" else 1e-12}
    np.testing.assert_allclose(mean_margin(given_p), [twins.margin(row) for row in p], **close)
    np.testing.assert_allclose(binary_entropy(given_p), [twins.entropy(row) for row in p], **close)
    s2 = p * [1.0, 1e6, 0.0]
    found = predictive_variance(library(s2.astype(dtype)))
    np.testing.assert_allclose(found, twins.predictive_variance(s2), rtol=1e-5)


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(1, 3)),
        elements=st.one_of(st.just(0.0), st.floats(5e-324, 1e280)),
    )
)
@settings(max_examples=100)
def test_predictive_variances_are_one_per_output_on_average_at_any_scale(variances):
    found = predictive_variance(variances)
    known = np.count_nonzero(variances.max(axis=0))
    assert np.all(found >= 0)
    assert found.mean() == pytest.approx(known, rel=1e-9)


@given(st.floats(-1e4, 1e4))
def test_the_sigmoid_has_neither_overflow_nor_a_wrong_side(x):
    p = sigmoid(np.array([[x, -x]]))[0]
    assert 0 <= p.min() <= p.max() <= 1
    assert p.sum() == pytest.approx(1.0)
    assert (p[0] >= 0.5) == (x >= 0 or p[0] == 0.5)


def test_a_temperature_divides_the_logits():
    logits = make_pool(n=5).logits
    for loss in (Softmax, Sigmoid):
        tempered = loss.tempered(loss.probabilities(logits), 3.0)
        np.testing.assert_allclose(tempered, loss.probabilities(logits / 3.0), rtol=1e-9)


def test_an_ensemble_has_the_mean_and_the_variance_of_its_members():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    members = np.stack([tree.predict(X) for tree in forest.estimators_])
    means, variances = means_and_variances(forest, X)
    np.testing.assert_allclose(means, members.mean(axis=0))
    np.testing.assert_allclose(variances, members.var(axis=0))


def test_curvature_atoms_of_large_variances_fit_in_single_precision():
    rng = np.random.default_rng(0)
    features, variances = rng.normal(size=(20, 3)), rng.random((20, 2))
    atoms = []
    for unit in (1.0, 1e30):
        pool = ArrayPool(
            features=features, means=np.zeros((20, 2)), variances=unit * variances, loss="squared"
        )
        draws = draw_curvature(pool, 8, True, np.random.default_rng(0))
        made = curvature_atoms(features, unit * variances, draws, True, kind=BY_LOSS["squared"])
        atoms.append(made.operator.take(np.arange(20)).combine(np.ones(20)))
    np.testing.assert_allclose(atoms[0], atoms[1], rtol=1e-5)


def test_the_variance_of_gradients_is_that_of_the_label_distribution():
    pool = make_pool()
    given = {"features": pool.features, "probs": pool.probs, "label_probs": pool.label_probs}
    _, variance, _ = reference.gradient_atoms(pool.features, pool.probs, pool.label_probs)
    np.testing.assert_allclose(ArrayPool(**given).uncertainty("variance"), variance)


def test_rates_are_the_probabilities_of_a_label():
    probs = [np.array([[0.2, 0.8], [0.9, 0.1]]), np.ones((2, 1)), np.ones((2, 1))]
    found = _rates(probs, [[0, 1], [1], [0]])
    np.testing.assert_allclose(found, [[0.8, 1.0, 0.0], [0.1, 1.0, 0.0]])
