"""From what a model says of a pool to a Problem: one function for each kind of atoms."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from sabal.arrays import Array, as_array, generator, namespace, to_host
from sabal.atoms import (
    Atoms,
    curvature_atoms,
    gradient_atoms,
    gradient_spread,
    kernel_atoms,
    posterior_atoms,
)
from sabal.checks import (
    check_budget,
    check_choice,
    check_features,
    check_log_probs,
    check_probs,
    check_same_classes,
    check_same_items,
    check_whole,
)
from sabal.errors import InputError, SabalWarning
from sabal.problem import Problem
from sabal.uncertainty import entropy, margin, mutual_information

ATOMS = ("gradient", "posterior", "curvature", "kernel")
SCALES = ("free", "literal")
UNCERTAINTIES = ("variance", "margin", "entropy", "mutual-information")
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
) -> Problem:
    """Gradient atoms of a point-estimate model (method.md 1).

    `probs` is the model's prediction p, `label_probs` the label distribution q; with q = p the
    atoms are zero, which is said in a warning, and the variance alone ranks the items.
    """
    features_ND, probs_NC = check_features(features), check_probs(probs)
    q_NC = check_probs(label_probs, "label_probs")
    _check_together(features=features_ND, probs=probs_NC, label_probs=q_NC)
    atoms = gradient_atoms(features_ND, probs_NC, q_NC, bool(bias))
    return _problem(atoms, budget, alpha, beta, scale, uncertainty, probs_NC)


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
    log_probs_NKC = check_log_probs(log_probs)
    q_NC = None if label_probs is None else check_probs(label_probs, "label_probs")
    _check_together(log_probs=log_probs_NKC, label_probs=q_NC)
    atoms = posterior_atoms(log_probs_NKC, q_NC)
    return _problem(atoms, budget, alpha, beta, scale, uncertainty, None, log_probs_NKC)


def atoms_problem(
    atoms: Atoms, budget: int, *, alpha: float, beta: float, scale: str = "free"
) -> Problem:
    """A Problem of atoms that are there already, with their own variance as the uncertainty."""
    return _problem(atoms, budget, alpha, beta, scale, "variance", None)


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
    uncertainty: Uncertainty = "margin",
) -> Problem:
    """Curvature atoms: the second order of the loss, which no label changes (method.md 4)."""
    features_ND, probs_NC = check_features(features), check_probs(probs)
    _check_together(features=features_ND, probs=probs_NC)
    rng = generator(random_state)
    atoms = curvature_atoms(features_ND, probs_NC, check_whole(width, "width"), bool(bias), rng)
    atoms = _with_gradient_variance(atoms, features_ND, probs_NC, uncertainty)
    return _problem(atoms, budget, alpha, beta, "free", uncertainty, probs_NC)


def kernel_problem(
    features: Any,
    probs: Any,
    budget: int,
    *,
    alpha: float,
    beta: float,
    width: int = 1024,
    random_state: RandomState = None,
    uncertainty: Uncertainty = "margin",
) -> Problem:
    """Kernel atoms: the batch matches the undecided part of the pool in distribution (method.md 4).

    Without a model (`probs=None`) every item counts alike and nothing is added for uncertainty:
    the batch then represents the pool.
    """
    features_ND = check_features(features)
    width = check_whole(width, "width", least=2)
    if width % 2:
        raise InputError("an even `width` (a cosine and a sine each)", str(width), "add one to it")
    rng = generator(random_state)
    if probs is None:
        n = features_ND.shape[0]
        atoms = kernel_atoms(features_ND, np.ones(n), width, rng)
        return Problem.scale_free(atoms.operator, np.zeros(n), budget, alpha=alpha, beta=beta)
    probs_NC = check_probs(probs)
    _check_together(features=features_ND, probs=probs_NC)
    atoms = kernel_atoms(features_ND, margin(probs_NC), width, rng)
    atoms = _with_gradient_variance(atoms, features_ND, probs_NC, uncertainty)
    return _problem(atoms, budget, alpha, beta, "free", uncertainty, probs_NC)


def uncertainty_scores(
    kind: str,
    *,
    probs_NC: Array | None = None,
    log_probs_NKC: Array | None = None,
    variance_N: np.ndarray | None = None,
) -> np.ndarray:
    """The uncertainty of every item by one of `UNCERTAINTIES`, from what there is."""
    check_choice(kind, "uncertainty", UNCERTAINTIES)
    if kind == "variance" and variance_N is not None:
        return variance_N
    if kind == "mutual-information" and log_probs_NKC is not None:
        return mutual_information(log_probs_NKC)
    if probs_NC is None and log_probs_NKC is not None:
        xp = namespace(log_probs_NKC)
        probs_NC = xp.mean(xp.exp(log_probs_NKC), axis=1)
    if kind in ("margin", "entropy") and probs_NC is not None:
        return margin(probs_NC) if kind == "margin" else entropy(probs_NC)
    raise InputError(
        f"what uncertainty={kind!r} is computed from",
        "outputs without it",
        "pass `log_probs` for mutual-information, class probabilities for the others",
    )


def _with_gradient_variance(
    atoms: Atoms, features_ND: Array, probs_NC: Array, uncertainty: Uncertainty
) -> Atoms:
    """Atoms that no label changes borrow the variance of the gradient, where it is asked for."""
    if not isinstance(uncertainty, str) or uncertainty != "variance":
        return atoms
    variance_N, _ = gradient_spread(features_ND, probs_NC, bias=True)
    return replace(atoms, variance_N=variance_N)


def _problem(
    atoms: Atoms,
    budget: int,
    alpha: float,
    beta: float,
    scale: str,
    uncertainty: Uncertainty,
    probs_NC: Array | None,
    log_probs_NKC: Array | None = None,
) -> Problem:
    check_choice(scale, "scale", SCALES)
    n = atoms.operator.size
    budget = check_budget(budget, n)
    if scale == "literal":
        by_variance = isinstance(uncertainty, str) and uncertainty == "variance"
        if atoms.deviation_N is None or not by_variance:
            raise InputError(
                "uncertainty='variance' in literal units, as the paper prints them",
                repr(uncertainty),
                "use scale='free' for other uncertainties",
            )
        spread_N = (atoms.deviation_N / n) ** 2
    else:
        spread_N = _spread(atoms, uncertainty, probs_NC, log_probs_NKC)
    build = Problem.literal if scale == "literal" else Problem.scale_free
    problem = build(
        atoms.operator,
        spread_N,
        budget,
        alpha=alpha,
        beta=beta,
        noise=atoms.noise,
        warnings=atoms.warnings,
    )
    for message in problem.warnings:
        warnings.warn(message, SabalWarning, stacklevel=3)
    return problem


def _spread(
    atoms: Atoms, uncertainty: Uncertainty, probs_NC: Array | None, log_probs_NKC: Array | None
) -> np.ndarray:
    if isinstance(uncertainty, str):
        return uncertainty_scores(
            uncertainty, probs_NC=probs_NC, log_probs_NKC=log_probs_NKC, variance_N=atoms.variance_N
        )
    scores_N = to_host(as_array(uncertainty, "uncertainty"))
    n = atoms.operator.size
    if scores_N.shape != (n,) or not np.all(np.isfinite(scores_N)) or scores_N.min() < 0:
        raise InputError(
            f"`uncertainty` as a name or one finite score of at least 0 for each of {n} items",
            f"shape {scores_N.shape}",
            f"pass one of {', '.join(UNCERTAINTIES)}",
        )
    return scores_N


def _check_together(**arrays: Array) -> None:
    given = {name: array for name, array in arrays.items() if array is not None}
    namespace(*given.values())
    check_same_items(**given)
    check_same_classes(**{name: array for name, array in given.items() if name != "features"})
