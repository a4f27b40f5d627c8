"""Table 3: the time of the first query, with and without the forward pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from research.reproduce.comparison_tables import StrategyComparison
from research.reproduce.preset import MeanAndStd
from sabal.api import choose
from sabal.core.files import make_folder, write_text_whole
from sabal.errors import FileError, InputError
from sabal.loop import Journal, Plan, SimulatedOracle, run_rounds
from sabal.simulate.datasets.catalog import Dataset, load
from sabal.simulate.experiment import Experiment
from sabal.simulate.runner import make_learner

KEYS = ("seconds", "selection_seconds")


def time_first_query(
    experiment: Experiment,
    paper: dict[str, MeanAndStd],
    folder: Path,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[list[StrategyComparison], float]:
    """Time the first query of each strategy.

    The strategies of a seed share a trained network. Times that `folder` already holds are read.

    Returns
    -------
    list of StrategyComparison
        A row for each strategy.
    float
        Total seconds of training and selection.
    """
    Journal(folder).bind(experiment.config(), may_change=("strategies", "seeds", "data_dir"))
    dataset = load(experiment.dataset, data_dir=experiment.data_dir)
    times: dict[str, list[dict[str, Any]]] = {label: [] for label in experiment.strategies}
    work = 0.0
    for seed in range(experiment.seeds):
        first = _FirstQuery(experiment, dataset, folder, seed)
        work += first.train_seconds
        for label in experiment.strategies:
            path = folder / "times" / label / f"seed-{seed:03d}.json"
            if not path.exists():
                measured = first.measure(label)
                make_folder(path.parent)
                write_text_whole(path, json.dumps(measured))
                say(f"seed {seed}, {label}: {measured['seconds']:.3f} s")
            times[label].append(read_times(path))
    work += sum(each[key] for measured in times.values() for each in measured for key in KEYS)
    rows = [
        StrategyComparison(
            strategy=label,
            seeds=experiment.seeds,
            ours=_figure(measured, "seconds"),
            paper=paper.get(label),
            selection=_figure(measured, "selection_seconds"),
        )
        for label, measured in times.items()
    ]
    return rows, work


class _FirstQuery:
    """A network trained on the initial labels, and the unlabelled items."""

    def __init__(self, experiment: Experiment, dataset: Dataset, folder: Path, seed: int) -> None:
        if experiment.network_recipe() is None:
            raise InputError(
                "a network, whose forward pass is timed", repr(experiment.model), "choose a network"
            )
        self.experiment, self.seed = experiment, seed
        pool, held_out = experiment.split(len(dataset.x_train))
        labels = dataset.y_train[pool]
        self.learner = make_learner(experiment, dataset, pool, held_out)
        journal = Journal(folder / "initial" / f"seed-{seed:03d}")
        plan = Plan(initial=experiment.initial, batch=experiment.batch, rounds=0, seed=seed)
        test = dataset.x_test, dataset.y_test
        (start,) = run_rounds(self.learner, SimulatedOracle(labels), plan, journal, test=test)
        self.train_seconds = start.train_seconds
        self.labeled = start.batch.indices
        # Also when it was just trained, so that every start uses the stored model.
        self.learner.load(journal.model_path(0), self.labeled, labels[self.labeled], None)
        self.free = np.setdiff1d(np.arange(self.learner.size), self.labeled)

    def measure(self, label: str) -> dict[str, Any]:
        """Select twice: first with the forward pass, then with all outputs available."""
        strategy, options = self.experiment.strategy_of(label)
        outputs = self.learner.outputs(self.free, self.labeled, self.seed)
        whole, alone = (
            choose(outputs, self.experiment.batch, strategy, self.seed, options).evidence
            for _ in range(2)
        )
        return {
            "items": whole["items"],
            "budget": whole["budget"],
            "seconds": whole["seconds"],
            "selection_seconds": alone["seconds"],
        }


def read_times(path: Path) -> dict[str, Any]:
    """Read the times of one strategy with one seed."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return {**record, **{key: float(record[key]) for key in KEYS}}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise FileError(
            f"measured times in {path}", str(error), "delete the file to have them measured again"
        ) from None


def _figure(measured: list[dict[str, Any]], key: str) -> MeanAndStd:
    values = np.array([each[key] for each in measured])
    return MeanAndStd(float(values.mean()), float(values.std(ddof=1)) if values.size > 1 else 0.0)
