"""From arrays to a Problem: one function for each kind of atoms."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from sabal.core.arrays import as_array, generator, to_host
from sabal.errors import InputError, SabalWarning
from sabal.pools.outputs import Outputs
from sabal.predictions import loss_named
from sabal.sparse.formulate.formulation import UNCERTAINTIES, Formulation
from sabal.sparse.formulate.pool import LocalFacts
from sabal.sparse.problem import Problem

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
    """Gradient atoms of a point-estimate model (method.md 1, and 8 for other losses).

    `probs` is the model's prediction p, `label_probs` the label distribution q; with q = p the
    atoms are zero, which is said in a warning, and the variance alone ranks the items.
    With loss="squared" they are the means of the prediction and of the label distribution, and
    `variances` are those of the prediction.
    """
    outputs = _outputs(loss, features, probs, variances, label_probs)
    options = {"alpha": alpha, "beta": beta, "scale": scale, "bias": bias}
    return _problem("gradient", outputs, budget, uncertainty, None, options)


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
    """Posterior atoms from K samples shared by all items (method.md 1).

    The label distribution is the predictive mean unless `label_probs` is given.
    """
    outputs = Outputs(log_probs=log_probs, label_probs=label_probs)
    options = {"alpha": alpha, "beta": beta, "scale": scale}
    return _problem("posterior", outputs, budget, uncertainty, None, options)


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
    """Curvature atoms: the second order of the loss, which no label changes (method.md 4 and 8).

    `uncertainty` is the margin unless it is given. With loss="squared" it is the predictive
    variance; `variances` are those of the prediction, and `probs` (its means) may be None.
    """
    outputs = _outputs(loss, features, probs, variances)
    options = {"alpha": alpha, "beta": beta, "width": width, "bias": bias}
    return _problem("curvature", outputs, budget, uncertainty, random_state, options)


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
    """Kernel atoms: the batch matches the undecided part of the pool in distribution (method.md 4).

    `uncertainty` is the margin unless it is given. Without a model (`probs=None`) every item counts
    alike and nothing is added for uncertainty: the batch then represents the pool.
    loss, variances: as in `curvature_problem`.
    """
    outputs = _outputs(loss, features, probs, variances)
    options = {"alpha": alpha, "beta": beta, "width": width}
    return _problem("kernel", outputs, budget, uncertainty, random_state, options)


def _outputs(
    loss: str, features: Any, prediction: Any, variances: Any, label: Any = None
) -> Outputs:
    """Outputs whose prediction, and mean of the label distribution, are called as `loss` does."""
    known = loss_named(loss)
    named = {known.prediction: prediction, known.label: label}
    return Outputs(features=features, variances=variances, loss=loss, **named)


def _problem(
    atoms: str,
    outputs: Outputs,
    budget: int,
    uncertainty: Uncertainty | None,
    random_state: RandomState,
    options: dict[str, Any],
) -> Problem:
    outputs.check()
    scores_N = None
    if uncertainty is not None and not isinstance(uncertainty, str):
        scores_N, uncertainty = _own_scores(uncertainty, outputs.size), None
    formulation = Formulation(atoms=atoms, uncertainty=uncertainty, **options)
    draws = formulation.draw(LocalFacts(formulation, outputs), generator(random_state))
    items = formulation.items(outputs, draws, uncertainty_N=scores_N)
    problem = formulation.problem(items, budget, draws)
    for message in problem.warnings:
        warnings.warn(message, SabalWarning, stacklevel=3)
    return problem


def _own_scores(uncertainty: Any, n: int) -> np.ndarray:
    scores_N = to_host(as_array(uncertainty, "uncertainty"))
    if scores_N.shape != (n,) or not np.all(np.isfinite(scores_N)) or scores_N.min() < 0:
        raise InputError(
            f"`uncertainty` as a name or one finite score of at least 0 for each of {n} items",
            f"shape {scores_N.shape}",
            f"pass one of {', '.join(UNCERTAINTIES)}",
        )
    return scores_N
