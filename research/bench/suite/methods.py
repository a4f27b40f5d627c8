"""The methods that the suite measures: strategies with options and inputs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from sabal.api import select
from sabal.pools import ArrayPool
from sabal.selection import Selection
from sabal.sparse.items import LocalItems, PoolItems
from sabal.strategies import make_selection, make_strategy

PER_PICK = ", a pass per pick"
"""The end of the label of a method that reads the whole pool for every pick."""

KERNEL = "sabal, kernel atoms"
"""Label under which the kernel atoms are measured, whatever their strategy is called."""

KERNEL_STRATEGY = "sabal-kernel"
KERNEL_OPTIONS = {"atoms": "kernel"}

SABAL = ("sabal-greedy", "sabal", "sabal-iht")

SOLVED = ("sabal-greedy", KERNEL, "sabal-iht")
"""Methods that solve a Problem, in passes over the pool."""

PICKED = ("sabal-greedy", KERNEL)
"""Methods among them that pick item by item, compared with a pass per pick."""

GROWING = ("sabal-greedy", "sabal", "badge")

LABELED = 1_000
DEFAULT = ("sabal", f"sabal, {LABELED:,} labelled")
"""The default without and with labelled items."""

BASELINES = ("kcenter", "typiclust")
FORMATS = ("npz", "npy", "parquet")

_ALL = ("features", "probs", "label_probs")


@dataclass(frozen=True)
class SuiteMethod:
    """A strategy with options.

    Parameters
    ----------
    label, strategy : str
        Label in the results, and name of the strategy.
    given : tuple of str
        The arrays that it gets.
    options : mapping
        Options of the strategy.
    read : tuple of str
        The arrays that a pass over the pool reads.
    stored : bool
        Whether all atoms are computed once and stored, which makes many passes affordable.
    """

    label: str
    strategy: str
    given: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    read: tuple[str, ...] = ()
    stored: bool = False

    def arrays(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return the arrays that it gets out of `inputs`."""
        return {name: inputs[name] for name in self.given}

    def select(self, arrays: dict[str, Any], budget: int, seed: int) -> Selection:
        """Select as a user would."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.stored:
                return self._select_with_stored_atoms(arrays, budget, seed)
            return select(
                budget, strategy=self.strategy, random_state=seed, **arrays, **self.options
            )

    def _select_with_stored_atoms(
        self, arrays: dict[str, Any], budget: int, seed: int
    ) -> Selection:
        """Do what the strategy does, over atoms that are all in memory."""
        strategy: Any = make_strategy(self.strategy, dict(self.options))
        pool, rng = ArrayPool(**arrays).check(), np.random.default_rng(seed)
        spec = strategy.spec(strategy.atoms)
        draws = spec.draw(pool, rng)
        computed = PoolItems(pool, spec, draws)
        all_items = np.arange(computed.size)
        _, uncertainty = computed.norms_and_uncertainty(all_items)
        stored = LocalItems(
            computed.gather(all_items), uncertainty, input_bytes=computed.input_bytes
        )
        problem = spec.problem_over(stored, budget, draws)
        solution = strategy.solver().solve(problem)
        return make_selection(
            strategy,
            pool,
            solution.indices,
            solution.scores,
            weights=solution.weights,
            evidence=strategy.evidence(problem, solution, strategy.atoms, rng),
        )


METHODS = {
    method.label: method
    for method in (
        SuiteMethod("sabal-greedy", "sabal-greedy", _ALL, read=_ALL),
        SuiteMethod("sabal", "sabal", _ALL),
        SuiteMethod(KERNEL, KERNEL_STRATEGY, _ALL, KERNEL_OPTIONS, read=("features",)),
        SuiteMethod("sabal-iht", "sabal-iht", _ALL, read=_ALL),
        SuiteMethod("badge", "badge", ("features", "probs")),
        SuiteMethod("kcenter", "kcenter", ("features",)),
        SuiteMethod("typiclust", "typiclust", ("features",)),
        SuiteMethod("entropy", "entropy", ("probs",)),
        SuiteMethod("random", "random", ("probs",)),
        # One draw per pass: BADGE as printed, with gradients kept as factors.
        SuiteMethod(f"badge{PER_PICK}", "badge", ("features", "probs"), {"refresh": 1}),
        SuiteMethod(f"sabal-greedy{PER_PICK}", "sabal-greedy", _ALL, {"refresh": 1}),
        # A thousand passes that recompute the atoms would take most of an hour.
        SuiteMethod(
            f"{KERNEL}{PER_PICK}",
            KERNEL_STRATEGY,
            _ALL,
            {**KERNEL_OPTIONS, "refresh": 1},
            stored=True,
        ),
    )
}


SHAPED = tuple(label for label in METHODS if label != "typiclust")
"""The methods of the part "shapes"."""


def definitions() -> dict[str, Any]:
    """Return the definition of each method by its label."""
    return {label: asdict(method) for label, method in METHODS.items()}


def evidence_of(selection: Selection) -> dict[str, Any]:
    """Return the evidence of a selection that the suite records."""
    evidence = selection.evidence
    return {
        "atoms": evidence.get("atoms"),
        "passes": evidence.get("passes"),
        "objective": evidence.get("objective"),
        "random_objective": evidence.get("random_batch", {}).get("objective"),
    }


def bytes_of(arrays: Mapping[str, np.ndarray], names: tuple[str, ...]) -> int:
    """Return the size of some of the arrays."""
    return sum(arrays[name].nbytes for name in names)
