"""One suite that every operator runs through, against explicit atoms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabal.core.arrays import CHUNK_BYTES
from sabal.sparse.operators import Computed, Dense, Fourier, Growing, RankOne

KINDS = ["dense", "rank-one", "rank-one with constant", "fourier"]


def make(kind, convert=np.asarray, dtype="float64", n=9, seed=0):
    """An operator and its atoms, written out."""
    rng = np.random.default_rng(seed)
    if kind == "dense":
        atoms = rng.normal(size=(n, 6)).astype(dtype)
        return Dense(convert(atoms)), atoms
    if kind == "fourier":
        phase, weight = rng.normal(size=(n, 5)).astype(dtype), rng.random(n).astype(dtype)
        atoms = np.concatenate([np.cos(phase), np.sin(phase)], axis=1) * weight[:, None]
        return Fourier(convert(phase), convert(weight)), atoms
    left, right = rng.normal(size=(n, 3)).astype(dtype), rng.normal(size=(n, 4)).astype(dtype)
    constant = kind.endswith("constant")
    full = np.concatenate([right, np.ones((n, 1), dtype)], axis=1) if constant else right
    operator = RankOne(convert(left), convert(right), constant=constant)
    return operator, np.einsum("nc,nd->ncd", left, full)


@pytest.mark.parametrize("kind", KINDS)
def test_every_question_is_answered_as_by_explicit_atoms(kind, library, dtype):
    operator, atoms = make(kind, library, dtype)
    rng = np.random.default_rng(1)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    direction = rng.normal(size=atoms.shape[1:])
    weights = rng.normal(size=len(atoms))
    flat = atoms.reshape(len(atoms), -1).astype("float64")
    close = {"rtol": tolerance, "atol": tolerance * 10}

    assert operator.size == len(atoms)
    assert operator.atom_shape == atoms.shape[1:]
    np.testing.assert_allclose(operator.correlate(direction), flat @ direction.ravel(), **close)
    np.testing.assert_allclose(operator.combine(weights).ravel(), weights @ flat, **close)
    np.testing.assert_allclose(operator.norms_squared(), (flat**2).sum(axis=1), **close)
    for answer in (operator.correlate(direction), operator.combine(weights)):
        assert isinstance(answer, np.ndarray)
        assert answer.dtype == np.float64


@pytest.mark.parametrize("kind", KINDS)
def test_taken_atoms_are_the_same_atoms_in_numpy_float64(kind, library, dtype):
    operator, atoms = make(kind, library, dtype)
    chosen = np.array([4, 0, 7])
    taken = operator.take(chosen)
    assert all(factor.dtype == np.float64 for factor in taken.factors)
    flat = atoms.reshape(len(atoms), -1).astype("float64")[chosen]
    for row, weights in zip(flat, np.eye(3), strict=True):
        np.testing.assert_allclose(taken.combine(weights).ravel(), row, rtol=1e-6)
    np.testing.assert_allclose(taken.gram(), flat @ flat.T, rtol=1e-5, atol=1e-6)
    for row in range(3):
        np.testing.assert_allclose(taken.products_with(row), taken.gram()[row], rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_gathered_atoms_stay_in_their_library_and_dtype(kind, library, dtype):
    operator, _ = make(kind, library, dtype)
    gathered = operator.gather(np.array([4, 0, 7]))
    mine, theirs = gathered.factors[0], operator.factors[0]
    assert type(mine) is type(theirs)
    assert mine.dtype == theirs.dtype
    direction = np.random.default_rng(1).normal(size=operator.atom_shape)
    np.testing.assert_allclose(
        gathered.correlate(direction), operator.correlate(direction)[[4, 0, 7]], rtol=1e-5
    )


@pytest.mark.parametrize("kind", KINDS)
def test_growing_collects_atoms_in_order(kind):
    operator, _ = make(kind)
    source = operator.take(np.arange(operator.size))
    growing = Growing(source, capacity=3)
    for row in (5, 2, 8):
        growing.add(source.gather(np.array([row])))
    expected = operator.take(np.array([5, 2, 8]))
    for ours, theirs in zip(growing.atoms.factors, expected.factors, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@given(n=st.integers(1, 40), chunk=st.integers(1, 4000), kind=st.sampled_from(KINDS))
def test_the_size_of_blocks_changes_nothing(n, chunk, kind):
    operator, _ = make(kind, n=n)
    weights = np.linspace(-1, 1, n)
    direction = np.ones(operator.atom_shape)
    lazy = Computed(
        lambda rows: operator.block(rows) if isinstance(rows, slice) else operator.gather(rows),
        size=n,
        row_bytes=max(1, CHUNK_BYTES // chunk),
    )
    assert all(rows.stop - rows.start <= chunk for _, rows, _ in lazy.blocks())
    np.testing.assert_allclose(lazy.combine(weights), operator.combine(weights), atol=1e-12)
    np.testing.assert_allclose(lazy.correlate(direction), operator.correlate(direction), atol=1e-12)
    np.testing.assert_allclose(lazy.norms_squared(), operator.norms_squared(), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-15, 1e15])
def test_norms_of_extreme_float32_scales_survive(scale):
    rows = (np.ones((3, 4)) * scale).astype("float32")
    np.testing.assert_allclose(Dense(rows).norms_squared(), 4 * scale**2, rtol=1e-6)
