"""Strategies by name: the built-in ones, and those that installed packages add.

A package adds a strategy with an entry point in the group `sabal.strategies` whose value is a
Strategy class.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from sabal.errors import UnknownNameError, did_you_mean, shown
from sabal.pools.outputs import PARTS
from sabal.predictions import LOSSES
from sabal.strategies.bait import Bait
from sabal.strategies.base import Strategy
from sabal.strategies.batchbald import BatchBald
from sabal.strategies.bayesian import Bald, PowerBald
from sabal.strategies.clusters import ClusterMargin, TypiClust
from sabal.strategies.coreset import BayesianCoreset
from sabal.strategies.distances import Badge, KCenter
from sabal.strategies.scores import Entropy, LeastConfidence, Margin
from sabal.strategies.sparse import Sabal, SabalGreedy, SabalIHT
from sabal.strategies.uniform import Random

BUILT_IN: tuple[type[Strategy], ...] = (
    Sabal,
    SabalGreedy,
    SabalIHT,
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
)
GROUP = "sabal.strategies"
INPUTS = (
    *dict.fromkeys((*PARTS, *(part for loss in LOSSES.values() for part in loss.checks))),
    *("loss", "labeled_features", "ids", "random_state"),
)
"""What `select` takes besides options: often what a misspelt option was meant to be."""


@cache
def strategies() -> dict[str, type[Strategy]]:
    """Every strategy that can be asked for, by name; built-in names cannot be taken over."""
    found = {cls.name: cls for cls in BUILT_IN}
    for point in entry_points(group=GROUP):
        if point.name in found:
            raise UnknownNameError(
                "plugins with names of their own",
                f"a second strategy named {point.name!r} ({point.value})",
                "uninstall or rename that plugin",
            )
        found[point.name] = point.load()
    return found


def make_strategy(name: str, options: dict[str, Any]) -> Strategy:
    """The strategy called `name` with `options`."""
    known = strategies()
    if not isinstance(name, str) or name not in known:
        raise UnknownNameError(
            f"a strategy out of {', '.join(known)}",
            shown(name),
            did_you_mean(name, list(known)) if isinstance(name, str) else "pick one of these",
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
    """What to do about an option that a strategy does not have."""
    if option in INPUTS:
        return "it is an argument of sabal.select, which takes arrays"
    otherwise = "pick one of these" if accepted else "leave it out"
    return did_you_mean(option, [*accepted, *INPUTS], otherwise)


def plain_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options with Python's numbers for NumPy's: in float64, and fit for a file of evidence."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in options.items()
    }


def option_names(strategy: type[Strategy]) -> list[str]:
    """The options that a strategy takes: its dataclass fields."""
    return [f.name for f in dataclasses.fields(strategy)]  # type: ignore[arg-type]
