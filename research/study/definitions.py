"""Tasks and configurations of the study, and the digest that identifies a run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from research.study.data_variants import VARIANTS
from research.study.query_learners import QUERY_LEARNERS
from sabal.core.checks import check_choice, check_whole
from sabal.learners.network_recipes import RECIPES, recipe_of
from sabal.simulate.experiment import Experiment
from sabal.strategies import make_strategy

HARNESS = 2
"""Version of the harness, raised by hand when the same definitions give other results.

For instance when the default of `sabal`, a solver, a learner or a random draw changes.
"""

RECORDED_DEFAULTS: dict[str, dict[str, Any]] = {
    "sabal": {
        "atoms": "auto",
        "alpha": 1.0,
        "beta": 1.0,
        "scale": "free",
        "bias": True,
        "refit": False,
        "score": "optimal-step",
        "step": 1.0,
        "refresh": "auto",
    },
    "sabal-greedy": {"score": "optimal-step", "refresh": "auto"},
}
"""Options of a strategy when the recorded runs were made, by the strategy's name at that time.

Digests contain them, so that runs remain valid when options of no effect leave a strategy.
"""

DIAGNOSTIC = ("honeypot", "diverging-sine")
FIRST = ("random", "per-class")
ROLES = ("baseline", "paper", "sabal", "candidate", "oracle")
FAMILIES = {
    "tabular": "tables with a forest, boosting or a scaled linear model",
    "tfidf": "texts by TF-IDF with a linear model",
    "frozen": "fixed features with a linear model",
    "networks": "networks trained from scratch",
    "diagnostic": "made-up data that show one weakness each",
}
"""Families of tasks, in the order in which they are run: the quick ones first."""

DIGEST_BYTES = 5


@dataclass(frozen=True, kw_only=True)
class StudyTask:
    """A data set, a learner and the growth of its labels.

    Parameters
    ----------
    name, dataset : str
        Name of the task and of its data set.
    model, recipe, validation
        As in `Experiment`; or a model of `QUERY_LEARNERS`, which has no other settings.
    initial, batch, rounds : int
        Initial labels, labels added in each round, and number of rounds.
    first : {"random", "per-class"}
        Whether the initial labels are drawn at random or equally many from every class.
    variant : str
        The change made to the training set, see `data_variants`.
    pool, test : int or None
        Number of items drawn by the seed of the run; None for all.
    rotate : bool
        Whether features are rotated to random axes first. A learner that standardises principal
        components would otherwise give the last as much weight as the first.
    cheap : bool
        Whether slow strategies are run on the task as well.
    """

    name: str
    dataset: str
    model: str
    initial: int
    batch: int
    rounds: int
    recipe: dict[str, Any] = field(default_factory=dict)
    first: str = "random"
    variant: str = "plain"
    pool: int | None = None
    test: int | None = None
    rotate: bool = False
    validation: int = 0
    cheap: bool = False

    def __hash__(self) -> int:
        return hash(self.name)

    def __post_init__(self) -> None:
        check_choice(self.first, "first", FIRST)
        check_choice(self.variant, "variant", tuple(VARIANTS))
        for name in ("pool", "test"):
            if getattr(self, name) is not None:
                check_whole(getattr(self, name), name)

    @property
    def labels(self) -> list[int]:
        """The number of labels after every round."""
        return [self.initial + self.batch * number for number in range(self.rounds + 1)]

    @property
    def posterior(self) -> bool:
        """Whether the learner has a posterior."""
        return self.model in RECIPES and recipe_of(self.model, self.recipe).samples > 0

    @property
    def by_query(self) -> bool:
        """Whether every batch is chosen by `sabal.query` with a scikit-learn classifier."""
        return self.model in QUERY_LEARNERS

    @property
    def family(self) -> str:
        """The family of the task, out of `FAMILIES`; it is not part of the digest."""
        if self.dataset in DIAGNOSTIC:
            return "diagnostic"
        if self.by_query:
            return QUERY_LEARNERS[self.model].family
        return "networks" if self.model in RECIPES else "frozen"

    def definition(self) -> dict[str, Any]:
        """Return everything that determines a result, with all settings of the learner."""
        recipe: dict[str, Any] = {}
        if self.model in RECIPES:
            recipe = recipe_of(self.model, self.recipe).record()
        elif self.by_query:
            recipe = QUERY_LEARNERS[self.model].definition()
        fields = {k: v for k, v in asdict(self).items() if k not in ("name", "cheap")}
        return {**fields, "recipe": recipe}


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A strategy with options, under a name.

    Parameters
    ----------
    name, strategy : str
        Name of the configuration and of its strategy.
    role : {"baseline", "paper", "sabal", "candidate", "oracle"}
        A known method, the paper's method, the default of Sabal, a candidate for that default, or
        an upper bound that knows the labels.
    options : dict
        Options of the strategy.
    weighted : bool
        Whether the weights of a batch are used in training.
    max_batch : int or None
        The configuration is not run on tasks with larger batches.
    cheap_only : bool
        Whether it is run on cheap tasks only.
    recorded_strategy : str or None
        The strategy's name in the digest of recorded runs, where it was another.
    recorded_options : dict
        Options in that digest that differ from today's; None leaves an option out.
    """

    name: str
    strategy: str
    role: str
    options: dict[str, Any] = field(default_factory=dict)
    weighted: bool = False
    max_batch: int | None = None
    cheap_only: bool = False
    recorded_strategy: str | None = None
    recorded_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice(self.role, "role", ROLES)
        make_strategy(self.strategy, self.options)

    @property
    def needs_posterior(self) -> bool:
        """Whether the strategy requires posterior samples."""
        return "log_probs" in make_strategy(self.strategy, self.options).needs

    @property
    def applies_everywhere(self) -> bool:
        """Whether it is run on every task."""
        return not self.cheap_only and self.max_batch is None and not self.needs_posterior

    def applies_to(self, task: StudyTask) -> bool:
        """Return whether it is run on the task."""
        small = self.max_batch is None or task.batch <= self.max_batch
        supported = task.posterior or not self.needs_posterior
        if task.by_query:
            # Classifiers of `sabal.query` are trained without the weights of a batch.
            supported = supported and not self.weighted
        return small and supported and (task.cheap or not self.cheap_only)

    def definition(self) -> dict[str, Any]:
        """Return everything that determines a result, under the names of the recorded runs.

        The options include the current defaults of the strategy. Those that are None are left out:
        a new option that is off by default changes no result.
        """
        made: Any = make_strategy(self.strategy, self.options)
        strategy = self.recorded_strategy or self.strategy
        options = {
            **RECORDED_DEFAULTS.get(strategy, {}),
            **{name: value for name, value in asdict(made).items() if value is not None},
            **self.recorded_options,
        }
        given = {name: value for name, value in options.items() if value is not None}
        return {"strategy": strategy, "options": given, "weighted": self.weighted}


