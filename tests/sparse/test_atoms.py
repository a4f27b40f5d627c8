"""Atoms against their per-label expansion, on every library and precision."""

from __future__ import annotations

import numpy as np
import pytest

import reference
import sabal
from local_workers import short_segments
from makers import make_pool
from sabal.pools import ArrayPool
from sabal.sparse.atoms import (
    SMALLEST_LOG,
    curvature_atoms,
    gradient_atoms,
    kernel_atoms,
    posterior_atoms,
)
from sabal.sparse.random_features import (
    draw_curvature,
    draw_kernel,
    sample_rows,
    typical_distance,
)


def tolerance(dtype):
    return {"rtol": 2e-4, "atol": 2e-5} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-11}


def pool_of(features, probs=None):
    return ArrayPool(features=features, probs=probs)


def distance_of(features, rng):
    return typical_distance(sample_rows(pool_of(features), rng))


def rows_of(atoms):
    """The atoms themselves, of random features."""
    return atoms.operator.take(np.arange(atoms.operator.size)).atoms_NM


def all_atoms(operator):
    """The atoms themselves, one flattened row each."""
    identity = np.eye(operator.size)
    return np.stack([operator.combine(row).ravel() for row in identity])


@pytest.mark.parametrize("bias", [True, False])
def test_gradient_atoms_are_the_expectation_over_labels(library, dtype, bias):
    pool = make_pool()
    arrays = [library(a.astype(dtype)) for a in (pool.features, pool.probs, pool.label_probs)]
    atoms = gradient_atoms(*arrays, bias)
    expected = reference.gradient_atoms(pool.features, pool.probs, pool.label_probs, bias)
    np.testing.assert_allclose(all_atoms(atoms.operator), expected[0], **tolerance(dtype))
    np.testing.assert_allclose(atoms.variance_N, expected[1], **tolerance(dtype))
    np.testing.assert_allclose(atoms.deviation_N, expected[2], **tolerance(dtype))


def test_gradient_atoms_are_never_multiplied_out():
    pool = make_pool(n=50, dimensions=7, classes=3)
    operator = gradient_atoms(pool.features, pool.probs, pool.label_probs, True).operator
    assert operator.atom_shape == (3, 8)
    for block in (operator.block(slice(0, 50)), operator.gather(np.arange(50))):
        assert max(factor.size for factor in block.factors) == 50 * 7
    # A pass looks at the caller's own rows.
    assert np.shares_memory(operator.block(slice(0, 50)).factors[1], pool.features)


@pytest.mark.parametrize("given", [True, False])
def test_posterior_atoms_are_the_expectation_over_labels(library, dtype, given):
    pool = make_pool()
    q = pool.label_probs if given else None
    atoms = posterior_atoms(
        library(pool.log_probs.astype(dtype)), None if q is None else library(q.astype(dtype))
    )
    expected = reference.posterior_atoms(pool.log_probs, q)
    np.testing.assert_allclose(all_atoms(atoms.operator), expected[0], **tolerance(dtype))
    np.testing.assert_allclose(atoms.variance_N, expected[1], **tolerance(dtype))
    np.testing.assert_allclose(atoms.deviation_N, expected[2], **tolerance(dtype))


def test_zero_probabilities_in_a_posterior_are_finite_and_declared():
    one_hot = np.log(
        np.eye(3)[[0, 1, 2, 0]] + 0.0,
        where=np.eye(3)[[0, 1, 2, 0]] > 0,
        out=np.full((4, 3), -np.inf),
    )
    log_probs = np.stack([one_hot, np.roll(one_hot, 1, axis=1)], axis=1)
    selection = sabal.select(2, log_probs=log_probs, strategy="sabal-greedy")
    assert len(selection) == 2
    assert np.isfinite(selection.evidence["objective"])
    assert "log-probabilities below" in " ".join(selection.evidence["warnings"])


@pytest.mark.parametrize("bias", [True, False])
def test_curvature_atoms_have_the_closed_form_inner_products(library, bias):
    pool = make_pool(n=5, dimensions=3, classes=4)
    h = reference.with_constant(pool.features, bias)
    rng = np.random.default_rng(0)
    features, probs = library(pool.features), library(pool.probs)
    draws = draw_curvature(pool_of(features, probs), 400_000, bias, rng)
    rows = rows_of(curvature_atoms(features, probs, draws, bias))
    gram = rows @ rows.T
    expected = np.array(
        [
            [
                reference.curvature_inner_product(pool.probs[i], h[i], pool.probs[j], h[j])
                for j in range(5)
            ]
            for i in range(5)
        ]
    )
    # One common factor is free: atoms are made from features of unit mean square.
    unit = np.mean(np.sum(h**2, axis=1))
    np.testing.assert_allclose(gram * unit**2, expected, rtol=0.1, atol=0.01 * expected.max())


