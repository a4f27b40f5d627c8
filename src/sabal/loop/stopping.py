r"""Whether more labels are worth it: a learning curve, projected by a power law.

The error after :math:`n` labels is modelled as :math:`e(n) = c + k (n + a)^{-\gamma}`, the usual
shape of a learning curve; the offset :math:`a` lets it begin slowly. Every curve of a grid of
:math:`(c, k, a, \gamma)` is weighted by its likelihood, so that a short or noisy curve gives a wide
interval and not a confident mistake. The gain of :math:`m` more labels is :math:`e(n) - e(n + m)`.

Residuals have Student's t distribution, and the log likelihood of a point is multiplied by its
number of labels as a share of the last one. A first model that had not yet seen every class, say,
may therefore be far from the curve that later ones follow.

References
----------
.. [1] Cortes, Jackel, Solla, Vapnik, Denker. Learning curves: asymptotic values and rate of
   convergence. NIPS 1993.
.. [2] Viering, Loog. The shape of learning curves: a review. IEEE TPAMI 45, 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sabal.core.checks import check_number, check_whole
from sabal.errors import InputError

HELPING, UNCLEAR, NOT_HELPING, TOO_EARLY = "helping", "unclear", "not-helping", "too-early"
WORTHWHILE = 0.01  # a gain in accuracy that justifies the labels
SURE = 0.8  # the probability from which a verdict is given
MIN_POINTS = 4
BATCHES_AHEAD = 5  # a loop stops by the gain of this many batches
EXPONENTS = np.linspace(0.1, 1.5, 8)
OFFSETS = np.array([0.0, 1.0, 3.0, 10.0])  # in units of the first number of labels
FLOORS = 12  # values of c
SCALES = 40  # values of k
MIN_ERROR = 0.015  # a curve without errors may still begin with so many, or end with them
WOBBLES = (0.00375, 0.0075, 0.015, 0.03)  # how much the accuracy may vary between trainings
FREEDOM = 4.0  # of Student's t distribution: single points may be far from the curve
MISFIT = 0.5  # how far real curves are from any power law: the standard deviation of log gains
MISFITS = np.exp(MISFIT * np.array([-1.59, -0.97, -0.59, -0.28, 0.0, 0.28, 0.59, 0.97, 1.59]))
MIN_WEIGHT = 1e-4  # curves that are less likely than this, beside the likeliest, are left out
QUANTILES = (0.05, 0.5, 0.95)
LEVELS = 15  # quantiles of the present error, where that is uncertain


@dataclass(frozen=True)
class Projection:
    """The gain in accuracy that more labels would bring.

    Attributes
    ----------
    more : int
        The number of labels.
    gain : float
        The gain in accuracy, as a share: the median of the projected curves.
    low, high : float
        Its 90 % interval.
    chance : float
        The probability that the gain is at least the one that is worthwhile.
    verdict : str
        "helping" or "not-helping" if that probability is at least 0.8 or at most 0.2, "unclear"
        between these, and "too-early" where the curve has fewer than four points.
    """

    more: int
    gain: float
    low: float
    high: float
    chance: float
    verdict: str


def project(
    labels: Sequence[float],
    accuracies: Sequence[float],
    more: int,
    *,
    wobble: float | None = None,
    checks: tuple[int, int] | None = None,
    worthwhile: float = WORTHWHILE,
) -> Projection:
    """Project a learning curve.

    Parameters
    ----------
    labels : sequence of numbers
        The numbers of labels, increasing.
    accuracies : sequence of float
        The accuracy after each, from 0 to 1. Measured on the same items, their differences are more
        precise than each of them, and nothing else matters here.
    more : int
        How many labels to add to the last number.
    wobble : float, optional
        By how much an accuracy usually varies for other reasons than the number of labels. By
        default it is estimated from the curve, as one of `WOBBLES`.
    checks : tuple of int, optional
        Wrong predictions of the present model, and items that it was measured on, if the accuracies
        are of other items than the ones of interest. The curve then says by what share the error
        falls, and the checks say how large it is.
    worthwhile : float
        The gain that justifies the labels.

    Returns
    -------
    Projection
        The gain, its interval and a verdict.
    """
    n, errors = _check_curve(labels, accuracies)
    check_whole(more, "more")
    check_number(worthwhile, "worthwhile", above=0.0)
    if n.size < MIN_POINTS:
        return Projection(more, 0.0, 0.0, 1.0, 0.5, TOO_EARLY)
    reductions, weights = _relative_reductions(n, errors, more, wobble)
    levels = np.outer(_levels(errors[-1], checks), MISFITS).ravel()
    gains = np.outer(levels, reductions).ravel()
    weights = np.tile(weights, levels.size)
    low, gain, high = _weighted_quantiles(gains, weights)
    chance = float(weights[gains >= worthwhile].sum() / weights.sum())
    verdict = HELPING if chance >= SURE else NOT_HELPING if chance <= 1 - SURE else UNCLEAR
    return Projection(more, gain, low, high, chance, verdict)


def first_stop(
    labels: Sequence[float], accuracies: Sequence[float], *, worthwhile: float = WORTHWHILE
) -> int | None:
    """Return where a learning curve would have been stopped.

    Parameters
    ----------
    labels, accuracies : sequences of numbers
        The curve, as for `project`.
    worthwhile : float
        The gain of five more batches that justifies them.

    Returns
    -------
    int or None
        The first point, before the last, after which the projected gain is not worthwhile.
    """
    for at in range(MIN_POINTS - 1, len(labels) - 1):
        more = BATCHES_AHEAD * max(round(labels[at] - labels[at - 1]), 1)
        known = slice(at + 1)
        found = project(labels[known], accuracies[known], more, worthwhile=worthwhile)
        if found.verdict == NOT_HELPING:
            return at
    return None


def _relative_reductions(
    n: np.ndarray, errors: np.ndarray, more: int, wobble: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return by what share the error falls with each curve of the grid, and its weight."""
    first = max(float(errors.max()), MIN_ERROR)
    last = float(errors[-1])
    floors = np.append(np.linspace(0.0, last, FLOORS - 1), last + MIN_ERROR)
    scales = np.linspace(0.0, 1.5, SCALES) * first
    grids = np.meshgrid(floors, scales, OFFSETS, EXPONENTS, indexing="ij")
    c, k = grids[0].ravel(), grids[1].ravel()

    def curve(labels: np.ndarray) -> np.ndarray:
        # In units in which the power is 1 at first: k is the part of the error that goes away.
        shifted = (labels[:, None] / n[0] + OFFSETS) / (1 + OFFSETS)
        powers = shifted[:, :, None] ** -EXPONENTS
        return np.asarray(c + k * np.tile(powers.reshape(len(labels), -1), FLOORS * SCALES))

    wobbles = WOBBLES if wobble is None else (max(wobble, 1e-4),)
    residuals = errors[:, None] - curve(n)
    each = [_log_likelihood(residuals, n / n[-1], scale) for scale in wobbles]
    likelihood = np.logaddexp.reduce(each)
    weights = np.exp(likelihood - likelihood.max())
    now, then = curve(np.array([n[-1], n[-1] + more]))
    reductions = (now - then) / np.maximum(now, np.finfo(float).tiny)
    likely = weights > MIN_WEIGHT
    return reductions[likely], weights[likely]


