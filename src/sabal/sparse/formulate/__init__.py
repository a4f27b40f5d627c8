"""From what a model says of a pool to a Problem."""

from sabal.sparse.formulate.formulation import (
    ATOMS,
    NO_FEATURES,
    SCALES,
    UNCERTAINTIES,
    Draws,
    Formulation,
)
from sabal.sparse.formulate.functions import (
    RandomState,
    curvature_problem,
    gradient_problem,
    kernel_problem,
    posterior_problem,
)
from sabal.sparse.formulate.pool import LocalFacts, LocalPool, Pool

__all__ = [
    "ATOMS",
    "NO_FEATURES",
    "SCALES",
    "UNCERTAINTIES",
    "Draws",
    "Formulation",
    "LocalFacts",
    "LocalPool",
    "Pool",
    "RandomState",
    "curvature_problem",
    "gradient_problem",
    "kernel_problem",
    "posterior_problem",
]
