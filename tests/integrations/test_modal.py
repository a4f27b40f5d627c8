"""Sabal as a query function of modAL.

modAL pins a skorch of 2020, so it is not among the packages for development: install it with
`pip install --no-deps modAL-python` to run these tests.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sabal
from sabal.integrations import log_probs_from, modal_query

learners = pytest.importorskip("modAL.models", reason="modAL is not installed")

X, Y = load_digits(return_X_y=True)
LABELED, POOL = slice(0, 60), slice(60, 360)


def model():
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))


def test_a_learner_asks_as_sabal_query_does():
    learner = learners.ActiveLearner(
        model(),
        query_strategy=modal_query(random_state=0),
        X_training=X[LABELED],
        y_training=Y[LABELED],
    )
    indices, items, weights = learner.query(X[POOL], n_instances=12, return_metrics=True)
    by_hand = sabal.query(
        learner.estimator,
        X[POOL],
        12,
        X_labeled=X[LABELED],
        y_labeled=Y[LABELED],
        random_state=0,
    )
    np.testing.assert_array_equal(indices, by_hand.indices)
    np.testing.assert_array_equal(weights, by_hand.weights)
    np.testing.assert_array_equal(items, X[POOL][indices])
    assert by_hand.evidence["labeled"] == 60


@pytest.mark.parametrize("n_instances", [1, 2])
def test_the_smallest_batches_are_not_taken_for_something_else(n_instances):
    # modAL takes a pair for indices and metrics.
    learner = learners.ActiveLearner(
        model(),
        query_strategy=modal_query("margin"),
        X_training=X[LABELED],
        y_training=Y[LABELED],
    )
    indices, items = learner.query(X[POOL], n_instances=n_instances)
    assert indices.shape == (n_instances,)
    assert items.shape == (n_instances, 64)


@pytest.mark.parametrize("strategy", ["sabal", "bald"])
def test_a_committee_is_a_posterior(strategy):
    members = [
        learners.ActiveLearner(model(), X_training=X[part], y_training=Y[part])
        for part in (slice(0, 40), slice(10, 50), slice(20, 60))
    ]
    committee = learners.Committee(members, query_strategy=modal_query(strategy, random_state=0))
    indices, _ = committee.query(X[POOL], n_instances=8)
    by_hand = sabal.select(
        8,
        features=X[POOL],
        log_probs=log_probs_from(
            np.stack([member.predict_proba(X[POOL]) for member in members]),
            axes="KNC",
            values="probs",
        ),
        labeled_features=np.unique(X[LABELED], axis=0),
        strategy=strategy,
        random_state=0,
    )
    np.testing.assert_array_equal(indices, by_hand.indices)


def test_mistakes_are_sabal_errors():
    learner = learners.ActiveLearner(
        model(), query_strategy=modal_query(), X_training=X[LABELED], y_training=Y[LABELED]
    )
    with pytest.raises(sabal.SabalError, match="size of the pool"):
        learner.query(X[POOL], n_instances=1000)
