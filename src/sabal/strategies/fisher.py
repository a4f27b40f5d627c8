"""Greedy search on the trace tr(M^{-1} F) of Fisher information, for `bait`.

Axes: P = C D, the parameters of the last layer, class by class; J one item's C - 1 directions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sabal.core.arrays import (
    Array,
    namespace,
    row_chunks,
    take_rows,
    to_backend_of,
    to_float64_numpy,
)

TIE = 1e-8  # gains with a relative difference below this are ties, so that duplicates are equal
REBUILD_SHARE = 1e-5
"""Updates subtract: once the largest block has shrunk to this share, all are recomputed."""
CACHE_BYTES = 2**21
"""Blocks are updated in pieces that fit in the cache, as there is little work per entry."""


class TraceSearch:
    """Algorithm 1 from M_0 on, over the items at `candidates`; indices refer to these.

    Updates K = M^{-1} and Q = M^{-1} F M^{-1} as items are added (sign 1) and removed (sign -1).
    """

    def __init__(
        self,
        h_ND: Array,
        probs_NC: np.ndarray,
        h_LD: Array,
        ridge: float,
        candidates: np.ndarray,
    ) -> None:
        n = len(probs_NC)
        self.ridge = ridge
        self.labeled_CC = probs_NC.T @ probs_NC / -n
        np.fill_diagonal(self.labeled_CC, (probs_NC * complement(probs_NC)).mean(axis=0))
        self.labeled_DD = to_float64_numpy(namespace(h_LD).matrix_transpose(h_LD) @ h_LD)
        self.fisher_PP = np.kron(self.labeled_CC, self.labeled_DD)
        _add_information(self.fisher_PP, h_ND, probs_NC)
        self.fisher_PP /= n + h_LD.shape[0]
        self.h_ND = h_ND if len(candidates) == n else take_rows(h_ND, candidates)
        self.probs_NC = probs_NC[candidates]
        self._rebuild([])

    def trace(self) -> float:
        """Return tr(M^{-1} F)."""
        return float(np.vdot(self.k_PP, self.fisher_PP))

    def forward(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return up to `count` greedy picks, and the decrease of the trace with each."""
        open_N = np.ones(len(self.probs_NC), dtype=bool)
        blocks = _Blocks(self.h_ND, self.probs_NC, self.k_PP, self.q_PP)
        peak = blocks.peak()
        chosen: list[int] = []
        gains: list[float] = []
        while len(chosen) < min(count, len(open_N)):
            if blocks.peak() < REBUILD_SHARE * peak:
                self._rebuild(chosen)
                blocks = _Blocks(self.h_ND, self.probs_NC, self.k_PP, self.q_PP)
                peak = blocks.peak()
            among = blocks.contenders(open_N)
            gains_M = blocks.gains(among)
            best = int(np.argmax(gains_M >= gains_M.max() - TIE * abs(gains_M.max())))
            chosen.append(int(among[best]))
            gains.append(float(gains_M[best]))
            open_N[chosen[-1]] = False
            blocks.update(*self._step(chosen[-1], 1.0), 1.0)
        return np.array(chosen), np.array(gains)

    def backward(self, chosen: np.ndarray, budget: int) -> np.ndarray:
        """Remove items that increase the trace least; return the positions of `budget` items.

        The item picked last is removed on ties.
        """
        kept = np.arange(len(chosen))
        if len(chosen) <= budget:
            return kept
        # Small blocks decide here; recomputed, they have no errors of earlier, large blocks.
        self._rebuild(chosen)
        blocks = _Blocks(take_rows(self.h_ND, chosen), self.probs_NC[chosen], self.k_PP, self.q_PP)
        while len(kept) > budget:
            losses_M = blocks.losses(kept)
            worst = np.flatnonzero(losses_M <= losses_M.min() + TIE * abs(losses_M.min()))[-1]
            blocks.update(*self._step(chosen[kept[worst]], -1.0), -1.0)
            kept = np.delete(kept, worst)
        return kept

    def _rebuild(self, chosen: Sequence[int] | np.ndarray) -> None:
        """Compute K and Q from the labelled and the chosen items, by inversion."""
        self.k_PP = self.q_PP = np.empty(0)  # frees memory for the new ones
        self.k_PP = _inverse(self._m(np.asarray(chosen, dtype=np.int64)))
        self.q_PP = self.k_PP @ self.fisher_PP @ self.k_PP

    def _m(self, chosen: np.ndarray) -> np.ndarray:
        """Return M = lambda I + sum of I(x) over labelled and chosen items.

        I(x) is zero for a common shift of all classes, so the value of M there does not change the
        trace: lambda + 1 avoids rounding errors that grow with lambda^{-2}.
        """
        classes, width = len(self.labeled_CC), len(self.labeled_DD)
        m_PP = np.kron(self.labeled_CC, self.labeled_DD)
        m_PP += np.kron(np.full((classes, classes), 1.0 / classes), np.eye(width))
        m_PP[np.diag_indices_from(m_PP)] += self.ridge
        _add_information(m_PP, take_rows(self.h_ND, chosen), self.probs_NC[chosen])
        return m_PP

    def _step(self, item: int, sign: float) -> tuple[np.ndarray, np.ndarray]:
        """Add or remove an item; return U and Y: K -= sign U U', Q -= sign (U Y' + Y U').

        With V = B (x) h and R R' = (I + sign V'KV)^{-1}, U = K V R and Y = Q V R - sign/2 U U'FU,
        for K F U = Q V R. As B sqrt(p) = 0, the first eigenvector of V'KV is not used.
        """
        h_D, p_C = to_float64_numpy(self.h_ND[item]), self.probs_NC[item]
        classes, width = len(p_C), len(h_D)
        b_CC = np.diag(np.sqrt(p_C)) - np.outer(p_C, np.sqrt(p_C))
        kv_PC, qv_PC = (
            (matrix_PP.reshape(-1, width) @ h_D).reshape(-1, classes) @ b_CC
            for matrix_PP in (self.k_PP, self.q_PP)
        )
        vkv_CC, vqv_CC = (
            b_CC.T @ (h_D @ product_PC.reshape(classes, width, classes))
            for product_PC in (kv_PC, qv_PC)
        )
        values_C, vectors_CC = np.linalg.eigh(vkv_CC)
        r_CJ = vectors_CC[:, 1:] / np.sqrt(_positive(1.0 + sign * values_C[1:]))
        u_PJ = kv_PC @ r_CJ
        y_PJ = qv_PC @ r_CJ - 0.5 * sign * u_PJ @ (r_CJ.T @ vqv_CC @ r_CJ)
        left, right = np.hstack([u_PJ, y_PJ]), np.hstack([y_PJ, u_PJ])
        for rows in row_chunks(len(u_PJ), 8 * len(u_PJ)):
            self.k_PP[rows] -= sign * u_PJ[rows] @ u_PJ.T
            self.q_PP[rows] -= sign * left[rows] @ right.T
        return u_PJ, y_PJ


