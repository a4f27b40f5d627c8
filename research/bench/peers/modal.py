"""modAL (https://modal-python.readthedocs.io): ActiveLearner with its uncertainty strategies."""

# mypy: ignore-errors
# The packages live in another environment.

from modAL.models import ActiveLearner
from modAL.uncertainty import entropy_sampling, margin_sampling, uncertainty_sampling

PACKAGE = "modAL-python"


class ModalEstimator:
    """An estimator with precomputed predictions for the pool."""

    def __init__(self, probs):
        self.probs = probs

    def predict_proba(self, X):
        """Return probabilities (items, classes)."""
        return self.probs


def strategy(query_strategy):
    """Use an ActiveLearner that queries by `query_strategy`."""

    def prepare(inputs):
        X = inputs["features"]
        learner = ActiveLearner(ModalEstimator(inputs["probs"]), query_strategy=query_strategy)
        return lambda budget, seed: learner.query(X, n_instances=budget)[0]

    return prepare


METHODS = {
    "entropy_sampling": strategy(entropy_sampling),
    "margin_sampling": strategy(margin_sampling),
    "uncertainty_sampling": strategy(uncertainty_sampling),
}
