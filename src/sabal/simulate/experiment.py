"""Experiments: everything that determines their results, as plain data."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from sabal.core.checks import check_whole
from sabal.errors import InputError, UnknownNameError, did_you_mean
from sabal.learners.estimator_learner import ESTIMATORS
from sabal.learners.learner import Learner
from sabal.learners.network_recipes import RECIPES, NetworkRecipe, recipe_of
from sabal.loop import Plan
from sabal.strategies import make_strategy

MODELS = (*ESTIMATORS, *RECIPES)  # scikit-learn estimators, and networks by their recipes
SPLIT_SEED = 20220711  # draws the held-out items and the pool, in every run alike
FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=-]*")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A comparison of strategies: everything that determines its result, and nothing else.

    `strategies` are names, or labels of your own: the option "strategy" of a label names the
    strategy it stands for, so that one strategy can occur twice with different `options`. `recipe`
    changes the recipe of a network. `validation` training items are held out for the temperature of
    networks and for early stopping, and `pool` others (all if None) are chosen from; both draws are
    the same for every seed and strategy. For the other fields see `sabal.loop.Plan`, `MODELS` and
    `sabal.simulate.datasets.catalog.load`.
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
            if not FOLDER_NAME.fullmatch(label):
                raise InputError(
                    "strategies whose labels can name a folder (letters, digits and . _ + = -)",
                    repr(label),
                    "rename it",
                )
            make_strategy(*self.strategy_of(label))
        check_whole(self.validation, "validation", minimum=0)
        if self.pool is not None:
            check_whole(self.pool, "pool")
        self._check_model()
        self.plan(self.strategies[0], 0)

    def _check_model(self) -> None:
        if self.model not in MODELS:
            raise UnknownNameError(
                f"a model out of {', '.join(MODELS)}",
                repr(self.model),
                did_you_mean(self.model, MODELS),
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

    def network_recipe(self) -> NetworkRecipe | None:
        """Return the complete recipe of the network; None for an estimator."""
        return recipe_of(self.model, self.recipe) if self.model in RECIPES else None

    def strategy_of(self, label: str) -> tuple[str, dict[str, Any]]:
        """Return the registered strategy that a label stands for, and its options."""
        options = dict(self.options.get(label, {}))
        return options.pop("strategy", label), options

    def plan(self, label: str, seed: int) -> Plan:
        """Return the plan of one run."""
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
        """Return the configuration of the run folder: all fields, and the whole recipe."""
        recipe = self.network_recipe()
        return {**asdict(self), "recipe": {} if recipe is None else recipe.record()}

    def check_feasible(self, learner: Learner) -> None:
        """Raise an InputError for what would only fail later, perhaps after hours of training."""
        self.plan(self.strategies[0], 0).check_pool(learner.size)
        for label in self.strategies:
            name, options = self.strategy_of(label)
            for need in make_strategy(name, options).needs:
                if not set(need.split("|")) & set(learner.gives):
                    posterior = "choose a model with a posterior, such as mlp-variational, or "
                    raise InputError(
                        f"a model that gives {need.replace('|', ' or ')} for the strategy {name!r}",
                        f"{self.model!r}, which does not",
                        f"{posterior if 'log_probs' in need else ''}leave the strategy out",
                    )

    def split(self, items: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw the rows of the pool and of the validation split from a training set of `items`."""
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
