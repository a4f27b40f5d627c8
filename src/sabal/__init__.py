"""Sabal chooses what to label next: batch active learning by sparse approximation."""

from sabal.api import select, select_pool
from sabal.errors import SabalError, SabalWarning
from sabal.estimators import query
from sabal.formulate import (
    curvature_problem,
    gradient_problem,
    kernel_problem,
    posterior_problem,
)
from sabal.labels import (
    apply_temperature,
    cross_validated_temperature,
    fit_temperature,
    predictive_mean,
)
from sabal.outputs import Outputs
from sabal.problem import Problem
from sabal.selection import Selection
from sabal.solvers import Greedy, ProximalIHT, Solution, refit
from sabal.strategies import Strategy

__version__ = "0.1.0"

__all__ = [
    "Greedy",
    "Outputs",
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
