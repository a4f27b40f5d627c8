"""MaxHerding: cover the whole pool by a smooth kernel, greedily."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.core.arrays import Array
from sabal.core.checks import check_number, check_whole
from sabal.pools.pool import Pool
from sabal.selection import Selection
from sabal.strategies.base import Strategy, make_selection
from sabal.strategies.greedy_cover import Cover, Coverage, Kernel, in_units_of, kernel_bytes
from sabal.strategies.unit_features import CANDIDATES, uniform_rows, unit_features

MIN_SIGMA = 1e-6  # the minimum radius; far below it an item of unit length covers only itself


@dataclass(frozen=True, kw_only=True)
class MaxHerding(Strategy):
    """Cover the pool by a smooth kernel, item by item (MaxHerding; Bae et al. 2024).

    Features are scaled to unit length. With L the labelled items and the picks so far, each pick
    maximises the generalised coverage of the n items (Algorithm 1 of the paper):

        x* = argmax_x 1/n sum_i max(k(x_i, x) - max_{x' in L} k(x_i, x'), 0)

    with k(x, x') = exp(-||x - x'||^2 / sigma^2). No model is used. The top-hat kernel in place of
    this one would be `prob-cover`.

    Parameters
    ----------
    sigma : float
        The radius of the kernel; 1 as in the paper.
    candidates : int
        A larger pool is represented by a uniform sample of this size, as in the authors' code.

    Notes
    -----
    The gain of an item never increases, so old gains are upper bounds and few are computed again
    (see `sabal.strategies.greedy_cover`); the picks are those of the plain algorithm.

    References
    ----------
    W. Bae, J. Noh and D. J. Sutherland, "Generalized Coverage for More Robust Low-Budget Active
    Learning", ECCV 2024.
    """

    name: ClassVar[str] = "max-herding"
    needs: ClassVar[tuple[str, ...]] = ("features",)
    paper: ClassVar[str] = "Bae et al. 2024"
    cost: ClassVar[str] = "O(m^2 d) for a sample of m (at most 35,000)"
    streams: ClassVar[bool] = True

    sigma: float = 1.0
    candidates: int = CANDIDATES

    def __post_init__(self) -> None:
        check_number(self.sigma, "sigma", above=MIN_SIGMA)
        check_whole(self.candidates, "candidates")

    def select(self, pool: Pool, budget: int, rng: np.random.Generator) -> Selection:
        """Return the picks in order; scores are the coverage that each adds."""
        rows = uniform_rows(pool, self.candidates, budget, rng)
        points_MD, labeled_LD = unit_features(pool, rows)
        mass_M = np.ones(rows.size)
        cover = herd(points_MD, mass_M, labeled_LD, self.sigma, budget, kernel_bytes(pool))
        chosen = rows[cover.indices]
        warnings: tuple[str, ...] = ()
        if cover.idle:
            free = np.setdiff1d(rows, chosen[: budget - cover.idle])
            chosen[budget - cover.idle :] = rng.choice(free, size=cover.idle, replace=False)
            why = "the others cover every item of the pool"
            warnings = (f"{cover.idle} of {budget} items were drawn uniformly: {why}",)
        evidence = herding_evidence(cover, rows.size, labeled_LD, self.sigma)
        return make_selection(self, pool, chosen, cover.gains, evidence=evidence, warnings=warnings)


def herd(
    points_MD: Array,
    mass_M: np.ndarray,
    labeled_LD: Array | None,
    sigma: float,
    budget: int,
    memory: int,
) -> Cover:
    """Cover points with masses by exp(-d^2 / sigma^2), greedily."""
    # `Kernel` has exp(-d^2 / 2 r^2).
    points_MD, labeled_LD = in_units_of(sigma / np.sqrt(2.0), points_MD, labeled_LD)
    mass_M = mass_M / mass_M.sum()
    return Coverage(Kernel(points_MD), mass_M, labeled_LD, memory).greedy(budget)


def herding_evidence(
    cover: Cover, size: int, labeled_LD: Array | None, sigma: float
) -> dict[str, float | int]:
    """Return what both strategies report."""
    return {
        "candidates": size,
        "labeled": 0 if labeled_LD is None else int(labeled_LD.shape[0]),
        "sigma": sigma,
        "coverage_before": cover.before,
        "coverage": cover.after,
    }
