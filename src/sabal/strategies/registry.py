"""Strategies by name: the built-in ones, and those that installed packages add.

A package adds a strategy with an entry point in the group `sabal.strategies` whose value is a
Strategy class.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from sabal.errors import UnknownNameError, did_you_mean
from sabal.outputs import PARTS
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
INPUTS = (*PARTS, "labeled_features", "ids", "random_state")
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
    if name not in known:
        raise UnknownNameError(
            f"a strategy out of {', '.join(known)}",
            repr(name),
            did_you_mean(str(name), list(known)),
        )
    accepted = option_names(known[name])
    for option in options:
        if option not in accepted:
            takes = ", ".join(accepted) or "it takes none"
            raise UnknownNameError(
                f"options of {name!r} ({takes})",
                repr(option),
                did_you_mean(option, [*accepted, *INPUTS]) if accepted else "leave it out",
            )
    return known[name](**options)


def option_names(strategy: type[Strategy]) -> list[str]:
    """The options that a strategy takes: its dataclass fields."""
    return [f.name for f in dataclasses.fields(strategy)]  # type: ignore[arg-type]
