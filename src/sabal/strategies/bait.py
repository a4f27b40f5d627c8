"""BAIT: the most informative batch for the pool, by the Fisher information."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from array_api_compat import device

from sabal.core.arrays import (
    Array,
    namespace,
    row_norms_squared,
    to_backend_of,
    to_float64_numpy,
    top_k,
)
from sabal.core.checks import check_flag, check_number
from sabal.errors import InputError
from sabal.pools.pool import ArrayPool
from sabal.predictions.uncertainty import margin
from sabal.selection import Selection
from sabal.strategies.base import Strategy, make_selection
from sabal.strategies.fisher import TraceSearch, complement

MIN_VARIANCE = 1e-12
"""Items with sum_y p_y (1 - p_y) up to this are certain, and have no information."""
MIN_RIDGE, MAX_RIDGE = 1e-8, 1e100
"""Bounds of lambda / mean ||h||^2, outside which M^{-1} is inaccurate or its square underflows."""


@dataclass(frozen=True, kw_only=True)
class Bait(Strategy):
    """BAIT: greedy forward selection of more items than needed, then backward pruning.

    Minimises tr(M^{-1} F). The Fisher information of an item is I(x) = (diag(p) - p p') (x) h h',
    F is its mean over all items, and M = lambda I + the sum of I(x) over labelled and chosen ones.
    (The paper's M_0 has the mean over the labelled items, and the authors' code other weights; here
    every item counts once, as in training.) Predictions for labelled items are not known: their
    diag(p) - p p' is taken to be the mean over the pool.

    Parameters
    ----------
    regularisation : float
        lambda; 1 as in the authors' code.
    oversample : float
        The number of forward picks, as a multiple of the budget.
    bias : bool
        Whether h has a constant 1 appended, for a last layer with a bias.
    memory_gib : float
        The memory for four (C d)^2 matrices (features are projected at random if they exceed it),
        and again for 2 C^2 numbers per item (only the most uncertain items are candidates if they
        exceed it). A float64 copy of the features comes on top.
    """

    name: ClassVar[str] = "bait"
    needs: ClassVar[tuple[str, ...]] = ("features", "probs")
    paper: ClassVar[str] = "Ash et al. 2021, Algorithm 1"
    cost: ClassVar[str] = "O(n (C d)^2) + O(n d C^2 + C (C d)^2) per pick"

    regularisation: float = 1.0
    oversample: float = 2.0
    bias: bool = False
    memory_gib: float = 2.0

    def __post_init__(self) -> None:
        # lambda is relative to the square of the features, which may have any unit.
        check_number(self.regularisation, "regularisation", above=0.0, maximum=1e300)
        check_flag(self.bias, "bias")
        check_number(self.memory_gib, "memory_gib", above=0.0)
        if check_number(self.oversample, "oversample") < 1:
            raise InputError(
                "`oversample` of at least 1 (a multiple of the budget)",
                str(self.oversample),
                "pass for instance oversample=2.0",
            )

    def select(self, pool: ArrayPool, budget: int, rng: np.random.Generator) -> Selection:
        """Return the batch; scores are the decrease of the trace with each forward pick."""
        warnings: list[str] = []
        probs_NC = to_float64_numpy(pool.probs)
        probs_NC = probs_NC / probs_NC.sum(axis=1, keepdims=True)
        h_ND, h_LD, ridge = self._features(pool, probs_NC.shape[1], rng, warnings)
        variance_N = (probs_NC * complement(probs_NC)).sum(axis=1)
        informative = np.flatnonzero((row_norms_squared(h_ND) > 0) & (variance_N > MIN_VARIANCE))
        candidates = self._limit_candidates(informative, probs_NC, warnings)
        width = h_ND.shape[1] - self.bias
        evidence: dict[str, Any] = {
            "trace_before": 0.0,
            "trace_after": 0.0,
            "forward_picks": 0,
            "candidates": len(candidates),
            "labeled": h_LD.shape[0],
            "labeled_information": "the pool's mean diag(p) - p p', (x) h h'",
            "projected_dimensions": width if width < pool.features.shape[1] else None,
        }
        chosen, scores = np.empty(0, dtype=np.int64), np.empty(0)
        if len(candidates):
            search = TraceSearch(h_ND, probs_NC, h_LD, ridge, candidates)
            evidence["trace_before"] = search.trace
            forward, gains = search.forward(math.ceil(self.oversample * budget))
            kept = search.backward(forward, budget)
            chosen, scores = candidates[forward[kept]], gains[kept]
            evidence |= {"trace_after": search.trace, "forward_picks": len(forward)}
        missing = budget - len(chosen)
        if missing:
            warnings.append(
                f"only {len(chosen)} items could be chosen by their information: the other "
                f"{missing} are the most uncertain of the rest, at random among equals"
            )
            order = np.lexsort((rng.random(pool.size), -margin(probs_NC)))
            chosen = np.append(chosen, order[~np.isin(order, chosen)][:missing])
            scores = np.append(scores, np.zeros(missing))
        return make_selection(
            self, pool, chosen, scores, evidence=evidence, warnings=tuple(warnings)
        )

    def _features(
        self, pool: ArrayPool, classes: int, rng: np.random.Generator, warnings: list[str]
    ) -> tuple[Array, Array, float]:
        """Return h of pool and labelled items, scaled to mean squared norm 1, and lambda."""
        given = [pool.features]
        if pool.has("labeled_features"):
            given.append(pool.labeled_features)
        width = given[0].shape[1]
        fits = int(math.sqrt(self.memory_gib * 2**30 / (4 * 8))) // classes - self.bias
        if fits < 1:
            raise InputError(
                f"`memory_gib` with room for {classes} classes",
                str(self.memory_gib),
                f"pass at least {4 * 8 * (classes * (1 + self.bias)) ** 2 / 2**30 + 1e-3:.3f}",
            )
        projection_DD = None
        if fits < width:
            warnings.append(
                f"features were projected at random from {width} to {fits} dimensions: with "
                f"{classes} classes, more do not fit in {self.memory_gib:g} GiB"
            )
            projection_DD = rng.standard_normal((width, fits)) / math.sqrt(fits)
        arrays = [_widened(array, projection_DD, self.bias) for array in given]
        # tr(M^{-1} F) is the same for h / unit and lambda / unit^2, without overflow.
        xp = namespace(*arrays)
        peak = max(float(xp.max(xp.abs(h))) for h in arrays) or 1.0
        arrays = [h / peak for h in arrays]
        mean = float(np.concatenate([row_norms_squared(h) for h in arrays]).mean()) or 1.0
        h_ND, *h_LD = (h / math.sqrt(mean) for h in arrays)
        ridge = float(self.regularisation) / peak / peak / mean
        if ridge < MIN_RIDGE:
            warnings.append(
                f"the regularisation was raised to {MIN_RIDGE:g} of the mean squared norm of "
                "the features, next to which it was lost in rounding"
            )
        ridge = min(max(ridge, MIN_RIDGE), MAX_RIDGE)
        return h_ND, h_LD[0] if h_LD else h_ND[:0], ridge

    def _limit_candidates(
        self, items: np.ndarray, probs_NC: np.ndarray, warnings: list[str]
    ) -> np.ndarray:
        """Return the most uncertain items that fit in memory."""
        classes = probs_NC.shape[1]
        fits = max(1, int(self.memory_gib * 2**30 / (2 * 8 * classes**2)))
        if fits >= len(items):
            return items
        warnings.append(
            f"only the {fits} most uncertain of {len(items)} items were candidates: with "
            f"{classes} classes, more do not fit in {self.memory_gib:g} GiB"
        )
        return np.sort(items[top_k(margin(probs_NC[items]), fits)])


def _widened(array: Array, projection_DD: np.ndarray | None, bias: bool) -> Array:
    """Return the features projected, with a constant 1 for the bias.

    In float64, as subtraction reduces the blocks by orders of magnitude.
    """
    xp = namespace(array)
    h_ND = xp.astype(array, xp.float64)
    if projection_DD is not None:
        h_ND = h_ND @ to_backend_of(projection_DD, h_ND)
    if bias:
        ones_N1 = xp.ones((h_ND.shape[0], 1), dtype=xp.float64, device=device(array))
        h_ND = xp.concat([h_ND, ones_N1], axis=1)
    return h_ND
