"""Arrays that a pool lets go of, once a selection needs them no more."""

from __future__ import annotations

import numpy as np
import pytest

import sabal
from sabal.api import choose
from sabal.pools import open_pool, read_contents


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    features, probs = rng.normal(size=(300, 4)), rng.dirichlet(np.ones(3), size=300)
    np.savez(tmp_path / "pool.npz", features=features, probs=probs)
    return tmp_path / "pool.npz"


def test_a_pool_that_is_used_once_lets_go_of_its_features(path):
    pool = read_contents(path).pool.check()
    pool.used_once = True
    once = choose(pool, 10, "sabal", 0, {})
    with pytest.raises(RuntimeError, match="released"):
        _ = pool.features
    assert pool.has("features")
    arrays = np.load(path)
    kept = sabal.select(10, features=arrays["features"], probs=arrays["probs"], random_state=0)
    np.testing.assert_array_equal(once.indices, kept.indices)
    assert once.evidence["objective"] == kept.evidence["objective"]


def test_an_opened_pool_keeps_its_features_for_the_next_selection(path):
    with open_pool(path) as pool:
        first = sabal.select(10, pool, random_state=0)
        again = sabal.select(10, pool, random_state=0)
        assert pool.features.shape == (300, 4)
    np.testing.assert_array_equal(first.indices, again.indices)
