"""Properties that the paper proves, as tests of what we compute."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from makers import make_pool
from sabal.sparse.atoms import gradient_atoms, posterior_atoms


def seminorm(losses_K):
    """q(L) over posterior samples, as the atoms compute it: a one-class item's loss vector."""
    centred = np.asarray(losses_K) - np.mean(losses_K)
    return np.linalg.norm(centred) / np.sqrt(len(losses_K))


vectors = st.lists(st.floats(-50, 50), min_size=4, max_size=4).map(np.array)


@given(first=vectors, second=vectors, factor=st.floats(-10, 10), shift=st.floats(-100, 100))
def test_the_seminorm_is_shift_invariant_homogeneous_and_subadditive(first, second, factor, shift):
    assert seminorm(first + second) <= seminorm(first) + seminorm(second) + 1e-9
    assert seminorm(factor * first) == pytest.approx(abs(factor) * seminorm(first), abs=1e-9)
    assert seminorm(first + shift) == pytest.approx(seminorm(first), abs=1e-9)


def test_posterior_atoms_have_the_seminorm_as_their_length():
    """||a_j|| = q(E[loss_j]): 1/sqrt(K), and a constant added to every loss changes nothing."""
    pool = make_pool(n=10)
    atoms = posterior_atoms(pool.log_probs, pool.label_probs)
    expected_loss_NK = -np.einsum("nkc,nc->nk", pool.log_probs, pool.label_probs)
    lengths = np.sqrt(atoms.operator.norms_squared())
    np.testing.assert_allclose(lengths, [seminorm(row) for row in expected_loss_NK], rtol=1e-10)
    # The seminorm is the smallest distance to a constant loss.
    for losses in expected_loss_NK:
        shifts = np.linspace(losses.min(), losses.max(), 101)
        distances = [np.sqrt(np.mean((losses - c) ** 2)) for c in shifts]
        assert seminorm(losses) <= min(distances) + 1e-12


def test_the_expected_gradient_is_zero_when_q_is_p():
    pool = make_pool()
    atoms = gradient_atoms(pool.features, pool.probs, pool.probs, True)
    np.testing.assert_allclose(atoms.operator.norms_squared(), 0.0, atol=1e-30)
    for h, p in zip(pool.features, pool.probs, strict=True):
        mean = sum(p[y] * reference.gradient_of_label(h, p, y) for y in range(len(p)))
        np.testing.assert_allclose(mean, 0.0, atol=1e-12)


def test_the_variance_bound_of_the_second_proposition():
    """E q(L - E L) over the labels left unknown is at most the sum of their sigma_j."""
    pool = make_pool(n=3, dimensions=2, classes=3)
    q = pool.label_probs
    atoms, _, deviation = reference.gradient_atoms(pool.features, pool.probs, q)
    h = reference.with_constant(pool.features, True)
    for known in ([], [0], [0, 2], [0, 1, 2]):
        unknown = [j for j in range(3) if j not in known]
        expectation = 0.0
        for labels in np.ndindex(3, 3, 3):
            chance = np.prod([q[j, labels[j]] for j in range(3)])
            # A queried item has its true label, whatever it is: no spread is left in it.
            difference = sum(
                (
                    reference.gradient_of_label(h[j], pool.probs[j], labels[j]) - atoms[j]
                    for j in unknown
                ),
                start=np.zeros(atoms.shape[1]),
            )
            expectation += chance * np.linalg.norm(difference / 3)
        bound = sum(deviation[j] / 3 for j in unknown)
        assert expectation <= bound + 1e-12
