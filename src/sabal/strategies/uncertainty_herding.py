"""Uncertainty Herding: cover the uncertain part of the pool by a kernel that narrows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.core.arrays import (
    CACHE_BYTES,
    Array,
    row_chunks,
    row_norms_squared,
    take_rows,
    to_float64_numpy,
)
from sabal.core.checks import check_flag, check_number, check_whole
from sabal.pools.pool import Pool, Shard
from sabal.predictions.uncertainty import margin
from sabal.selection import Selection
from sabal.strategies.base import Strategy, make_selection
from sabal.strategies.greedy_cover import kernel_bytes
from sabal.strategies.max_herding import MIN_SIGMA, herd, herding_evidence
from sabal.strategies.unit_features import CANDIDATES, uniform_rows, unit_features

COPIES = 1e-12  # items of unit length are copies if their squared distance is at most this
CERTAIN = "the model is certain of every item: all are covered alike"


@dataclass(frozen=True, kw_only=True)
class UncertaintyHerding(Strategy):
    """Cover the uncertain part of the pool (Uncertainty Herding, UHerding; Bae et al. 2025).

    Features are scaled to unit length. With L the labelled items and the picks so far, each pick
    maximises the uncertainty coverage of the n items (Algorithm 1 of the paper):

        x* = argmax_x 1/n sum_i U(x_i) max(k(x_i, x) - max_{x' in L} k(x_i, x'), 0)

    with k(x, x') = exp(-||x - x'||^2 / sigma^2). U is the margin uncertainty 1 - (q_(1) - q_(2)) of
    the calibrated prediction q. The radius is that of the labels: sigma is the smallest distance
    between two of the labelled items, so that with many labels the strategy approaches `margin`.

    Parameters
    ----------
    sigma : float, optional
        The radius of the kernel; by default the smallest positive distance between labelled items,
        and 1 with fewer than two.
    calibrated : bool
        Whether U is computed from `label_probs` where they are given, and not from `probs`.
    candidates : int
        A larger pool is represented by a uniform sample of this size, as in the authors' code.

    Notes
    -----
    The paper calibrates by temperature scaling: a second model is trained on 70 % of the labels,
    and the temperature of least calibration error on the other 30 % divides the logits. Here q is
    `label_probs`, which `sabal.query`, the loop and the simulations compute in the same way: a
    temperature fitted to held-out predictions (by cross-validation and likelihood, so that every
    label serves). Where there are no `label_probs`, q is the prediction as it is. With features
    alone, where U = 1, use `max-herding`.

    References
    ----------
    W. Bae, D. J. Sutherland and G. L. Oliveira, "Uncertainty Herding: One Active Learning Method
    for All Label Budgets", ICLR 2025.
    """

    name: ClassVar[str] = "uncertainty-herding"
    needs: ClassVar[tuple[str, ...]] = ("features", "label_probs|probs|scores")
    paper: ClassVar[str] = "Bae et al. 2025"
    cost: ClassVar[str] = "O(m^2 d) for a sample of m (at most 35,000)"
    streams: ClassVar[bool] = True

    sigma: float | None = None
    calibrated: bool = True
    candidates: int = CANDIDATES

    def __post_init__(self) -> None:
        if self.sigma is not None:
            check_number(self.sigma, "sigma", above=MIN_SIGMA)
        check_flag(self.calibrated, "calibrated")
        check_whole(self.candidates, "candidates")

    def select(self, pool: Pool, budget: int, rng: np.random.Generator) -> Selection:
        """Return the picks in order; scores are the share of the uncertainty that each covers."""
        rows = uniform_rows(pool, self.candidates, budget, rng)
        calibrated = self.calibrated and pool.has("label_probs")
        mass_M = pool.map_rows(margins_at, rows, calibrated)
        warnings = []
        if not mass_M.any():
            mass_M = np.ones(rows.size)
            warnings.append(CERTAIN)
        points_MD, labeled_LD = unit_features(pool, rows)
        sigma = self.sigma or labeled_distance(labeled_LD)
        cover = herd(points_MD, mass_M, labeled_LD, sigma, budget, kernel_bytes(pool))
        if cover.idle:
            warnings.append(
                f"{cover.idle} of {budget} items cover nothing that the others do not: they are "
                "the most uncertain ones left"
            )
        evidence = herding_evidence(cover, rows.size, labeled_LD, sigma)
        return make_selection(
            self,
            pool,
            rows[cover.indices],
            cover.gains,
            evidence={**evidence, "calibrated": calibrated},
            warnings=tuple(warnings),
        )


def margins_at(shard: Shard, rows: np.ndarray, calibrated: bool) -> np.ndarray:
    """Return the margin uncertainty of some rows, by `label_probs` or by `probs`; or scores."""
    if shard.pool.has("scores"):
        return shard.pool.uncertainty()[rows - shard.start]
    probs_NC = shard.pool.label_probs if calibrated else shard.pool.probs
    return margin(take_rows(probs_NC, rows - shard.start))


def labeled_distance(labeled_LD: Array | None) -> float:
    """Return the smallest distance between labelled items that are no copies; 1 without any."""
    if labeled_LD is None:
        return 1.0
    points_LD = to_float64_numpy(labeled_LD)
    squares_L = row_norms_squared(points_LD)
    smallest = np.inf
    for part in row_chunks(len(points_LD), 8 * len(points_LD), CACHE_BYTES):
        between_KL = squares_L[part, None] + squares_L - 2.0 * points_LD[part] @ points_LD.T
        smallest = min(smallest, between_KL[between_KL > COPIES].min(initial=np.inf))
    return float(np.sqrt(smallest)) if np.isfinite(smallest) else 1.0
