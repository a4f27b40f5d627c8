"""BADGE: k-means++ seeding on gradients under the predicted label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from array_api_compat import device

from sabal.core.arrays import Array, namespace
from sabal.core.checks import check_flag, check_whole
from sabal.pools.pool import ArrayPool
from sabal.selection import Selection
from sabal.strategies.base import Strategy, make_selection
from sabal.strategies.seeding import SquaredDistanceSampling


@dataclass(frozen=True)
class Badge(Strategy):
    """k-means++ seeding on gradients under the predicted label (BADGE; Ash et al. 2020).

    g_j = (p_j - e_yhat) (x) h_j = x_j (x) h_j with yhat = argmax p_j (Algorithm 1), kept as
    factors: ||g_i - g_j||^2 = ||g_i||^2 + ||g_j||^2 - 2 (x_i.x_j)(h_i.h_j). The first pick has
    the largest norm; each next is drawn with probability proportional to D^2, the squared distance
    to the nearest pick.

    Parameters
    ----------
    bias : bool
        Whether h_j ends in a constant 1 for the last layer's bias (in the paper it does not).
    refresh : int or "auto"
        Draws per pass over the pool; 1 is the plain algorithm. With more, an item is drawn by D^2
        of the last pass, an upper bound, and accepted with probability current / old D^2, which
        gives the same distribution (rejection sampling). "auto" makes a pass when too few are
        accepted.
    """

    name: ClassVar[str] = "badge"
    needs: ClassVar[tuple[str, ...]] = ("features", "probs")
    paper: ClassVar[str] = "Ash et al. 2020"
    cost: ClassVar[str] = "O((n passes + b^2) (C + d)), a few passes"

    bias: bool = False
    refresh: int | str = "auto"

    def __post_init__(self) -> None:
        check_flag(self.bias, "bias")
        if not isinstance(self.refresh, str) or self.refresh != "auto":
            check_whole(self.refresh, "refresh")

    def select(self, pool: ArrayPool, budget: int, rng: np.random.Generator) -> Selection:
        """Return the picks in order; scores are distances to the nearest pick (norm, at first)."""
        left_NC = _residuals(pool.probs, pool.features)
        gradients = SquaredDistanceSampling(left_NC, pool.features, self.bias)
        gradients.sample(budget, rng, refresh=self.refresh)
        chosen = np.asarray(gradients.chosen, dtype=np.int64)
        alike = budget - chosen.size
        warnings: tuple[str, ...] = ()
        if alike:
            free = np.setdiff1d(np.arange(pool.size), chosen)
            chosen = np.append(chosen, rng.choice(free, size=alike, replace=False))
            why = "every gradient left is zero or a copy of a picked one"
            warnings = (f"{alike} of {budget} items were drawn uniformly: {why}",)
        scores = gradients.unit * np.sqrt(np.append(gradients.squared, np.zeros(alike)))
        evidence = {"passes": gradients.passes, "uniform_draws": alike}
        return make_selection(self, pool, chosen, scores, evidence=evidence, warnings=warnings)


def _residuals(probs_NC: Array, features_ND: Array) -> Array:
    """Return p_j - e_yhat, in the dtype of the features."""
    xp = namespace(features_ND, probs_NC)
    classes_C = xp.arange(probs_NC.shape[1], device=device(probs_NC))
    guess_NC = xp.argmax(probs_NC, axis=1)[:, None] == classes_C[None, :]
    return xp.astype(probs_NC - xp.astype(guess_NC, probs_NC.dtype), features_ND.dtype)
