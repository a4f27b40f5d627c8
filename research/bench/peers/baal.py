"""Baal (https://baal.readthedocs.io): heuristics that rank a pool by its predictions."""

# mypy: ignore-errors
# The packages live in another environment.

import numpy as np
import torch
from baal.active.heuristics import BALD, BatchBALD, Certainty, Entropy, Margin, Random
from baal.active.heuristics.stochastics import PowerSampling

PACKAGE = "baal"


def on_probs(heuristic):
    """Rank by a heuristic over the class probabilities; the batch is the top of the ranking."""

    def prepare(inputs):
        probs_NC = inputs["probs"]
        return lambda budget, seed: heuristic()(probs_NC)[:budget]

    return prepare


def random(inputs):
    """Use Random."""
    probs_NC = inputs["probs"]
    return lambda budget, seed: Random(seed=seed)(probs_NC)[:budget]


def _samples_last(inputs):
    return np.ascontiguousarray(np.exp(inputs["log_probs"]).swapaxes(1, 2))


def bald(inputs):
    """Use BALD over the posterior samples."""
    probs_NCK = _samples_last(inputs)
    return lambda budget, seed: BALD()(probs_NCK)[:budget]


def power_bald(inputs):
    """Use PowerSampling of BALD's scores."""
    probs_NCK = _samples_last(inputs)

    def run(budget, seed):
        np.random.seed(seed)  # noqa: NPY002
        return PowerSampling(BALD(), query_size=budget).get_ranks(probs_NCK)[0]

    return run


def batchbald(inputs):
    """Use BatchBALD with as many draws per posterior sample as give the joint samples."""
    probs_NCK = _samples_last(inputs)
    draws = max(1, int(inputs["joint_samples"]) // probs_NCK.shape[2])

    def run(budget, seed):
        torch.manual_seed(seed)
        ranks, scores = BatchBALD(num_samples=budget, num_draw=draws).get_ranks(probs_NCK)
        chosen = ranks[:budget]
        # It stops when the scores no longer differ, and ranks the remaining items at random.
        scored = int(np.count_nonzero(scores[chosen]))
        return (chosen, f"scored only {scored} of {budget}") if scored < budget else chosen

    return run


METHODS = {
    "Random": random,
    "Entropy": on_probs(Entropy),
    "Margin": on_probs(Margin),
    "Certainty": on_probs(Certainty),
    "BALD": bald,
    "PowerSampling": power_bald,
    "BatchBALD": batchbald,
}
