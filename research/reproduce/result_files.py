"""The results of the tables: an append-only file of finished runs for each data set.

OUT/TABLE/DATASET/runs.csv has a line for every run, with the options it was made with and a digest
of everything that determines it. A run that a file holds is not repeated, on any machine.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from research.reproduce.preset import Preset
from research.study.csv_lines import read_lines
from sabal.predictions.prediction import Probabilities
from sabal.simulate.curves import Point
from sabal.simulate.experiment import Experiment
from sabal.strategies import make_strategy
from sabal.strategies.coverage import Sabal
from sabal.strategies.sparse_approximation import PaperMethod, SparseApproximation

HARNESS = 1
"""Version of the harness, raised by hand when the same settings give other results."""

RUNS_FILE = "runs.csv"
DIGEST_BYTES = 6

ADDED_OPTIONS: dict[str, Any] = {"uncertainty": "margin"}
"""Options that came into the records later, with the value that earlier runs had.

They are left out of digests at this value, so that earlier runs remain valid.
"""


@dataclass(frozen=True, kw_only=True)
class TableRunRecord:
    """One finished run: a line of runs.csv.

    Attributes
    ----------
    strategy, scale : str
        The row of the table and the scale. They are for readers: the digest identifies a run.
    digest : str
        Hash of everything that determines the result but seed and data, see `digest_of`.
    seed : int
        The seed.
    labels, curve : str
        Number of labels and test accuracy in percent after every round, separated by spaces. Empty
        for the times of Table 3.
    seconds, selection_seconds : float
        Of all selections: with the forward pass; and, for Table 3, with all outputs available.
    train_seconds : float
        Of all trainings but the first, which the strategies of a seed share.
    items : int
        Number of items to choose from in the first round.
    train_items, test_items : int
        Sizes of the copy of the data set at hand.
    data : str
        Fingerprint of the training and test set.
    machine : str
        The processor.
    options : str
        The options of the strategy with all defaults, as JSON.
    """

    strategy: str
    scale: str
    digest: str
    seed: int
    labels: str
    curve: str
    seconds: float
    selection_seconds: float
    train_seconds: float
    items: int
    train_items: int
    test_items: int
    data: str
    machine: str
    options: str

    def points(self) -> list[Point]:
        """Return the learning curve."""
        pairs = zip(self.labels.split(), self.curve.split(), strict=True)
        return [
            Point(self.strategy, self.seed, k, int(labels), float(accuracy) / 100, 0.0)
            for k, (labels, accuracy) in enumerate(pairs)
        ]


def runs_file(out: Path, table: str, dataset: str) -> Path:
    """Return the file of finished runs of a data set."""
    return out / table / dataset / RUNS_FILE


def experiment_of(preset: Preset, data_dir: str | None = None) -> Experiment:
    """Return the experiment that a preset describes."""
    return Experiment(
        dataset=preset.dataset,
        strategies=preset.strategies,
        seeds=preset.seeds,
        initial=preset.initial,
        batch=preset.batch,
        rounds=preset.rounds,
        model=preset.model,
        options=preset.options,
        data_dir=data_dir,
        recipe=preset.recipe,
        validation=preset.validation,
        pool=preset.pool,
    )


def options_of(preset: Preset, row: str) -> dict[str, Any]:
    """Return the options of a row with all defaults; those that are None are left out."""
    strategy, options = experiment_of(preset).strategy_of(row)
    made: Any = make_strategy(strategy, options)
    found = asdict(made)
    if isinstance(made, SparseApproximation):
        # What the solver makes of options that are None.
        found |= asdict(made.solver())  # type: ignore[call-overload]
        found["candidates"] = made.candidates_per_pick()
    if isinstance(made, PaperMethod) and made.scale == "free" and made.uncertainty is None:
        # All presets are classifications.
        found["uncertainty"] = Probabilities.default_uncertainty
    if isinstance(made, Sabal) and made.share is None:
        # A change of the rule for this share must change the digest.
        found["share"] = "b/(b+m)"
    return {name: value for name, value in found.items() if value is not None}


def first_model_digest(preset: Preset) -> str:
    """Return a hash of everything that determines the model before the first selection."""
    return _hash(_first_model(preset))


def digest_of(preset: Preset, row: str, *, timed: bool = False) -> str:
    """Return a hash of everything that determines a run but its seed and data.

    Names of rows and tables are not part of it: a row that another table has too is run once.
    """
    strategy, _ = experiment_of(preset).strategy_of(row)
    options = {
        name: value
        for name, value in options_of(preset, row).items()
        if name not in ADDED_OPTIONS or value != ADDED_OPTIONS[name]
    }
    return _hash(
        {
            **_first_model(preset),
            "batch": preset.batch,
            "rounds": preset.rounds,
            "strategy": strategy,
            "options": options,
            "timed": timed,
        }
    )


def _first_model(preset: Preset) -> dict[str, Any]:
    recipe = experiment_of(preset).network_recipe()
    return {
        "dataset": preset.dataset,
        "model": preset.model,
        "recipe": None if recipe is None else recipe.record(),
        "initial": preset.initial,
        "validation": preset.validation,
        "pool": preset.pool,
        "image": preset.image,
        "test": preset.test,
        "harness": HARNESS,
    }


def _hash(settings: dict[str, Any]) -> str:
    text = json.dumps(settings, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()


Results = dict[str, dict[int, TableRunRecord]]
"""Finished runs by digest, then by seed."""


def read_results(path: Path) -> Results:
    """Read a file of finished runs; none if it does not exist.

    Rows of a table are compared on the same data: if there are runs on several copies of the data
    set, those on the copy with the most runs count. The first of two equal runs counts.
    """
    records, _ = read_lines(path, TableRunRecord)
    return sort_records(records)


def sort_records(records: Iterable[TableRunRecord]) -> Results:
    """Return records by digest and seed, without those of other data."""
    records = list(records)
    copies: dict[str, Counter[str]] = {}
    for record in records:
        copies.setdefault(record.scale, Counter())[record.data] += 1
    found: Results = {}
    for record in records:
        if record.data == copies[record.scale].most_common(1)[0][0]:
            found.setdefault(record.digest, {}).setdefault(record.seed, record)
    return found
