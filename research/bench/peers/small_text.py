"""small-text (https://small-text.readthedocs.io): query strategies over a classifier."""

# mypy: ignore-errors
# The packages live in another environment.

import warnings

import numpy as np
from small_text import (
    BALD,
    BreakingTies,
    GreedyCoreset,
    LeastConfidence,
    PredictionEntropy,
    RandomSampling,
)

PACKAGE = "small-text"


class PoolClassifier:
    """A classifier with precomputed predictions for the pool."""

    def __init__(self, probs):
        self.probs = probs

    def predict_proba(self, dataset, dropout_sampling=1):
        """Return (items, classes), or (items, samples, classes) with dropout sampling."""
        return self.probs


NOTHING = np.empty(0, dtype=np.int64)


def _query(strategy, classifier, n):
    # The strategies use the data set only through the classifier.
    rows = np.arange(n)

    def run(budget, seed):
        np.random.seed(seed)  # noqa: NPY002
        return strategy.query(classifier, rows, rows, NOTHING, NOTHING, n=budget)

    return run


def on_probs(strategy):
    """Use a strategy over the class probabilities."""

    def prepare(inputs):
        probs = inputs["probs"]
        return _query(strategy(), PoolClassifier(probs), len(probs))

    return prepare


def bald(inputs):
    """Use BALD over the posterior samples."""
    probs_NKC = np.exp(inputs["log_probs"])
    strategy = BALD(dropout_samples=probs_NKC.shape[1])
    return _query(strategy, PoolClassifier(probs_NKC), len(probs_NKC))


def greedy_coreset(inputs):
    """Use GreedyCoreset with Euclidean distances, starting from the labelled items."""
    n, labeled = len(inputs["features"]), len(inputs["labeled_features"])
    # It confuses rows of the pool and of the embeddings unless the pool comes first.
    embeddings = np.concatenate([inputs["features"], inputs["labeled_features"]])
    rows = np.arange(n + labeled)

    def run(budget, seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its default changed in 1.2
            strategy = GreedyCoreset(distance_metric="euclidean", normalize=False)
        return strategy.query(
            None,
            rows,
            rows[:n],
            rows[n:],
            np.zeros(labeled, dtype=np.int64),
            n=budget,
            embeddings=embeddings,
        )

    return run


METHODS = {
    "RandomSampling": on_probs(RandomSampling),
    "PredictionEntropy": on_probs(PredictionEntropy),
    "BreakingTies": on_probs(BreakingTies),
    "LeastConfidence": on_probs(LeastConfidence),
    "BALD": bald,
    "GreedyCoreset": greedy_coreset,
}