def test_curvature_atoms_match_their_formula_entry_by_entry():
    pool = make_pool(n=6, dimensions=3, classes=4)
    width = 8
    draws = draw_curvature(
        pool_of(pool.features, pool.probs), width, True, np.random.default_rng(3)
    )
    atoms = curvature_atoms(pool.features, pool.probs, draws, True)
    rng = np.random.default_rng(3)
    u, v = rng.standard_normal((2, 4, width))
    s, t = rng.standard_normal((2, 4, width))
    h = reference.with_constant(pool.features, True)
    h = h / np.sqrt(np.mean(np.sum(h**2, axis=1)))
    expected = np.empty((6, width))
    for j in range(6):
        lam = np.diag(pool.probs[j]) - np.outer(pool.probs[j], pool.probs[j])
        for m in range(width):
            curvature = u[:, m] @ lam @ v[:, m]
            expected[j, m] = curvature * (s[:, m] @ h[j]) * (t[:, m] @ h[j]) / np.sqrt(2 * width)
    np.testing.assert_allclose(rows_of(atoms), expected, rtol=1e-4, atol=1e-5)


def test_kernel_atoms_approximate_the_weighted_gaussian_kernel(library, dtype):
    pool = make_pool(n=8)
    rng = np.random.default_rng(0)
    u = rng.random(8)
    features = library(pool.features.astype(dtype))
    draws = draw_kernel(pool_of(features), 200_000, rng)
    rows = rows_of(kernel_atoms(features, u, draws))
    bandwidth = distance_of(features, rng)
    distances = np.linalg.norm(pool.features[:, None] - pool.features[None], axis=2)
    expected = np.outer(u, u) * np.exp(-(distances**2) / (2 * bandwidth**2))
    np.testing.assert_allclose(rows @ rows.T, expected, atol=0.01)
    assert bandwidth == pytest.approx(np.median(distances[np.triu_indices(8, 1)]), rel=1e-5)


def test_kernel_atoms_do_not_see_a_shift_or_a_scale_of_the_features():
    pool = make_pool(n=30)
    u = np.ones(30)

    def gram(features):
        draws = draw_kernel(pool_of(features), 256, np.random.default_rng(0))
        return kernel_atoms(features, u, draws).operator.take(np.arange(30)).gram()

    expected = gram(pool.features)
    np.testing.assert_allclose(gram(pool.features + 1e4), expected, atol=1e-5)
    np.testing.assert_allclose(gram(pool.features * 1e-12), expected, atol=1e-5)
    np.testing.assert_allclose(gram(pool.features * 1e150), expected, atol=1e-5)


def test_median_distance_of_identical_rows_is_zero():
    rng = np.random.default_rng(0)
    assert distance_of(np.ones((5, 3)), rng) == 0.0
    assert distance_of(np.ones((1, 3)), rng) == 0.0
    # More than half of the pairs coincide: the mean is used.
    mostly_equal = np.array([[0.0], [0.0], [0.0], [0.0], [3.0]])
    assert 0 < distance_of(mostly_equal, rng) < 3


def test_the_unit_of_curvature_atoms_is_that_of_all_segments():
    features = np.random.default_rng(0).normal(size=(40, 3)) * 7
    pool = pool_of(features, np.full((40, 2), 0.5))
    with short_segments():
        draws = draw_curvature(pool, 4, False, np.random.default_rng(0))
    assert draws.unit == pytest.approx(np.sqrt(np.mean(np.sum(features**2, axis=1))))


def test_atoms_of_possible_labels_are_not_clipped():
    assert posterior_atoms(make_pool().log_probs, None).clipped == 0


def test_only_smaller_log_probabilities_than_the_smallest_are_clipped():
    log_probs = np.log(np.full((3, 2, 2), 0.5))
    log_probs[0, 0] = SMALLEST_LOG, np.log1p(-np.exp(SMALLEST_LOG))
    assert posterior_atoms(log_probs, None).clipped == 0
    log_probs[:2, 1] = -np.inf, 0.0
    found = posterior_atoms(log_probs, None)
    assert found.clipped == 2
    assert np.isfinite(found.operator.combine(np.ones(3))).all()
