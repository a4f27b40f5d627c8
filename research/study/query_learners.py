"""Classifiers as people bring them to `sabal.query`, by name and with their settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Settings = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class QueryLearner:
    """A scikit-learn classifier that is trained anew in every round.

    Parameters
    ----------
    family : str
        The family of its tasks.
    settings : dict
        The settings that determine its predictions; they are part of the digest of a run.
    make : callable
        Returns the classifier for the settings and a seed.
    vectorizer : dict or None
        Settings of a TfidfVectorizer that is fitted once on all texts of the pool. None for a
        classifier that takes the items as they are.
    """

    family: str
    settings: Settings
    make: Callable[[Settings, int], Any]
    vectorizer: Settings | None = None

    def build(self, seed: int) -> Any:
        """Return an untrained classifier."""
        return self.make(self.settings, seed)

    def definition(self) -> Settings:
        """Return what determines a result, for the digest of a run."""
        vectorizer = {} if self.vectorizer is None else {"vectorizer": self.vectorizer}
        return {"door": "query", **self.settings, **vectorizer}


def _forest(settings: Settings, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(**settings, random_state=seed)


def _boosting(settings: Settings, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(**settings, random_state=seed)


def _logistic(settings: Settings, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(**settings, random_state=seed)


def _scaled_logistic(settings: Settings, seed: int) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), _logistic(settings, seed))


def _words_logistic(settings: Settings, seed: int) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    return make_pipeline(TfidfVectorizer(), _logistic(settings, seed))


def _small_network(settings: Settings, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    hidden = tuple(settings["hidden_layer_sizes"])
    network = MLPClassifier(**{**settings, "hidden_layer_sizes": hidden}, random_state=seed)
    return make_pipeline(StandardScaler(), network)


_LOGISTIC: Settings = {"max_iter": 1_000}
# With the default C = 1, TF-IDF and few labels, nearly all predictions are the largest class.
_WORDS: Settings = {"max_iter": 1_000, "C": 10.0}

QUERY_LEARNERS: dict[str, QueryLearner] = {
    "random-forest": QueryLearner(family="tabular", settings={"n_estimators": 100}, make=_forest),
    # With the default of 20 items in a leaf, boosting cannot split the first labels at all.
    "boosting": QueryLearner(
        family="tabular",
        settings={
            "max_iter": 30,
            "learning_rate": 0.2,
            "min_samples_leaf": 5,
            "max_leaf_nodes": 15,
            "early_stopping": False,
        },
        make=_boosting,
    ),
    "scaled-logistic": QueryLearner(family="tabular", settings=_LOGISTIC, make=_scaled_logistic),
    # The vocabulary needs no labels: it is that of the pool.
    "tfidf-logistic": QueryLearner(
        family="tfidf",
        settings=_WORDS,
        make=_logistic,
        vectorizer={"min_df": 2, "max_features": 5_000},
    ),
    # One pipeline from texts to classes, fitted to the labelled texts alone.
    "tfidf-pipeline": QueryLearner(family="tfidf", settings=_WORDS, make=_words_logistic),
    "small-network": QueryLearner(
        family="diagnostic",
        settings={"hidden_layer_sizes": [24, 12], "solver": "lbfgs", "alpha": 1e-3},
        make=_small_network,
    ),
}
