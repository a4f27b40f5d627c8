"""From arrays to a Problem: one function for each kind of atoms."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from sabal.core.arrays import as_array, to_float64_numpy
from sabal.core.checks import check_choice
from sabal.core.seeds import generator
from sabal.errors import InputError, SabalWarning
from sabal.pools.pool import ArrayPool
from sabal.predictions import BY_LOSS
from sabal.sparse.problem import Problem
from sabal.sparse.spec import UNCERTAINTIES, ProblemSpec

RandomState = int | np.random.Generator | None
Uncertainty = str | np.ndarray
"""One of UNCERTAINTIES, or a score per item that is at least 0."""


def gradient_problem(
    features: Any,
    probs: Any,
    label_probs: Any,
    budget: int,
    *,
    alpha: float,
    beta: float,
    scale: str = "free",
    bias: bool = True,
    uncertainty: Uncertainty = "variance",
    loss: str = "softmax",
    variances: Any = None,
) -> Problem:
    """Return the problem over gradient atoms of a point-estimate model (method.md 1 and 8).

    `probs` is the model's prediction p, `label_probs` the label distribution q; with q = p the
    atoms are zero, which is said in a warning, and the variance alone ranks the items.
    With loss="squared" they are the means of the prediction and of the label distribution, and
    `variances` are those of the prediction.
    """
    pool = _pool(loss, features, probs, variances, label_probs)
    options = {"alpha": alpha, "beta": beta, "scale": scale, "bias": bias}
    return _problem("gradient", pool, budget, uncertainty, None, options)


def posterior_problem(
    log_probs: Any,
    budget: int,
    *,
    alpha: float,
    beta: float,
    scale: str = "free",
    label_probs: Any = None,
    uncertainty: Uncertainty = "variance",
) -> Problem:
    """Return the problem over posterior atoms from K samples shared by all items (method.md 1).

    The label distribution is the predictive mean unless `label_probs` is given.
    """
    pool = ArrayPool(log_probs=log_probs, label_probs=label_probs)
    options = {"alpha": alpha, "beta": beta, "scale": scale}
    return _problem("posterior", pool, budget, uncertainty, None, options)


def curvature_problem(
    features: Any,
    probs: Any,
    budget: int,
    *,
    alpha: float,
    beta: float,
    width: int = 2048,
    random_state: RandomState = None,
    bias: bool = True,
    uncertainty: Uncertainty | None = None,
    loss: str = "softmax",
    variances: Any = None,
) -> Problem:
    """Return the problem over curvature atoms: the second order of the loss (method.md 4, 8).

    No label changes them.

    `uncertainty` is the margin unless it is given. With loss="squared" it is the predictive
    variance; `variances` are those of the prediction, and `probs` (its means) may be None.
    """
    pool = _pool(loss, features, probs, variances)
    options = {"alpha": alpha, "beta": beta, "width": width, "bias": bias}
    return _problem("curvature", pool, budget, uncertainty, random_state, options)


def kernel_problem(
    features: Any,
    probs: Any,
    budget: int,
    *,
    alpha: float,
    beta: float,
    width: int = 1024,
    random_state: RandomState = None,
    uncertainty: Uncertainty | None = None,
    loss: str = "softmax",
    variances: Any = None,
) -> Problem:
    """Return the problem over kernel atoms (method.md 4).

    The batch matches the undecided part of the pool in distribution.

    `uncertainty` is the margin unless it is given. Without a model (`probs=None`) every item counts
    alike and nothing is added for uncertainty: the batch then represents the pool.
    loss, variances: as in `curvature_problem`.
    """
    pool = _pool(loss, features, probs, variances)
    options = {"alpha": alpha, "beta": beta, "width": width}
    return _problem("kernel", pool, budget, uncertainty, random_state, options)


def _pool(
    loss: str, features: Any, prediction: Any, variances: Any, label: Any = None
) -> ArrayPool:
    """Return a pool whose arrays are called as those of `loss` are."""
    kind = BY_LOSS[check_choice(loss, "loss", list(BY_LOSS))]
    named = {kind.mean_name: prediction, kind.label_name: label}
    return ArrayPool(features=features, variances=variances, loss=loss, **named)


def _problem(
    atoms: str,
    pool: ArrayPool,
    budget: int,
    uncertainty: Uncertainty | None,
    random_state: RandomState,
    options: dict[str, Any],
) -> Problem:
    pool.check()
    scores_N = None
    if uncertainty is not None and not isinstance(uncertainty, str):
        scores_N, uncertainty = _own_scores(uncertainty, pool.size), None
    spec = ProblemSpec(atoms=atoms, uncertainty=uncertainty, **options)
    problem = spec.problem(pool, budget, generator(random_state), uncertainty_N=scores_N)
    for message in problem.warnings:
        warnings.warn(message, SabalWarning, stacklevel=3)
    return problem


def _own_scores(uncertainty: Any, n: int) -> np.ndarray:
    scores_N = to_float64_numpy(as_array(uncertainty, "uncertainty"))
    if scores_N.shape != (n,) or not np.all(np.isfinite(scores_N)) or scores_N.min() < 0:
        raise InputError(
            f"`uncertainty` as a name or one finite score of at least 0 for each of {n} items",
            f"shape {scores_N.shape}",
            f"pass one of {', '.join(UNCERTAINTIES)}",
        )
    return scores_N
