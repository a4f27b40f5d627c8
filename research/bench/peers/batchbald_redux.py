"""batchbald_redux (https://blackhc.github.io/batchbald_redux): BALD and BatchBALD."""

# mypy: ignore-errors
# The packages live in another environment.

import torch
from batchbald_redux.batchbald import get_bald_batch, get_batchbald_batch

PACKAGE = "batchbald-redux"


def bald(inputs):
    """Use get_bald_batch."""
    log_probs_NKC = torch.from_numpy(inputs["log_probs"])
    return lambda budget, seed: get_bald_batch(log_probs_NKC, budget).indices


def batchbald(inputs):
    """Use get_batchbald_batch with joint entropies in double precision, as in its examples."""
    log_probs_NKC = torch.from_numpy(inputs["log_probs"])
    joint_samples = int(inputs["joint_samples"])

    def run(budget, seed):
        torch.manual_seed(seed)
        return get_batchbald_batch(log_probs_NKC, budget, joint_samples, dtype=torch.double).indices

    return run


METHODS = {"get_bald_batch": bald, "get_batchbald_batch": batchbald}
