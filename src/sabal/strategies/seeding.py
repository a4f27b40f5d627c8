"""k-means++ seeding: picks drawn by their squared distance to the nearest pick so far.

This distance never increases, so an old one is an upper bound: draws by old distances are accepted
with probability current / old, and one pass over the pool serves many picks.
"""

from __future__ import annotations

import numpy as np

from sabal.core.arrays import (
    Array,
    namespace,
    power_of_two,
    row_chunks,
    row_norms_squared,
    take_rows,
    to_backend_of,
    to_float64_numpy,
)

CENTRES = 1024  # the number of picks per matrix product

DRAWS, ACCEPTED = 256, 0.25
"""The number of draws made together, and the accepted share below which a pass is made."""

ROUNDING = 32
"""D^2 = ||g_i||^2 + ||g_j||^2 - 2 <g_i, g_j> of duplicates is a few eps ||g_i||^2, of either sign.
Up to this many eps it counts as 0, as otherwise many duplicates of a pick might be drawn."""


class SquaredDistanceSampling:
    """k-means++ seeding (D^2 sampling) among points x_j (x) h_j, stored as factors."""

    def __init__(self, left_NC: Array, features_ND: Array, bias: bool = False) -> None:
        self.left_NC, self.right_ND = left_NC, features_ND
        self.unit = power_of_two(features_ND, minimum=float(bias))
        self.constant = (float(bias) / self.unit) ** 2
        right_N = np.empty(features_ND.shape[0])
        for rows in row_chunks(right_N.size, 8 * features_ND.shape[1]):
            right_N[rows] = row_norms_squared(to_float64_numpy(features_ND[rows]) / self.unit)
        self.norms_N = row_norms_squared(self.left_NC) * (right_N + self.constant)
        self.chosen: list[int] = []
        self.squared: list[float] = []
        self.compared = self.passes = 0

    def sample(self, budget: int, rng: np.random.Generator, *, refresh: int | str = "auto") -> None:
        """Pick until there are `budget` items, or all D^2 are 0; the first has the largest norm."""
        first = int(np.argmax(self.norms_N))
        if self.norms_N[first] == 0:
            return
        self.chosen, self.squared = [first], [float(self.norms_N[first])]
        weight_N = np.full(self.norms_N.size, np.inf)
        self._pass(weight_N)
        draws = DRAWS if refresh == "auto" else int(refresh)
        while len(self.chosen) < budget and weight_N.any():
            accepted = self._draw(weight_N, budget, draws, rng)
            if len(self.chosen) < budget and (refresh != "auto" or accepted < ACCEPTED * draws):
                self._pass(weight_N)

    def _pass(self, weight_N: np.ndarray) -> None:
        """Update D^2 of every item, with one product for all new picks."""
        xp = namespace(self.right_ND)
        left_PC, right_PD, norms_P = self._take(np.asarray(self.chosen[self.compared :]))
        left_CP = to_backend_of(-2.0 * left_PC.T, self.left_NC)
        right_DP = to_backend_of(right_PD.T / self.unit, self.right_ND)
        norms_P = to_backend_of(norms_P, self.right_ND)
        rounding = ROUNDING * float(xp.finfo(self.right_ND.dtype).eps)
        for rows in row_chunks(weight_N.size, 8 * 2 * norms_P.shape[0]):
            right_NP = self.right_ND[rows] @ right_DP + self.constant
            gap_NP = right_NP * (self.left_NC[rows] @ left_CP) + norms_P
            squared_N = self.norms_N[rows] + to_float64_numpy(xp.min(gap_NP, axis=1))
            squared_N = np.where(squared_N > rounding * self.norms_N[rows], squared_N, 0.0)
            weight_N[rows] = np.minimum(weight_N[rows], squared_N)
        weight_N[self.chosen] = 0.0
        self.compared, self.passes = len(self.chosen), self.passes + 1

    def _draw(self, weight_N: np.ndarray, budget: int, draws: int, rng: np.random.Generator) -> int:
        """Draw by old D^2, accept with probability current / old D^2; return the number accepted.

        The first draw after a pass is always accepted, so `draws` = 1 is the plain algorithm.
        """
        cumulative_N = np.cumsum(weight_N)
        total = cumulative_N[-1]
        # Below the total, so that a draw never has weight 0 or exceeds the last index.
        where_T = np.minimum(rng.random(draws) * total, np.nextafter(total, 0.0))
        rows_T = np.searchsorted(cumulative_N, where_T, side="right")
        squared_T = weight_N[rows_T]
        level_T = rng.random(draws) * squared_T
        drawn = self._take(rows_T)
        before = len(self.chosen)
        for start in range(self.compared, before, CENTRES):
            picks = self._take(np.asarray(self.chosen[start : start + CENTRES]))
            squared_T = np.minimum(squared_T, self._squared(drawn, picks).min(axis=1))
        for t in range(draws):
            if 0.0 < squared_T[t] >= level_T[t] and len(self.chosen) < budget:
                self.chosen.append(int(rows_T[t]))
                self.squared.append(float(squared_T[t]))
                pick = tuple(factor[t : t + 1] for factor in drawn)
                squared_T = np.minimum(squared_T, self._squared(drawn, pick)[:, 0])
                squared_T[rows_T == rows_T[t]] = 0.0
        weight_N[rows_T] = squared_T
        return len(self.chosen) - before

    def _squared(self, items: tuple[np.ndarray, ...], picks: tuple[np.ndarray, ...]) -> np.ndarray:
        """Return ||g_i - g_j||^2 between items and picks, given as two factors and norms."""
        (left_TC, right_TD, norms_T), (left_PC, right_PD, norms_P) = items, picks
        products_TP = (left_TC @ left_PC.T) * (right_TD @ right_PD.T + self.constant)
        squared_TP = norms_T[:, None] + norms_P - 2.0 * products_TP
        rounding = ROUNDING * np.finfo(np.float64).eps * norms_T[:, None]
        return np.where(squared_TP > rounding, squared_TP, 0.0)

    def _take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return both factors (features divided by `unit`) and the squared norm, in float64."""
        left_RC, right_RD = take_rows(self.left_NC, rows), take_rows(self.right_ND, rows)
        return to_float64_numpy(left_RC), to_float64_numpy(right_RD) / self.unit, self.norms_N[rows]
