"""Table 3: the time of the first query, with and without the forward pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from sabal.api import choose
from sabal.errors import FileError, InputError
from sabal.loop import Journal
from sabal.pools import ArrayPool
from sabal.selection import Selection
from sabal.simulate.datasets.catalog import Dataset
from sabal.simulate.experiment import Experiment
from sabal.simulate.runner import make_learner


def _first_batch(first: Journal) -> Selection:
    batch = first.asked(0)
    if batch is None:
        raise FileError(f"a first batch in {first.folder}", "none", "train the first model again")
    return batch


def first_outputs(experiment: Experiment, dataset: Dataset, first: Journal, seed: int) -> ArrayPool:
    """Return what the first model says of the unlabelled items, each array on first use."""
    pool, held_out = experiment.split(len(dataset.x_train))
    learner = make_learner(experiment, dataset, pool, held_out)
    labeled = _first_batch(first).indices
    learner.load(first.model_path(0), labeled, dataset.y_train[pool][labeled], None)
    free = np.setdiff1d(np.arange(learner.size), labeled)
    return learner.outputs(free, labeled, seed)


def time_first_query(
    experiment: Experiment, dataset: Dataset, first: Journal, row: str, seed: int
) -> dict[str, Any]:
    """Time the first query of a strategy.

    Parameters
    ----------
    experiment : Experiment
        The model and the size of the batch.
    dataset : Dataset
        The data.
    first : Journal
        The first labels and the model trained on them.
    row : str
        The strategy.
    seed : int
        Determines the random numbers of the selection.

    Returns
    -------
    dict
        `items` to choose from, `seconds` with the forward pass, `selection_seconds` with all
        outputs of the model available, and `train_seconds`, which are none.
    """
    if experiment.network_recipe() is None:
        raise InputError(
            "a network, whose forward pass is timed", repr(experiment.model), "choose a network"
        )
    strategy, options = experiment.strategy_of(row)
    outputs = first_outputs(experiment, dataset, first, seed)
    # The second selection finds all outputs of the model computed.
    whole, alone = (
        choose(outputs, experiment.batch, strategy, seed, options).evidence["seconds"]
        for _ in range(2)
    )
    return {
        "items": outputs.size,
        "seconds": whole,
        "selection_seconds": alone,
        "train_seconds": 0.0,
    }
