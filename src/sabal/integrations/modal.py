"""A query function for modAL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sabal.api import query, select
from sabal.integrations.axes import log_probs_from
from sabal.selection import Selection
from sabal.sparse.from_arrays import RandomState

QueryFunction = Callable[..., tuple[np.ndarray, np.ndarray]]


def modal_query(
    strategy: str = "sabal", *, random_state: RandomState = None, **options: Any
) -> QueryFunction:
    """A `query_strategy` for modAL's ActiveLearner or Committee.

        learner = ActiveLearner(model, query_strategy=modal_query(), X_training=X, y_training=y)
        indices, items = learner.query(X_pool, n_instances=20)

    What modAL calls the metrics of a query (`return_metrics=True`) are the importance weights.
    The members of a committee are the samples of a posterior. What the learner was trained on
    is passed along.
    """

    def chosen(classifier: Any, X_pool: Any, n_instances: int = 1) -> tuple[np.ndarray, np.ndarray]:
        ask = _of_committee if hasattr(classifier, "learner_list") else _of_learner
        batch = ask(classifier, X_pool, n_instances, strategy, random_state, options)
        return batch.indices, batch.weights

    return chosen


def _of_learner(
    learner: Any,
    X_pool: Any,
    budget: int,
    strategy: str,
    random_state: RandomState,
    options: dict[str, Any],
) -> Selection:
    return query(
        learner.estimator,
        X_pool,
        budget,
        X_labeled=learner.X_training,
        y_labeled=learner.y_training,
        strategy=strategy,
        random_state=random_state,
        **options,
    )


def _of_committee(
    committee: Any,
    X_pool: Any,
    budget: int,
    strategy: str,
    random_state: RandomState,
    options: dict[str, Any],
) -> Selection:
    # A committee does not keep what it was taught; its members do, often all the same.
    known = [m.X_training for m in committee.learner_list if m.X_training is not None]
    return select(
        budget,
        features=X_pool,
        log_probs=log_probs_from(committee.vote_proba(X_pool), axes="NKC", values="probs"),
        labeled_features=np.unique(np.concatenate(known), axis=0) if known else None,
        strategy=strategy,
        random_state=random_state,
        **options,
    )
