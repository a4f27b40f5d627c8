"""Sabal as a query strategy of scikit-activeml."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sabal

classifier = pytest.importorskip("skactiveml.classifier", reason="needs scikit-activeml")

from sabal.integrations.activeml import SabalQuery  # noqa: E402

X, TRUTH = load_digits(return_X_y=True)
X, TRUTH = X[:360], TRUTH[:360]
LABELED = np.arange(0, 360, 6)
POOL = np.setdiff1d(np.arange(360), LABELED)
Y = np.full(360, np.nan)
Y[LABELED] = TRUTH[LABELED]


def pipeline():
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))


def wrapped(model):
    return classifier.SklearnClassifier(model, classes=range(10))


@pytest.mark.parametrize(
    "model", [pipeline(), LogisticRegression(max_iter=5000)], ids=["pipe", "lr"]
)
def test_it_chooses_what_sabal_query_does(model):
    strategy = SabalQuery(random_state=3)
    indices, utilities = strategy.query(X, Y, wrapped(model), batch_size=9, return_utilities=True)
    fitted = clone(model).fit(X[LABELED], TRUTH[LABELED])
    by_hand = sabal.query(
        fitted,
        X[POOL],
        9,
        X_labeled=X[LABELED],
        y_labeled=TRUTH[LABELED],
        random_state=strategy.selection_.seed,
    )
    np.testing.assert_array_equal(indices, POOL[by_hand.indices])
    np.testing.assert_array_equal(strategy.selection_.weights, by_hand.weights)
    assert strategy.selection_.evidence["labeled"] == len(LABELED)
    assert utilities.shape == (9, 360)
    np.testing.assert_array_equal(np.nanargmax(utilities, axis=1), indices)


def test_the_seed_decides():
    clf = wrapped(pipeline())
    first, again = (SabalQuery(random_state=0).query(X, Y, clf, batch_size=5) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_candidates_by_row_and_by_value():
    clf = wrapped(pipeline()).fit(X, Y)
    some = POOL[::3]
    strategy = SabalQuery(random_state=0)
    by_row = strategy.query(X, Y, clf, fit_clf=False, candidates=some, batch_size=5)
    by_value = strategy.query(X, Y, clf, fit_clf=False, candidates=X[some], batch_size=5)
    np.testing.assert_array_equal(by_row, some[by_value])
    with pytest.raises(ValueError, match="labeled"):
        strategy.query(X, Y, clf, fit_clf=False, candidates=LABELED, batch_size=5)


def test_classes_that_nobody_has_labelled_yet():
    few = Y.copy()
    few[np.isin(TRUTH, (7, 8, 9))] = np.nan
    strategy = SabalQuery("sabal-kernel", {"atoms": "curvature"}, random_state=0)
    indices = strategy.query(X, few, wrapped(pipeline()), batch_size=6)
    assert len(set(indices.tolist())) == 6
    assert np.isnan(few[indices]).all()
    assert strategy.selection_.evidence["atoms"] == "curvature"


@pytest.mark.filterwarnings("ignore:.*could not be fitted", "ignore:The 'base_estimator'")
def test_before_there_is_any_label():
    nothing = np.full(360, np.nan)
    strategy = SabalQuery(random_state=0)
    assert len(set(strategy.query(X, nothing, wrapped(pipeline()), batch_size=6).tolist())) == 6
    assert strategy.selection_.evidence["labeled"] == 0


def test_embeddings_of_a_classifier_that_has_some():
    class Embedding(classifier.SklearnClassifier):
        def predict_proba(self, X, embed=False):
            probs = super().predict_proba(X)
            return (probs, X[:, :5] * 2.0) if embed else probs

    clf = Embedding(pipeline(), classes=range(10)).fit(X, Y)
    strategy = SabalQuery(clf_embedding_flag_name="embed", random_state=0)
    indices = strategy.query(X, Y, clf, fit_clf=False, batch_size=5)
    by_hand = sabal.select(
        5,
        features=X[POOL][:, :5] * 2.0,
        probs=clf.predict_proba(X[POOL]),
        labeled_features=X[LABELED][:, :5] * 2.0,
        random_state=strategy.selection_.seed,
    )
    np.testing.assert_array_equal(indices, POOL[by_hand.indices])


def test_it_can_be_cloned_as_every_estimator():
    strategy = SabalQuery("badge", {"bias": True}, random_state=5)
    copy = clone(strategy)
    assert copy.get_params() == strategy.get_params()
