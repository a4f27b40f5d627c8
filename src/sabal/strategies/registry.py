"""Strategies by name: built-in ones, and those of installed packages.

A package adds a strategy with an entry point in the group `sabal.strategies` whose value is a
Strategy class.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Literal

import numpy as np

from sabal.errors import UnknownNameError, did_you_mean, shown
from sabal.predictions import ARRAYS
from sabal.strategies.badge import Badge
from sabal.strategies.bait import Bait
from sabal.strategies.bald import Bald
from sabal.strategies.base import Strategy
from sabal.strategies.batchbald import BatchBald
from sabal.strategies.bayesian_coreset import BayesianCoreset
from sabal.strategies.cluster_margin import ClusterMargin
from sabal.strategies.coverage import Sabal
from sabal.strategies.drop_query import DropQuery
from sabal.strategies.kcenter import KCenter
from sabal.strategies.max_herding import MaxHerding
from sabal.strategies.power_bald import PowerBald
from sabal.strategies.prob_cover import ProbCover
from sabal.strategies.random_sampling import Random
from sabal.strategies.sparse_approximation import SabalGreedy, SabalIHT, SabalKernel
from sabal.strategies.typiclust import TypiClust
from sabal.strategies.uncertainty_herding import UncertaintyHerding
from sabal.strategies.uncertainty_sampling import Entropy, LeastConfidence, Margin

BUILT_IN: tuple[type[Strategy], ...] = (
    Sabal,
    SabalGreedy,
    SabalIHT,
    SabalKernel,
    Random,
    Entropy,
    Margin,
    LeastConfidence,
    Bald,
    PowerBald,
    BatchBald,
    BayesianCoreset,
    KCenter,
    Badge,
    Bait,
    TypiClust,
    ClusterMargin,
    UncertaintyHerding,
    MaxHerding,
    ProbCover,
    DropQuery,
)
StrategyName = Literal[
    "sabal", "sabal-greedy", "sabal-iht", "sabal-kernel", "random", "entropy", "margin",
    "least-confidence", "bald", "power-bald", "batchbald", "bayesian-coreset", "kcenter", "badge",
    "bait", "typiclust", "cluster-margin", "uncertainty-herding", "max-herding", "prob-cover",
    "drop-query",
]  # fmt: skip
"""The names of `BUILT_IN`, so that editors complete them; plugins have others."""

GROUP = "sabal.strategies"
MEANT = {
    "seed": "random_state",
    "n": "budget",
    "k": "budget",
    "batch_size": "budget",
    "n_instances": "budget",
    "method": "strategy",
    "query_strategy": "strategy",
    "X_labelled": "X_labeled",
    "y_labelled": "y_labeled",
    "labelled_features": "labeled_features",
    "X": "features",
    "embeddings": "features",
    "probabilities": "probs",
    "uncertainties": "scores",
}
"""Arguments under other names: of other packages, or in British spelling."""

INPUTS = ("features", *ARRAYS, "scores", "loss", "labeled_features", "ids", "random_state")
"""Arguments of `select` other than options, to suggest for misspelt options."""


@cache
def strategies() -> dict[str, type[Strategy]]:
    """Return every strategy by name; built-in strategies cannot be replaced."""
    found = {cls.name: cls for cls in BUILT_IN}
    for point in entry_points(group=GROUP):
        if point.name in found:
            raise UnknownNameError(
                "plugins with names of their own",
                f"a second strategy named {point.name!r} ({point.value})",
                "uninstall or rename that plugin",
            )
        found[point.name] = _adapted(point.load())
    return found


def _adapted(cls: type[Any]) -> type[Strategy]:
    """Return a strategy of another package, with defaults for optional members."""
    if issubclass(cls, Strategy):
        return cls
    return type(cls.__name__, (cls, Strategy), {"__doc__": cls.__doc__})


def make_strategy(name: str | Strategy, options: dict[str, Any]) -> Strategy:
    """Return the strategy called `name` with `options`, or a strategy as it is."""
    if isinstance(name, Strategy):
        if options:
            raise UnknownNameError(
                "options in the strategy itself",
                f"{type(name).__name__}(...) and {', '.join(options)}",
                "set them where it is made",
            )
        return name
    known = strategies()
    if not isinstance(name, str) or name not in known:
        raise UnknownNameError(
            f"a strategy out of {', '.join(known)}",
            shown(name),
            did_you_mean(name, list(known))
            if isinstance(name, str)
            else "pick one of these, or derive your own from sabal.Strategy",
        )
    accepted = option_names(known[name])
    for option in options:
        if option not in accepted:
            takes = ", ".join(accepted) or "it takes none"
            raise UnknownNameError(
                f"options of {name!r} ({takes})",
                repr(option),
                _instead_of(option, accepted),
            )
    return known[name](**options)


def _instead_of(option: str, accepted: list[str]) -> str:
    """Return the advice for an option that a strategy does not have."""
    if option in MEANT:
        return f"did you mean {MEANT[option]!r}?"
    if option in INPUTS:
        return "it is an argument of sabal.select, which takes arrays"
    owners = [name for name, cls in strategies().items() if option in option_names(cls)]
    if owners:
        belongs = f"it is an option of {', '.join(owners)}"
        return f"{belongs}: choose one of these strategies, or leave it out"
    otherwise = "pick one of these" if accepted else "leave it out"
    others = [each for cls in strategies().values() for each in option_names(cls)]
    return did_you_mean(option, [*accepted, *INPUTS], did_you_mean(option, others, otherwise))


def plain_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return options with NumPy numbers converted to Python numbers, for JSON."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in options.items()
    }


def option_names(strategy: type[Strategy]) -> list[str]:
    """Return the options that a strategy takes: its dataclass fields."""
    return [f.name for f in dataclasses.fields(strategy)]  # type: ignore[arg-type]