def _log_likelihood(residuals: np.ndarray, shares: np.ndarray, scale: float) -> np.ndarray:
    """Return the log likelihood of curves up to a constant; each point counts for its share."""
    densities = np.log(scale) + (FREEDOM + 1) / 2 * np.log1p((residuals / scale) ** 2 / FREEDOM)
    return -(shares @ densities)


def _levels(error: float, checks: tuple[int, int] | None) -> np.ndarray:
    """Return equally likely values of the present error."""
    if checks is None:
        return np.array([max(error, 0.0)])
    from scipy.stats import beta

    wrong, items = checks
    share = (np.arange(LEVELS) + 0.5) / LEVELS
    return np.asarray(beta.ppf(share, wrong + 0.5, items - wrong + 0.5))


def _weighted_quantiles(values: np.ndarray, weights: np.ndarray) -> tuple[float, float, float]:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    found = values[order][np.searchsorted(total, np.asarray(QUANTILES) * total[-1])]
    return float(found[0]), float(found[1]), float(found[2])


def _check_curve(
    labels: Sequence[float], accuracies: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    n, found = np.asarray(labels, dtype=float), np.asarray(accuracies, dtype=float)
    if n.ndim != 1 or n.shape != found.shape or not (np.isfinite(n).all() and (n > 0).all()):
        raise InputError(
            "as many accuracies as positive numbers of labels",
            f"shapes {found.shape} and {n.shape}",
            "pass one for each",
        )
    if (np.diff(n) <= 0).any():
        raise InputError("increasing numbers of labels", str(list(labels)), "sort the curve")
    if not ((found >= 0) & (found <= 1)).all():
        raise InputError("accuracies from 0 to 1", str(list(accuracies)), "divide percentages")
    return n, 1 - found
