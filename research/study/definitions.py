"""What a task and a configuration are, what they need of each other, and what tells them apart."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from research.study.variants import VARIANTS
from sabal.core.checks import check_choice, check_whole
from sabal.learners.network_recipes import RECIPES, recipe_of
from sabal.simulate.experiment import Experiment
from sabal.strategies import make_strategy

HARNESS = 2
"""The version of the harness: raised by hand when the same definitions come to other results.

So it has to be when `sabal` takes other atoms by itself, or a solver, a learner or a draw changes.
"""

FIRST = ("random", "per-class")
ROLES = ("baseline", "paper", "sabal", "candidate")
DIGEST_BYTES = 5


@dataclass(frozen=True, kw_only=True)
class Task:
    """A data set and a learner, and how its labels grow.

    model, recipe, validation: as in `Experiment`.
    first: the first labels are drawn at "random", or as many of every class as there are labels
        for ("per-class").
    variant: what is done to the training set, see `variants.py`.
    pool, test: how many items are drawn, by the seed of the run; None for all.
    rotate: whether features are turned to random axes first. Where they are principal components,
        a learner that standardises each would make as much of the last as of the first.
    cheap: whether strategies that take long are run on it too.
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

    def __post_init__(self) -> None:
        check_choice(self.first, "first", FIRST)
        check_choice(self.variant, "variant", tuple(VARIANTS))
        for name in ("pool", "test"):
            if getattr(self, name) is not None:
                check_whole(getattr(self, name), name)

    @property
    def labels(self) -> list[int]:
        """How many labels there are after every round."""
        return [self.initial + self.batch * number for number in range(self.rounds + 1)]

    @property
    def posterior(self) -> bool:
        """Whether the learner has a posterior to ask."""
        return self.model in RECIPES and recipe_of(self.model, self.recipe).samples > 0

    def definition(self) -> dict[str, Any]:
        """All that decides a result, with every setting of the learner."""
        recipe = {}
        if self.model in RECIPES:
            recipe = asdict(recipe_of(self.model, self.recipe))
        told_apart = {k: v for k, v in asdict(self).items() if k not in ("name", "cheap")}
        return {**told_apart, "recipe": recipe}


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A strategy with options, under a name.

    role: a "baseline" that there was before, the "paper"'s method, "sabal" as it is, or a
        "candidate" to become its default.
    weighted: whether the weights of a batch count in training.
    most_batch: not run where batches are larger.
    cheap_only: run on cheap tasks alone.
    """

    name: str
    strategy: str
    role: str
    options: dict[str, Any] = field(default_factory=dict)
    weighted: bool = False
    most_batch: int | None = None
    cheap_only: bool = False

    def __post_init__(self) -> None:
        check_choice(self.role, "role", ROLES)
        make_strategy(self.strategy, self.options)

    @property
    def needs_posterior(self) -> bool:
        """Whether nothing but posterior samples will do."""
        return "log_probs" in make_strategy(self.strategy, self.options).needs

    @property
    def everywhere(self) -> bool:
        """Whether there is no task that it does not suit."""
        return not self.cheap_only and self.most_batch is None and not self.needs_posterior

    def suits(self, task: Task) -> bool:
        """Whether it is run on the task."""
        small = self.most_batch is None or task.batch <= self.most_batch
        asked = task.posterior or not self.needs_posterior
        return small and asked and (task.cheap or not self.cheap_only)

    def definition(self) -> dict[str, Any]:
        """All that decides a result, with the strategy's defaults as they are now.

        What is None is left out: a new option that is off by default changes no result.
        """
        made: Any = make_strategy(self.strategy, self.options)
        options = {name: value for name, value in asdict(made).items() if value is not None}
        return {"strategy": self.strategy, "options": options, "weighted": self.weighted}


def digest_of(task: Task, configuration: Configuration) -> str:
    """Changes with anything that decides the result of a run, but for its seed and its data.

    Names are no part of it: a candidate that becomes the default has its runs already.
    """
    whole = {**task.definition(), **configuration.definition(), "harness": HARNESS}
    text = json.dumps(whole, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()


def experiment_of(task: Task, configuration: Configuration, seed: int) -> Experiment:
    """The run of a configuration on a task, in the terms of `sabal simulate`."""
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
