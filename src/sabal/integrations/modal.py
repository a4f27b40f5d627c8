"""A query function for modAL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sabal.api import query, select
from sabal.core.checks import RandomState
from sabal.integrations.axes import log_probs_from
from sabal.selection import Selection

QueryFunction = Callable[..., tuple[np.ndarray, np.ndarray]]


def modal_query(
    strategy: str = "sabal", *, random_state: RandomState = None, **options: Any
) -> QueryFunction:
    """Return a `query_strategy` for modAL's ActiveLearner or Committee.

    Parameters
    ----------
    strategy, random_state, **options
        As in `sabal.select`.

    Returns
    -------
    callable
        Its metrics of a query (`return_metrics=True` in modAL) are the importance weights. The
        members of a committee count as samples of a posterior. The items that the learner was
        trained on are taken into account.

    Examples
    --------
    ::

        learner = ActiveLearner(model, query_strategy=modal_query(), X_training=X, y_training=y)
        indices, items = learner.query(X_pool, n_instances=20)
    """

    def query_pool(
        classifier: Any, X_pool: Any, n_instances: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        choose = _query_committee if hasattr(classifier, "learner_list") else _query_learner
        batch = choose(classifier, X_pool, n_instances, strategy, random_state, options)
        return batch.indices, batch.weights

    return query_pool


def _query_learner(
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


def _query_committee(
    committee: Any,
    X_pool: Any,
    budget: int,
    strategy: str,
    random_state: RandomState,
    options: dict[str, Any],
) -> Selection:
    # A committee does not keep its training data; its members do, often the same data.
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
