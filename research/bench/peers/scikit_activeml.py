"""scikit-activeml (https://scikit-activeml.github.io): query strategies of `skactiveml.pool`."""

# mypy: ignore-errors
# The packages live in another environment.

import numpy as np
from skactiveml.base import SkactivemlClassifier
from skactiveml.pool import (
    Badge,
    BatchBALD,
    CoreSet,
    GreedyBALD,
    RandomSampling,
    TypiClust,
    UncertaintySampling,
)

PACKAGE = "scikit-activeml"


class PrecomputedClassifier(SkactivemlClassifier):
    """A fitted classifier with precomputed predictions for the pool."""

    def __init__(self, probs_NC=None, probs_KNC=None):
        super().__init__()
        self.probs_NC = probs_NC
        self.probs_KNC = probs_KNC
        self.classes_ = np.arange((probs_NC if probs_NC is not None else probs_KNC).shape[-1])

    def fit(self, X, y, sample_weight=None):
        """Do nothing."""
        return self

    def predict_proba(self, X):
        """Return probabilities (items, classes)."""
        return self.probs_NC

    def sample_proba(self, X):
        """Return posterior samples (samples, items, classes)."""
        return self.probs_KNC


def _unlabeled(n):
    return np.full(n, np.nan)


def _with_labeled(inputs):
    """Return the complete data set as `query` expects it, with nan for missing labels."""
    features, labeled = inputs["features"], inputs["labeled_features"]
    y = np.concatenate([_unlabeled(len(features)), np.zeros(len(labeled))])
    return np.concatenate([features, labeled]), y


def random(inputs):
    """Use RandomSampling."""
    X = inputs["features"]
    y = _unlabeled(len(X))
    return lambda budget, seed: RandomSampling(random_state=seed).query(X, y, batch_size=budget)


def uncertainty(method):
    """Use UncertaintySampling with `method`."""

    def prepare(inputs):
        X, clf = inputs["features"], PrecomputedClassifier(inputs["probs"])
        y = _unlabeled(len(X))
        return lambda budget, seed: UncertaintySampling(method=method, random_state=seed).query(
            X, y, clf=clf, fit_clf=False, batch_size=budget
        )

    return prepare


def badge(inputs):
    """Use Badge; without an embedding flag the features are the last layer's input."""
    X, clf = inputs["features"], PrecomputedClassifier(inputs["probs"])
    y = _unlabeled(len(X))
    return lambda budget, seed: Badge(random_state=seed).query(
        X, y, clf=clf, fit_clf=False, batch_size=budget
    )


def core_set(inputs):
    """Use CoreSet: greedy k-center starting from the labelled items."""
    X, y = _with_labeled(inputs)
    return lambda budget, seed: CoreSet(random_state=seed).query(X, y, batch_size=budget)


def typi_clust(inputs):
    """Use TypiClust with the 20 neighbours of its paper, and a cluster for every pick."""
    X, y = _with_labeled(inputs)
    labeled = len(inputs["labeled_features"])

    def run(budget, seed):
        chosen = TypiClust(k=20, random_state=seed).query(X, y, batch_size=budget)
        return chosen, f"{labeled + budget} clusters"

    return run


def bayesian(strategy, samples):
    """Use GreedyBALD or BatchBALD over the posterior samples, with `samples` joint outcomes."""

    def prepare(inputs):
        X = inputs["features"]
        y = _unlabeled(len(X))
        probs_KNC = np.ascontiguousarray(np.exp(inputs["log_probs"]).swapaxes(0, 1))
        ensemble = PrecomputedClassifier(probs_KNC=probs_KNC)
        options = {"n_MC_samples": int(inputs["joint_samples"])} if samples == "ours" else {}
        remark = f"{len(probs_KNC)} joint samples" if samples == "default" else ""

        def run(budget, seed):
            query_strategy = strategy(
                sample_predictions_method_name="sample_proba", random_state=seed, **options
            )
            chosen = query_strategy.query(
                X, y, ensemble=ensemble, fit_ensemble=False, batch_size=budget
            )
            return chosen, remark

        return run

    return prepare


METHODS = {
    "RandomSampling": random,
    "UncertaintySampling entropy": uncertainty("entropy"),
    "UncertaintySampling margin": uncertainty("margin_sampling"),
    "UncertaintySampling least confident": uncertainty("least_confident"),
    "Badge": badge,
    "CoreSet": core_set,
    "TypiClust": typi_clust,
    "GreedyBALD": bayesian(GreedyBALD, samples="none"),
    "BatchBALD": bayesian(BatchBALD, samples="ours"),
    "BatchBALD with its default samples": bayesian(BatchBALD, samples="default"),
}
