"""Features of items as trees see them: leaves of forests, ranks for other trees."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import sabal
from sabal.predictions.from_estimator import EstimatorPrediction
from sabal.predictions.tree_features import has_leaves, leaf_features, ranked_columns

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5)) * 10.0 ** np.arange(-2, 3)
Y = (X[:, 0] * 100 + X[:, 1] * 10 + X[:, 2] > 0).astype(int)

FORESTS = (
    RandomForestClassifier(60, random_state=0),
    ExtraTreesClassifier(60, random_state=0),
    GradientBoostingClassifier(n_estimators=40, random_state=0),
)


def features_of(model, pool=X[60:], labeled=X[:60]):
    said = EstimatorPrediction(model.fit(X[:60], Y[:60]), pool, labeled, Y[:60], None, None)
    arrays = said.arrays()
    return np.asarray(arrays["features"]()), np.asarray(arrays["labeled_features"]()), said.notes


@pytest.mark.parametrize("model", FORESTS, ids=lambda model: type(model).__name__)
def test_distances_of_leaves_are_the_share_of_trees_that_separate_two_items(model):
    model.fit(X[:60], Y[:60])
    found = leaf_features(model, X)
    leaves = model.apply(X).reshape(len(X), -1)
    apart = np.mean(leaves[:, None] != leaves[None], axis=2)
    squares = np.sum((found[:, None] - found[None]) ** 2, axis=2)
    # A projection to 512 columns keeps squares of distances to about sqrt(2 / 512) of them.
    assert np.sqrt(np.mean((squares - 2 * apart) ** 2)) < 0.2
    assert np.corrcoef(squares.ravel(), apart.ravel())[0, 1] > 0.8


def test_the_same_projection_serves_pool_and_labelled_items():
    model = FORESTS[0].fit(X[:60], Y[:60])
    np.testing.assert_allclose(leaf_features(model, X)[40:50], leaf_features(model, X[40:50]))


@pytest.mark.parametrize(
    ("model", "source"),
    [
        (FORESTS[0], "leaves"),
        (make_pipeline(StandardScaler(), RandomForestClassifier(20, random_state=0)), "leaves"),
        (RandomForestClassifier(3, random_state=0), None),
        (HistGradientBoostingClassifier(max_iter=5), "ranks"),
        (DecisionTreeClassifier(random_state=0), "ranks"),
        (LogisticRegression(), None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_features_of_an_estimator(model, source):
    _, _, notes = features_of(model)
    assert notes.get("features_from") == source


def test_ranks_do_not_depend_on_units_or_monotone_transformations():
    model = HistGradientBoostingClassifier(max_iter=5)
    plain, labeled, _ = features_of(model)
    cubed = ranked_columns(X[60:] ** 3 * 1e6, X[60:] ** 3 * 1e6)
    np.testing.assert_allclose(plain, cubed, atol=1e-9)
    assert labeled.shape == (60, 5)
    assert 0.0 <= min(plain.min(), labeled.min()) <= max(plain.max(), labeled.max()) <= 1.0


def test_unknown_values_are_in_the_middle():
    model = HistGradientBoostingClassifier(max_iter=5)
    holes = X.copy()
    holes[::7, 2] = np.nan
    found, _, _ = features_of(model, pool=holes[60:])
    assert np.isfinite(found).all()
    assert np.all(found[np.isnan(holes[60:, 2]), 2] == 0.5)
    assert sabal.query(model, holes[60:], 5, random_state=0).indices.size == 5


def test_one_tree_has_no_leaves_to_speak_of():
    assert not has_leaves(DecisionTreeClassifier().fit(X, Y), X)
    assert not has_leaves(LogisticRegression().fit(X, Y), X)
