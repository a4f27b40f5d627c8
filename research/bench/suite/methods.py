"""What the suite measures: strategies with their options, and what each is given."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from sabal.api import select
from sabal.pools.outputs import Outputs
from sabal.selection import Selection
from sabal.sparse.formulate import Draws, Formulation, LocalPool
from sabal.sparse.items import Items, LocalItems
from sabal.strategies import make_strategy

PER_PICK = ", a pass per pick"
"""What the label of a method ends in that reads the whole pool for every pick."""

KERNEL = "sabal, kernel atoms"

SABAL = ("sabal-greedy", "sabal", "sabal-iht")

SOLVED = ("sabal-greedy", KERNEL, "sabal-iht")
"""Those that solve a Problem, in passes over the pool."""

PICKED = ("sabal-greedy", KERNEL)
"""Those of them that pick item by item, and can be compared with a pass per pick."""

GROWING = (*SABAL, "badge")

_ALL = ("features", "probs", "label_probs")


@dataclass(frozen=True)
class Method:
    """A strategy with options.

    given: the arrays that it gets. read: those of them that a pass over the pool reads.
    stored: whether all atoms are computed once and kept, so that many passes can be afforded.
    """

    label: str
    strategy: str
    given: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    read: tuple[str, ...] = ()
    stored: bool = False

    def arrays(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """What it gets out of `inputs`."""
        return {name: inputs[name] for name in self.given}

    def select(self, arrays: dict[str, Any], budget: int, seed: int) -> Selection:
        """The selection, as a user calls for it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.stored:
                strategy: Any = make_strategy(self.strategy, dict(self.options))
                pool = StoredAtoms(Outputs(**arrays).check())
                return strategy.select_from(pool, budget, np.random.default_rng(seed))
            return select(
                budget, strategy=self.strategy, random_state=seed, **arrays, **self.options
            )


class StoredAtoms(LocalPool):
    """A pool whose atoms are in memory, all of them."""

    def items(self, formulation: Formulation, draws: Draws) -> Items:
        """The same items with atoms that are read instead of computed."""
        computed = super().items(formulation, draws)
        everyone = np.arange(computed.size)
        return LocalItems(
            computed.gather(everyone), computed.known(everyone)[0], input_bytes=computed.input_bytes
        )


METHODS = {
    method.label: method
    for method in (
        Method("sabal-greedy", "sabal-greedy", _ALL, read=_ALL),
        Method("sabal", "sabal", _ALL),
        Method(KERNEL, "sabal", _ALL, {"atoms": "kernel"}, read=("features",)),
        Method("sabal-iht", "sabal-iht", _ALL, read=_ALL),
        Method("badge", "badge", ("features", "probs")),
        Method("kcenter", "kcenter", ("features",)),
        Method("entropy", "entropy", ("probs",)),
        Method("random", "random", ("probs",)),
        # One draw a pass: BADGE as printed, its gradients kept as factors.
        Method(f"badge{PER_PICK}", "badge", ("features", "probs"), {"refresh": 1}),
        Method(f"sabal-greedy{PER_PICK}", "sabal-greedy", _ALL, {"refresh": 1}),
        # A thousand passes that compute the atoms anew would take most of an hour.
        Method(
            f"{KERNEL}{PER_PICK}", "sabal", _ALL, {"atoms": "kernel", "refresh": 1}, stored=True
        ),
    )
}


def definitions() -> dict[str, Any]:
    """What the label of each method stands for."""
    return {label: asdict(method) for label, method in METHODS.items()}


def evidence_of(selection: Selection) -> dict[str, Any]:
    """What a selection says of itself that the suite keeps."""
    evidence = selection.evidence
    return {
        "atoms": evidence.get("atoms"),
        "passes": evidence.get("passes"),
        "objective": evidence.get("objective"),
        "random_objective": evidence.get("random_batch", {}).get("objective"),
    }


def bytes_of(arrays: Mapping[str, np.ndarray], names: tuple[str, ...]) -> int:
    """What some of the arrays take."""
    return sum(arrays[name].nbytes for name in names)
