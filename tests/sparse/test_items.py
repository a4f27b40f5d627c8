"""Items against every item written out: what a pass answers, whatever the blocks and segments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabal.core.arrays import CHUNK_BYTES, SEGMENTS, SHORTEST_SEGMENT, segments_of
from sabal.sparse.greedy import Ranking
from sabal.sparse.iht import Proximity
from sabal.sparse.items import LocalItems, RankedItems, SparseWeights, Terms
from sabal.sparse.operators import Computed, Dense

TERMS = Terms(fidelity=0.7, beta=0.3, alpha=1.5, unit=2.0)


def items_of(atoms, uncertainty, rows_per_block=3, segments=None):
    """Items whose atoms come in small blocks."""
    whole = Dense(atoms)
    operator = Computed(
        lambda rows: whole.block(rows) if isinstance(rows, slice) else whole.gather(rows),
        size=len(atoms),
        row_bytes=CHUNK_BYTES // rows_per_block,
    )
    return LocalItems(operator, uncertainty, segments=segments)


def cut(n, cuts):
    """Segments of a pool of `n`, cut at `cuts`."""
    bounds = [0, *sorted({c for c in cuts if 0 < c < n}), n]
    return [slice(low, high) for low, high in itertools.pairwise(bounds)]


# Few values, so that ties are common.
pools = st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, -1.0, 0.5])] * 2), min_size=n, max_size=n),
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=n, max_size=n),
        st.lists(st.integers(0, 30), max_size=4),
    )
)


@given(pool=pools, data=st.data(), score=st.sampled_from(["optimal-step", "first-order"]))
def test_a_ranking_brings_back_the_best_of_all_items(pool, data, score):
    atoms, uncertainty, cuts = np.array(pool[0]), np.array(pool[1]), pool[2]
    n = len(atoms)
    taken = np.array(data.draw(st.lists(st.integers(0, n - 1), unique=True, max_size=n - 1)), int)
    count = data.draw(st.integers(1, n - taken.size))
    direction = np.array([1.0, -0.25])
    ranking = Ranking(TERMS, score, 0.8)
    items = items_of(atoms, uncertainty, data.draw(st.integers(1, 8)), cut(n, cuts))
    best = items.best(direction, ranking, count, taken)

    product, norms = atoms @ direction, (atoms**2).sum(axis=1)
    decrease = ranking.decrease(product, TERMS.bonus(uncertainty), TERMS.curvature(norms))
    free = [j for j in range(n) if j not in taken]
    expected = sorted(free, key=lambda j: (-decrease[j], j))[:count]
    assert best.indices.tolist() == expected
    np.testing.assert_allclose(best.scores, decrease[expected])
    np.testing.assert_allclose(best.value, product[expected])
    np.testing.assert_allclose(best.uncertainty, uncertainty[expected])
    np.testing.assert_allclose(best.norms_squared, norms[expected])
    assert best.in_order().indices.tolist() == sorted(expected)


@given(pool=pools, data=st.data(), rule=st.sampled_from(["exact", "line-6", "appendix"]))
def test_a_descent_is_the_gradient_of_all_items(pool, data, rule):
    atoms, uncertainty, cuts = np.array(pool[0]), np.array(pool[1]), pool[2]
    n = len(atoms)
    some = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1)))), dtype=int)
    z = SparseWeights(some, np.linspace(0.5, 2.0, some.size))
    direction = np.array([0.5, 2.0])
    items = items_of(atoms, uncertainty, data.draw(st.integers(1, 8)), cut(n, cuts))
    descent = items.descend(direction, z, 0.3)

    dense = np.zeros(n)
    dense[some] = z.values
    gradient = 0.6 * (dense - 1.0) - 2.0 * atoms @ direction
    np.testing.assert_allclose(descent.total, gradient @ atoms, atol=1e-12)
    assert descent.square == pytest.approx(gradient @ gradient)
    assert descent.slope == pytest.approx((dense - 1.0) @ gradient)

    proximity = Proximity(TERMS, rule, 0.4)
    count = data.draw(st.integers(1, n))
    nearest = descent.nearest(proximity, count)
    point = dense - 0.4 * gradient
    scores = proximity.scores(point, uncertainty)
    kept = sorted(range(n), key=lambda j: (-scores[j], j))[:count]
    np.testing.assert_allclose(nearest.scores, scores[kept])
    np.testing.assert_allclose(nearest.value, point[nearest.indices])


def test_sums_are_by_segment():
    rng = np.random.default_rng(0)
    atoms, uncertainty, variance = rng.normal(size=(20, 3)), rng.random(20), rng.random(20)
    segments = cut(20, [4, 11])
    sums = LocalItems(Dense(atoms), uncertainty, variance_N=variance, segments=segments).sums()
    assert sums.sizes.tolist() == [4, 7, 9]
    assert sums.size == 20
    for k, rows in enumerate(segments):
        np.testing.assert_allclose(sums.atoms[k], atoms[rows].sum(axis=0))
        assert sums.norms_squared[k] == pytest.approx(np.sum(atoms[rows] ** 2))
        assert sums.uncertainty[k] == pytest.approx(uncertainty[rows].sum())
        assert sums.variance[k] == pytest.approx(variance[rows].sum())


def test_the_best_of_parts_is_the_best_of_the_whole():
    rng = np.random.default_rng(0)
    atoms, uncertainty = rng.normal(size=(50, 3)), rng.random(50)
    ranking = Ranking(TERMS, "optimal-step", 1.0)
    direction, none = rng.normal(size=3), np.zeros(0, dtype=np.int64)
    whole = LocalItems(Dense(atoms), uncertainty).best(direction, ranking, 7, none)
    parts = []
    for rows in cut(50, [13, 20]):
        best = LocalItems(Dense(atoms[rows]), uncertainty[rows]).best(direction, ranking, 7, none)
        shifted = RankedItems(best.indices + rows.start, *list(vars(best).values())[1:])
        parts.append(shifted)
    joined = RankedItems.join(parts).top(7)
    assert joined.indices.tolist() == whole.indices.tolist()
    np.testing.assert_array_equal(joined.scores, whole.scores)


@given(
    first=st.dictionaries(st.integers(0, 9), st.floats(-2, 2), max_size=6),
    second=st.dictionaries(st.integers(0, 9), st.floats(-2, 2), max_size=6),
)
def test_sparse_weights_are_vectors(first, second):
    def both(values):
        dense = np.zeros(10)
        dense[list(values)] = list(values.values())
        keys = np.array(list(values), dtype=int)
        return SparseWeights.of(keys, dense[keys]), dense

    (a, dense_a), (b, dense_b) = both(first), both(second)
    everyone = np.arange(10)
    np.testing.assert_allclose(a.minus(b, 0.5).at(everyone), dense_a - 0.5 * dense_b)
    part = a.within(3, 8)
    np.testing.assert_allclose(part.at(np.arange(5)), dense_a[3:8])


@given(n=st.integers(1, 10**9))
def test_segments_cover_a_pool_of_any_size(n):
    segments = segments_of(n)
    assert len(segments) <= SEGMENTS
    assert segments[0].start == 0
    assert segments[-1].stop == n
    assert all(a.stop == b.start for a, b in itertools.pairwise(segments))
    assert all(s.stop - s.start >= SHORTEST_SEGMENT for s in segments[:-1])
