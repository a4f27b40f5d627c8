"""TypiClust's search for the most typical items, compared with the distances of all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import sabal
from sabal.core.arrays import top_k
from sabal.strategies import typiclust
from sabal.strategies.typiclust import TypiClust


def plain(points, in_pool, count, known, k):
    """Typicality of every item from all distances in float64."""
    exact = points.astype(np.float64)
    squares = ((exact[:, None] - exact[known][None]) ** 2).sum(axis=2)
    squares[known, np.arange(known.size)] = np.inf
    mean = np.sqrt(np.sort(squares, axis=1)[:, :k]).mean(axis=1)
    typicality = 1.0 / np.maximum(mean, typiclust.NO_DISTANCE)
    best = top_k(typicality[:in_pool], count)
    return best, typicality[best]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 40]), st.booleans(), st.booleans())
def test_the_most_typical_items_are_those_of_all_distances(seed, width, single, copies):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(60, width)) * rng.choice([1.0, 1e-3])
    points[::3] += rng.choice([0.0, 1.0])
    if copies:
        points[10:20] = points[:10]
    points = points.astype(np.float32 if single else np.float64)
    found, typicality = TypiClust(neighbours=5)._most_typical(points, np.arange(60), 50, 4)
    _, expected = plain(points, 50, 4, np.arange(60), 5)
    # The order of equal items depends on rounding, their typicality does not.
    np.testing.assert_allclose(typicality, expected, rtol=1e-3 if single else 1e-6)
    assert len(set(found)) == 4
    assert found.max() < 50


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_in_large_clusters_are_sampled(seed, monkeypatch):
    monkeypatch.setattr(typiclust, "NEIGHBOUR_ITEMS", 30)
    monkeypatch.setattr(typiclust, "BLOCK_BYTES", 1_000)
    points = np.random.default_rng(seed).normal(size=(80, 6))
    known = np.sort(np.random.default_rng(seed).choice(80, size=30, replace=False))
    sampled = typiclust._neighbour_candidates(80, np.random.default_rng(seed))
    np.testing.assert_array_equal(sampled, known)
    found, typicality = TypiClust(neighbours=4)._most_typical(points, known, 80, 5)
    best, expected = plain(points, 80, 5, known, 4)
    np.testing.assert_array_equal(found, best)
    np.testing.assert_allclose(typicality, expected, rtol=1e-9)


def test_few_items_need_exact_distances():
    points = np.random.default_rng(0).normal(size=(2_000, 32))
    able = typiclust._possibly_most_typical(points, np.arange(2_000), 20, 2_000, 1)
    assert able.size < 20


def test_the_batch_does_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(typiclust, "NEIGHBOUR_ITEMS", 30)
    features = np.random.default_rng(0).normal(size=(400, 5))
    found = []
    for count in (1, 2):
        with threadpool_limits(count):
            found.append(sabal.select(8, features=features, strategy="typiclust", random_state=0))
    np.testing.assert_array_equal(found[0].indices, found[1].indices)
    np.testing.assert_array_equal(found[0].scores, found[1].scores)
