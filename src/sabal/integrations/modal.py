"""A query function for modAL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sabal.api import query, select
from sabal.core.checks import RandomState
from sabal.integrations.axes import log_probs_from

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
        how = {"strategy": strategy, "random_state": random_state, **options}
        if hasattr(classifier, "learner_list"):
            batch = select(n_instances, **_committee_arrays(classifier, X_pool), **how)
        else:
            known = {"X_labeled": classifier.X_training, "y_labeled": classifier.y_training}
            batch = query(classifier.estimator, X_pool, n_instances, **known, **how)
        return batch.indices, batch.weights

    return query_pool


def _committee_arrays(committee: Any, X_pool: Any) -> dict[str, Any]:
    # A committee does not keep its training data; its members do, often the same data.
    known = [m.X_training for m in committee.learner_list if m.X_training is not None]
    return {
        "features": X_pool,
        "log_probs": log_probs_from(committee.vote_proba(X_pool), axes="NKC", values="probs"),
        "labeled_features": np.unique(np.concatenate(known), axis=0) if known else None,
    }