class _Blocks:
    """A = V'KV and G = V'QV of every item, V = B (x) h, B = diag(sqrt p) - p sqrt(p)'.

    As V V' = I(x), the trace depends on an item only through these (Woodbury).
    """

    def __init__(
        self, h_ND: Array, probs_NC: np.ndarray, k_PP: np.ndarray, q_PP: np.ndarray
    ) -> None:
        n, classes = probs_NC.shape
        self.h_ND, self.probs_NC, self.roots_NC = h_ND, probs_NC, np.sqrt(probs_NC)
        self.a_NCC, self.g_NCC = np.empty((2, n, classes, classes))
        self.g_N, self.ag_N, self.aag_N = np.empty((3, n))
        for rows in row_chunks(n, 8 * classes * (2 * h_ND.shape[1] + 3 * classes)):
            for matrix_PP, blocks_NCC in ((k_PP, self.a_NCC), (q_PP, self.g_NCC)):
                left_NCC = self._times_b(_quadratic(h_ND[rows], matrix_PP, classes), rows)
                blocks_NCC[rows] = self._times_b(np.swapaxes(left_NCC, 1, 2), rows)
            self._summarise(rows)

    def update(self, u_PJ: np.ndarray, y_PJ: np.ndarray, sign: float) -> None:
        """Update the blocks after a step of K and Q, with one product over the features."""
        n, classes = self.probs_NC.shape
        width, directions = self.h_ND.shape[1], u_PJ.shape[1]
        both_CDJ = np.hstack([u_PJ, y_PJ]).reshape(classes, width, -1)
        weights = to_backend_of(both_CDJ.transpose(1, 0, 2).reshape(width, -1), self.h_ND)
        for rows in row_chunks(n, 8 * (width + 6 * classes**2), CACHE_BYTES):
            product = to_float64_numpy(self.h_ND[rows] @ weights).reshape(
                -1, classes, 2 * directions
            )
            both_NCJ = self._times_b(product, rows)
            u_NCJ, y_NCJ = both_NCJ[:, :, :directions], both_NCJ[:, :, directions:]
            u_NJC = np.swapaxes(sign * u_NCJ, 1, 2)
            cross_NCC = y_NCJ @ u_NJC
            self.a_NCC[rows] -= u_NCJ @ u_NJC
            self.g_NCC[rows] -= cross_NCC + np.swapaxes(cross_NCC, 1, 2)
            self._summarise(rows)

    def peak(self) -> float:
        """Return the largest tr G: to first order, the decrease of the trace by the best item."""
        return float(self.g_N.max())

    def contenders(self, open_N: np.ndarray) -> np.ndarray:
        """Return the open items that may have the largest gain; bounds exclude the others.

        1 / (1 + a) is convex, so by Jensen's inequality the gain is at least
        tr(G)^2 / (tr G + tr AG). The same bound for tr[(I + A)^{-1} AG], the difference of tr G and
        the gain, shows that the gain is at most tr G - tr(AG)^2 / (tr AG + tr AAG). Not from the
        paper.
        """
        lower_N = self.g_N * (self.g_N / (self.g_N + self.ag_N))
        upper_N = self.g_N - self.ag_N * (self.ag_N / (self.ag_N + self.aag_N))
        found = np.flatnonzero(open_N & (upper_N >= (1.0 - 1e-6) * lower_N[open_N].max()))
        # If all gains are rounding errors the bounds are, too, and may exclude all items.
        return found if found.size else np.flatnonzero(open_N)

    def gains(self, items: np.ndarray) -> np.ndarray:
        """Return tr[(I + A)^{-1} G], the decrease of the trace by adding each item."""
        identity_CC = np.eye(self.a_NCC.shape[1])
        result_M = np.empty(len(items))
        for rows in row_chunks(len(items), 8 * 4 * identity_CC.size, CACHE_BYTES):
            a_MCC, g_MCC = self.a_NCC[items[rows]], self.g_NCC[items[rows]]
            result_M[rows] = np.einsum("mcc->m", np.linalg.solve(identity_CC + a_MCC, g_MCC))
        return result_M

    def losses(self, items: np.ndarray) -> np.ndarray:
        """Return tr[(I - A)^{-1} G], the increase by removing each item (may be near singular)."""
        result_M = np.empty(len(items))
        for rows in row_chunks(len(items), 8 * 4 * self.a_NCC[0].size, CACHE_BYTES):
            values_MC, vectors_MCC = np.linalg.eigh(self.a_NCC[items[rows]])
            turned_MCC = self.g_NCC[items[rows]] @ vectors_MCC
            diagonal_MC = (vectors_MCC * turned_MCC).sum(axis=1)
            result_M[rows] = (diagonal_MC / _positive(1.0 - values_MC)).sum(axis=1)
        return result_M

    def _times_b(self, x_NCK: np.ndarray, rows: slice) -> np.ndarray:
        """Return B'x: sqrt(p_c) (x_c - sum_y p_y x_y)."""
        centred_NCK = x_NCK - self.probs_NC[rows][:, None, :] @ x_NCK
        centred_NCK *= self.roots_NC[rows][:, :, None]
        return centred_NCK

    def _summarise(self, rows: slice) -> None:
        """Compute the traces of G, AG and AAG, which are positive except for rounding."""
        a_NCC, g_NCC, tiny = self.a_NCC[rows], self.g_NCC[rows], np.finfo(np.float64).tiny
        ag_NCC = a_NCC @ g_NCC
        self.g_N[rows] = np.maximum(np.einsum("ncc->n", g_NCC), tiny)
        self.ag_N[rows] = np.maximum(np.einsum("ncc->n", ag_NCC), tiny)
        self.aag_N[rows] = np.maximum(np.einsum("ncd,ncd->n", a_NCC, ag_NCC), 0.0)


