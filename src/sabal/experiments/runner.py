"""Running an experiment: every strategy with every seed, side by side, resumable."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sabal.checks import check_whole
from sabal.errors import InputError, UnknownNameError
from sabal.experiments.curves import Point
from sabal.experiments.datasets import Dataset, load
from sabal.experiments.estimators import ESTIMATORS, EstimatorLearner
from sabal.experiments.parallel import side_by_side
from sabal.experiments.recipes import RECIPES, Recipe, recipe_of
from sabal.journal import Journal
from sabal.loop import Learner, Plan, run_rounds
from sabal.oracle import SimulatedOracle
from sabal.selection import Selection
from sabal.strategies import make_strategy

MODELS = (*ESTIMATORS, *RECIPES)
"""What can be trained: scikit-learn estimators, and networks by their recipes."""

SPLIT_SEED = 20220711
"""Decides which items are held out and which are the pool: the same in every run."""

FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=-]*")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What is compared: everything that decides the result, and nothing else.

    strategies: names out of `sabal strategies`, or labels of your own.
    options: options of the strategies, by strategy or label; what a label stands for is its option
        "strategy", so that one strategy can be there twice, with different options.
    model, recipe: what is trained, and changes to the recipe of a network.
    validation: this many training items are held out, for the temperature of networks and for
        early stops.
    pool: choose among this many of the other training items; None for all. Both draws are the same
        for every seed and strategy.
    """

    dataset: str
    strategies: tuple[str, ...]
    seeds: int
    initial: int
    batch: int
    rounds: int
    model: str = "logistic"
    first: str = "random"
    weighted: bool = False
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    data_dir: str | None = None
    recipe: dict[str, Any] = field(default_factory=dict)
    validation: int = 0
    pool: int | None = None

    def __post_init__(self) -> None:
        check_whole(self.seeds, "seeds")
        for label in self.strategies:
            _check_label(label)
            make_strategy(*self.strategy_of(label))
        check_whole(self.validation, "validation", least=0)
        if self.pool is not None:
            check_whole(self.pool, "pool")
        self._check_model()
        self.plan(self.strategies[0], 0)

    def _check_model(self) -> None:
        if self.model not in MODELS:
            raise UnknownNameError(
                f"a model out of {', '.join(MODELS)}", repr(self.model), "pick one of these"
            )
        recipe = self.network_recipe()
        if recipe is None and (self.recipe or self.validation):
            raise InputError(
                f"a network, out of {', '.join(RECIPES)}, to use a recipe or a validation split",
                f"the model {self.model!r}",
                "choose another model, or leave these out",
            )
        if recipe is not None and recipe.patience is not None and not self.validation:
            raise InputError(
                "a validation split to be patient with",
                f"patience={recipe.patience} and validation=0",
                "hold out some items, for instance validation=200",
            )

    def network_recipe(self) -> Recipe | None:
        """The whole recipe of the network; None for an estimator."""
        return recipe_of(self.model, self.recipe) if self.model in RECIPES else None

    def strategy_of(self, label: str) -> tuple[str, dict[str, Any]]:
        """The registered strategy that a label stands for, and its options."""
        options = dict(self.options.get(label, {}))
        return options.pop("strategy", label), options

    def plan(self, label: str, seed: int) -> Plan:
        """The plan of one run."""
        strategy, options = self.strategy_of(label)
        return Plan(
            initial=self.initial,
            batch=self.batch,
            rounds=self.rounds,
            strategy=strategy,
            options=options,
            first=self.first,
            weighted=self.weighted,
            seed=seed,
        )

    def config(self) -> dict[str, Any]:
        """What the run folder is tied to: all fields, with every setting of the recipe."""
        recipe = self.network_recipe()
        return {**asdict(self), "recipe": {} if recipe is None else asdict(recipe)}

    def split(self, items: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the pool and of the validation split, out of a training set of `items`."""
        wanted = self.validation + (self.pool or 1)
        if wanted > items:
            raise InputError(
                f"validation + pool of at most {items}, the size of the training set",
                f"{self.validation} + {self.pool or 'a pool of some items'}",
                "ask for fewer",
            )
        drawn = np.random.default_rng(SPLIT_SEED).permutation(items)
        last = items if self.pool is None else wanted
        return np.sort(drawn[self.validation : last]), np.sort(drawn[: self.validation])


def _check_label(label: str) -> None:
    if not FOLDER_NAME.fullmatch(label):
        raise InputError(
            "strategies whose labels can name a folder (letters, digits and . _ + = -)",
            repr(label),
            "rename it",
        )


def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    jobs: int = 1,
    on_round: Callable[[Point], None] = lambda point: None,
) -> list[Point]:
    """Every run of the experiment; what `folder` holds already is read, not repeated.

    on_round: called with every round when it is done, whoever did it.
    """
    check_whole(jobs, "jobs")
    _bind(experiment, folder)
    if jobs > 1:
        runs = [partial(_run, experiment, folder, *run) for run in _runs(experiment)]
        return side_by_side(runs, jobs, on_round)
    points: list[Point] = []
    dataset = load(experiment.dataset, data_dir=experiment.data_dir)
    for label, seed in _runs(experiment):
        for point in run_points(experiment, dataset, folder, label, seed):
            points.append(point)
            on_round(point)
    return points


def _run(experiment: Experiment, folder: Path, label: str, seed: int) -> Iterator[Point]:
    """One run in a process of its own, which has to load the data first."""
    dataset = load(experiment.dataset, data_dir=experiment.data_dir)
    yield from run_points(experiment, dataset, folder, label, seed)


def _runs(experiment: Experiment) -> list[tuple[str, int]]:
    return [(label, seed) for seed in range(experiment.seeds) for label in experiment.strategies]


def rounds_done(experiment: Experiment, folder: Path) -> int:
    """How many rounds of the experiment `folder` holds already."""
    journals = [Journal(run_folder(folder, *run)) for run in _runs(experiment)]
    numbers = range(experiment.rounds + 1)
    return sum(journal.done(number) is not None for journal in journals for number in numbers)


def _bind(experiment: Experiment, folder: Path) -> None:
    """Tie the folder to the experiment, or see that it is tied to this one."""
    config, journal = experiment.config(), Journal(folder)
    if (folder / "config.json").exists():
        # A folder from before a field existed was begun with what is now the field's default.
        begun = journal.config()
        later = [each for each in ("recipe", "validation", "pool") if each not in begun]
        plain = [each for each in later if not getattr(experiment, each)]
        config = {name: value for name, value in config.items() if name not in plain}
    journal.bind(config, may_change=("strategies", "seeds", "data_dir"))


def run_points(
    experiment: Experiment, dataset: Dataset, folder: Path, strategy: str, seed: int
) -> Iterator[Point]:
    """The rounds of one run as points of its curve."""
    pool, held_out = experiment.split(len(dataset.x_train))
    learner = learner_of(experiment, dataset, pool, held_out)
    journal = Journal(run_folder(folder, strategy, seed))
    oracle = SimulatedOracle(dataset.y_train[pool])
    for each in run_rounds(learner, oracle, experiment.plan(strategy, seed), journal):
        yield Point(
            strategy=strategy,
            seed=seed,
            round=each.number,
            labels=each.labels,
            accuracy=each.metrics["accuracy"],
            select_seconds=each.select_seconds,
            select_mb=each.select_mb,
        )


def run_folder(folder: Path, strategy: str, seed: int) -> Path:
    """Where the journal of one run is."""
    return folder / "runs" / strategy / f"seed-{seed:03d}"


def learner_of(
    experiment: Experiment, dataset: Dataset, pool: np.ndarray, held_out: np.ndarray
) -> Learner:
    """The model of the experiment over the rows `pool`, with `held_out` for validation."""
    test = dataset.x_test, dataset.y_test, dataset.classes
    recipe = experiment.network_recipe()
    if recipe is None:
        return EstimatorLearner(ESTIMATORS[experiment.model], dataset.x_train[pool], *test)
    # Only those who train networks need torch.
    from sabal.experiments.networks import NetworkLearner

    validation = (dataset.x_train[held_out], dataset.y_train[held_out]) if held_out.size else None
    return NetworkLearner(recipe, dataset.x_train[pool], *test, validation=validation)


def selections_of(experiment: Experiment, folder: Path) -> list[dict[str, Any]]:
    """What was chosen in every round of every run: a row of selections.parquet for each item.

    Items are rows of the training set. What was measured (seconds, memory) is left out: it is never
    the same twice.
    """
    rows = []
    row_of_item = _training_rows(experiment)
    for label in experiment.strategies:
        for seed in range(experiment.seeds):
            journal = Journal(run_folder(folder, label, seed))
            for number in range(experiment.rounds + 1):
                batch = journal.asked(number)
                if batch is None:
                    break
                rows += _selection_rows(label, seed, number, batch, row_of_item)
    return rows


def _selection_rows(
    label: str, seed: int, number: int, batch: Selection, row_of_item: Callable[[int], int]
) -> list[dict[str, Any]]:
    evidence = {k: v for k, v in batch.evidence.items() if k not in ("seconds", "megabytes")}
    return [
        {
            "strategy": label,
            "seed": seed,
            "round": number,
            "rank": k + 1,
            "item": row_of_item(item),
            "weight": float(batch.weights[k]),
            "score": float(batch.scores[k]),
            "evidence": json.dumps(evidence) if k == 0 else None,
        }
        for k, item in enumerate(batch.indices.tolist())
    ]


def _training_rows(experiment: Experiment) -> Callable[[int], int]:
    """From items of the pool to rows of the training set."""
    if experiment.pool is None and not experiment.validation:
        return lambda item: item
    dataset = load(experiment.dataset, data_dir=experiment.data_dir)
    pool, _ = experiment.split(len(dataset.x_train))
    return lambda item: int(pool[item])
