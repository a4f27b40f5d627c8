"""`sabal.query` with real scikit-learn classifiers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import sabal

X, Y = load_digits(return_X_y=True)
LABELED, POOL = slice(0, 60), slice(60, 360)


@pytest.mark.parametrize(
    "classifier",
    [
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        RandomForestClassifier(20, random_state=0),
        GaussianNB(var_smoothing=1e-2),
    ],
    ids=["pipeline", "forest", "bayes"],
)
@pytest.mark.parametrize("strategy", ["sabal", "sabal-greedy", "sabal-iht", "random"])
def test_any_classifier_with_predict_proba_works(classifier, strategy):
    model = classifier.fit(X[LABELED], Y[LABELED])
    selection = sabal.query(
        model,
        X[POOL],
        12,
        X_labeled=X[LABELED],
        y_labeled=Y[LABELED],
        strategy=strategy,
        random_state=0,
    )
    assert len(set(selection.indices.tolist())) == 12
    assert selection.indices.max() < 300
    # With labels at hand the gradient has a label distribution of its own.
    assert selection.evidence["warnings"] == []
    assert ("temperature" in selection.evidence) == (strategy in ("sabal-greedy", "sabal-iht"))


def test_the_features_of_a_pipeline_are_what_its_last_step_sees():
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    model.fit(X[LABELED], Y[LABELED])
    by_query = sabal.query(model, X[POOL], 10, random_state=0)
    by_hand = sabal.select(
        10,
        features=model[:-1].transform(X[POOL]),
        probs=model.predict_proba(X[POOL]),
        random_state=0,
    )
    np.testing.assert_array_equal(by_query.indices, by_hand.indices)


def test_own_features_win():
    model = GaussianNB(var_smoothing=1e-2).fit(X[LABELED], Y[LABELED])
    own = np.random.default_rng(0).normal(size=(300, 4))
    by_query = sabal.query(model, X[POOL], 10, features=own, random_state=0)
    by_hand = sabal.select(10, features=own, probs=model.predict_proba(X[POOL]), random_state=0)
    np.testing.assert_array_equal(by_query.indices, by_hand.indices)


def test_texts_and_frames():
    texts = np.array([f"word{i % 7} word{i % 5} word{i % 11}" for i in range(80)])
    labels = np.arange(80) % 2
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts[:20], labels[:20])
    assert len(sabal.query(model, texts[20:], 5, random_state=0)) == 5
    frame = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) ** 0.5})
    tree = GaussianNB().fit(frame[:10], [0, 1] * 5)
    assert len(sabal.query(tree, frame[10:], 5, random_state=0)) == 5


def test_wide_sparse_features_are_projected_and_say_so():
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{w}" for w in rng.integers(0, 6000, size=60)) for _ in range(120)]
    labels = np.arange(120) % 3
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels)
    selection = sabal.query(model, texts, 10, random_state=0)
    assert selection.evidence["features_projected_from"] > 2048


def test_random_asks_the_classifier_nothing():
    class Silent:
        def predict_proba(self, X):
            raise AssertionError("asked")

    assert len(sabal.query(Silent(), X[POOL], 5, strategy="random", random_state=0)) == 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sabal.query(LinearSVC().fit(X[:60], Y[:60]), X, 5), "predict_proba"),
        (lambda: sabal.query(LogisticRegression(), X, 5), "fitted"),
        (
            lambda: sabal.query(GaussianNB().fit(X[:60], Y[:60]), X[:, :3], 5),
            "as the estimator was trained on",
        ),
        (
            lambda: sabal.query(GaussianNB().fit(X[:60], Y[:60]), X, 5, X_labeled=X[:60]),
            "together",
        ),
        (
            lambda: sabal.query(GaussianNB().fit(X[:60], Y[:60]), X, 5, labeled_features=X[:60]),
            "beside `features`",
        ),
        (lambda: sabal.query(GaussianNB().fit(X[:60], Y[:60]), X, 10_000), "size of the pool"),
        (lambda: sabal.query(GaussianNB, X, 5), r"pass GaussianNB\(\)"),
        (lambda: sabal.query("lr", X, 5), "sabal.select"),
        (lambda: sabal.query(GaussianNB().fit(X[:60], Y[:60]), 5, X), "row for every item"),
        (lambda: sabal.cross_validated_temperature(GaussianNB, X, Y), "an estimator"),
        (lambda: sabal.cross_validated_temperature(GaussianNB(), X[:40], Y[:30]), "every row"),
        (lambda: sabal.cross_validated_temperature(GaussianNB(), X[:30], Y[:40]), "every row"),
    ],
)
def test_mistakes_are_sabal_errors(call, message):
    with pytest.raises(sabal.SabalError, match=message):
        call()
