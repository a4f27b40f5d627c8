"""What the suite measures: strategies with their options, and what each is given."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sabal.api import select
from sabal.selection import Selection

PER_PICK = ", a pass per pick"
"""What the label of a method ends in that reads the whole pool for every pick."""

SABAL = ("sabal-greedy", "sabal", "sabal-iht")

GROWING = (*SABAL, "badge")

_ALL = ("features", "probs", "label_probs")


@dataclass(frozen=True)
class Method:
    """A strategy with options.

    given: the arrays that it gets. read: those of them that a pass over the pool reads.
    """

    label: str
    strategy: str
    given: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    read: tuple[str, ...] = ()

    def arrays(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """What it gets out of `inputs`."""
        return {name: inputs[name] for name in self.given}

    def select(self, arrays: dict[str, Any], budget: int, seed: int) -> Selection:
        """The selection, as a user calls for it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return select(
                budget, strategy=self.strategy, random_state=seed, **arrays, **self.options
            )


METHODS = {
    method.label: method
    for method in (
        Method("sabal-greedy", "sabal-greedy", _ALL, read=_ALL),
        Method("sabal", "sabal", _ALL, read=("features",)),
        Method("sabal-iht", "sabal-iht", _ALL, read=_ALL),
        Method("badge", "badge", ("features", "probs")),
        Method("kcenter", "kcenter", ("features",)),
        Method("entropy", "entropy", ("probs",)),
        Method("random", "random", ("probs",)),
        # One draw a pass: BADGE as printed, its gradients kept as factors.
        Method(f"badge{PER_PICK}", "badge", ("features", "probs"), {"refresh": 1}),
        Method(f"sabal-greedy{PER_PICK}", "sabal-greedy", _ALL, {"refresh": 1}),
        Method(f"sabal{PER_PICK}", "sabal", _ALL, {"refresh": 1}),
    )
}


def evidence_of(selection: Selection) -> dict[str, Any]:
    """What a selection says of itself that the suite keeps."""
    evidence = selection.evidence
    return {
        "passes": evidence.get("passes"),
        "objective": evidence.get("objective"),
        "random_objective": evidence.get("random_batch", {}).get("objective"),
    }


def bytes_of(arrays: Mapping[str, np.ndarray], names: tuple[str, ...]) -> int:
    """What some of the arrays take."""
    return sum(arrays[name].nbytes for name in names)