def _quadratic(h_ND: Array, matrix_PP: np.ndarray, classes: int) -> np.ndarray:
    """Return (I (x) h)' matrix (I (x) h) of every row, a row of class blocks at a time."""
    xp = namespace(h_ND)
    n, width = h_ND.shape
    result_NCC = np.empty((n, classes, classes))
    for c in range(classes):
        block = to_backend_of(matrix_PP[c * width : (c + 1) * width, c * width :], h_ND)
        product = xp.reshape(h_ND @ block, (n, classes - c, width))
        result_NCC[:, c, c:] = to_float64_numpy(xp.sum(product * h_ND[:, None, :], axis=2))
        result_NCC[:, c:, c] = result_NCC[:, c, c:]
    return result_NCC


def _add_information(total_PP: np.ndarray, h_ND: Array, probs_NC: np.ndarray) -> None:
    """Add sum_x (diag(p) - p p') (x) h h' to `total_PP`, a row of class blocks at a time."""
    xp = namespace(h_ND)
    classes, width = probs_NC.shape[1], h_ND.shape[1]
    total_CDCD = total_PP.reshape(classes, width, classes, width)
    for rows in row_chunks(len(probs_NC), 8 * 2 * classes * width):
        h, p = h_ND[rows], probs_NC[rows]
        rest_NC = complement(p)
        for c in range(classes):
            row_NC = -p[:, c : c + 1] * p[:, c:]
            row_NC[:, 0] = p[:, c] * rest_NC[:, c]
            outer = xp.reshape(to_backend_of(row_NC, h)[:, :, None] * h[:, None, :], (len(p), -1))
            blocks_DCD = to_float64_numpy(xp.matrix_transpose(h) @ outer).reshape(width, -1, width)
            total_CDCD[c, :, c:] += blocks_DCD
            total_CDCD[c + 1 :, :, c] += blocks_DCD[:, 1:].transpose(1, 2, 0)


def _inverse(m_PP: np.ndarray) -> np.ndarray:
    """Return the inverse of a positive definite matrix, which is overwritten."""
    from scipy.linalg import cho_factor, cho_solve

    factor = cho_factor(m_PP.T, lower=True, overwrite_a=True, check_finite=False)
    identity_PP = np.eye(len(m_PP), order="F")
    return cho_solve(factor, identity_PP, overwrite_b=True, check_finite=False).T


def complement(probs_NC: np.ndarray) -> np.ndarray:
    """Return 1 - p without cancellation, so that p (1 - p) is accurate for p near 1."""
    return probs_NC @ (1.0 - np.eye(probs_NC.shape[1]))


def _positive(values: np.ndarray) -> np.ndarray:
    """Clip the eigenvalues of I - A, which are positive except for rounding."""
    return np.maximum(values, 1e-12)
