"""Sabal chooses what to label next: batch active learning by sparse approximation.

Names are loaded on first use, so that `import sabal` takes next to no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sabal.api import query, select, select_pool
    from sabal.errors import SabalError, SabalWarning
    from sabal.loop.ask_tell import Loop
    from sabal.pools.pool import ArrayPool, Outputs, Pool
    from sabal.predictions.calibration import (
        apply_temperature,
        cross_validated_temperature,
        fit_temperature,
    )
    from sabal.predictions.posterior import predictive_mean
    from sabal.selection import Selection
    from sabal.sparse.from_arrays import (
        curvature_problem,
        gradient_problem,
        kernel_problem,
        posterior_problem,
    )
    from sabal.sparse.greedy import Greedy
    from sabal.sparse.iht import ProximalIHT
    from sabal.sparse.problem import Problem, Solution
    from sabal.sparse.refit import refit
    from sabal.strategies.base import Strategy

__version__ = "0.2.0"

_MODULES = {
    "sabal.api": ("query", "select", "select_pool"),
    "sabal.errors": ("SabalError", "SabalWarning"),
    "sabal.loop.ask_tell": ("Loop",),
    "sabal.pools.pool": ("ArrayPool", "Outputs", "Pool"),
    "sabal.predictions.calibration": (
        "apply_temperature",
        "cross_validated_temperature",
        "fit_temperature",
    ),
    "sabal.predictions.posterior": ("predictive_mean",),
    "sabal.selection": ("Selection",),
    "sabal.sparse.from_arrays": (
        "curvature_problem",
        "gradient_problem",
        "kernel_problem",
        "posterior_problem",
    ),
    "sabal.sparse.greedy": ("Greedy",),
    "sabal.sparse.iht": ("ProximalIHT",),
    "sabal.sparse.problem": ("Problem", "Solution"),
    "sabal.sparse.refit": ("refit",),
    "sabal.strategies.base": ("Strategy",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ArrayPool",
    "Greedy",
    "Loop",
    "Outputs",
    "Pool",
    "Problem",
    "ProximalIHT",
    "SabalError",
    "SabalWarning",
    "Selection",
    "Solution",
    "Strategy",
    "apply_temperature",
    "cross_validated_temperature",
    "curvature_problem",
    "fit_temperature",
    "gradient_problem",
    "kernel_problem",
    "posterior_problem",
    "predictive_mean",
    "query",
    "refit",
    "select",
    "select_pool",
]


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it."""
    if name not in _HOME:
        raise AttributeError(f"module 'sabal' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names only."""
    return [*__all__, "__version__"]