@dataclass(frozen=True, kw_only=True)
class OracleConfiguration(Configuration):
    """A greedy choice that knows all labels and the test set: an upper bound for every strategy.

    Parameters
    ----------
    tries : int
        Number of candidates for every part of a batch.
    parts : int
        Number of parts that a batch is built from, one after the other.
    """

    tries: int = 20
    parts: int = 5

    def __post_init__(self) -> None:
        check_choice(self.role, "role", ("oracle",))

    @property
    def needs_posterior(self) -> bool:
        """Whether the strategy requires posterior samples."""
        return False

    @property
    def applies_everywhere(self) -> bool:
        """Whether it is run on every task."""
        return False

    def applies_to(self, task: StudyTask) -> bool:
        """Return whether it is run on the task."""
        return task.by_query

    def definition(self) -> dict[str, Any]:
        """Return everything that determines a result."""
        options = {"tries": self.tries, "parts": self.parts}
        return {"strategy": self.strategy, "options": options, "weighted": False}


def digest_of(task: StudyTask, configuration: Configuration) -> str:
    """Return a hash of everything that determines the result of a run but its seed and data.

    Names of tasks and configurations are not part of it: when a candidate becomes the default, its
    runs remain valid.
    """
    whole = {**task.definition(), **configuration.definition(), "harness": HARNESS}
    text = json.dumps(whole, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()


def experiment_of(task: StudyTask, configuration: Configuration, seed: int) -> Experiment:
    """Return the run of a configuration on a task as an experiment of `sabal simulate`."""
    return Experiment(
        dataset=task.dataset,
        strategies=(configuration.name,),
        seeds=seed + 1,
        initial=task.initial,
        batch=task.batch,
        rounds=task.rounds,
        model=task.model,
        weighted=configuration.weighted,
        options={configuration.name: {"strategy": configuration.strategy, **configuration.options}},
        recipe=task.recipe,
        validation=task.validation,
    )
