"""From arrays to a Problem: one function for each kind of atoms."""

from __future__ import annotations

from typing import Any

import numpy as np

from sabal.core.arrays import as_array, to_float64_numpy
from sabal.core.checks import RandomState, check_choice, generator
from sabal.errors import InputError, warn
from sabal.pools.pool import UNCERTAINTIES, ArrayPool
from sabal.predictions import BY_LOSS
from sabal.sparse.problem import Problem, ProblemSpec

Uncertainty = str | np.ndarray
"""One of UNCERTAINTIES, or a non-negative score per item."""


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

    With q = p the atoms are zero; then a warning is issued, and the variance alone ranks the items.

    Parameters
    ----------
    features : array of shape (n, d)
        The input of the last layer.
    probs : array of shape (n, classes)
        The prediction p; its means with loss="squared".
    label_probs : array of shape (n, classes)
        The label distribution q; its means with loss="squared".
    budget : int
        The size of the batch.
    alpha, beta : float
        The weight of uncertainty, and of weights near 1.
    scale : {"free", "literal"}
        Scale-free units, or those of the paper.
    bias : bool
        Whether the last layer has a bias.
    uncertainty : str or array of shape (n,)
        The name of an uncertainty, or a score per item.
    loss : {"softmax", "sigmoid", "squared"}
        The loss of the model.
    variances : array of shape (n, outputs), optional
        The variances of the prediction, with loss="squared".
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

    Parameters
    ----------
    log_probs : array of shape (n, samples, classes)
        Log-probabilities of posterior samples.
    label_probs : array of shape (n, classes), optional
        The label distribution; the predictive mean by default.
    budget, alpha, beta, scale, uncertainty
        As in `gradient_problem`.
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

    These atoms do not depend on the labels.

    Parameters
    ----------
    probs : array of shape (n, classes) or None
        The prediction; may be None with loss="squared", which needs `variances`.
    width : int
        The length of an atom.
    random_state : int, generator or None
        Seeds the random features.
    uncertainty : str or array of shape (n,), optional
        The margin by default; the predictive variance with loss="squared".
    features, budget, alpha, beta, bias, loss, variances
        As in `gradient_problem`.
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

    The batch matches the distribution of the uncertain part of the pool.

    Parameters
    ----------
    probs : array of shape (n, classes) or None
        The prediction. Without one all items have the same weight and no uncertainty term, so the
        batch represents the whole pool.
    features, budget, alpha, beta, width, random_state, uncertainty, loss, variances
        As in `curvature_problem`.
    """
    pool = _pool(loss, features, probs, variances)
    options = {"alpha": alpha, "beta": beta, "width": width}
    return _problem("kernel", pool, budget, uncertainty, random_state, options)


def _pool(
    loss: str, features: Any, prediction: Any, variances: Any, label: Any = None
) -> ArrayPool:
    """Return a pool with the array names of `loss`."""
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
        warn(message)
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
