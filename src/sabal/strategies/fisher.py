"""Greedy search on the trace tr(M^{-1} F) of Fisher information, for `bait`.

Without chosen items M is a Kronecker product but for lambda, so that it is diagonal in the right
coordinates: E = C - 1 directions of the classes (a common shift of all classes has no information),
and the eigenvectors of the labelled features. Each item adds E directions to M. As long as these
are few, K = M^{-1} is kept as the diagonal minus a product of two tall matrices (Woodbury), and
Q = K F K is never formed.

Axes: P = E D, the parameters of the last layer in these coordinates; J one item's E directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sabal.core.arrays import (
    Array,
    namespace,
    row_chunks,
    take_rows,
    to_backend_of,
    to_float64_numpy,
    to_numpy,
    top_k,
)

TIE = 1e-8  # gains with a relative difference below this are ties, so that duplicates are equal
REBUILD_SHARE = 1e-5
"""Updates subtract: once the largest block has shrunk to this share, all are recomputed."""
CACHE_BYTES = 2**21
"""Blocks are updated in pieces that fit in the cache, as there is little work per entry."""
PRODUCT_BYTES = 2**24  # rows of features in a product with many of its own size
SINGLE_FROM = 10**6
"""Blocks of at least this many numbers (items times P) are in single precision at first. Gains that
these do not tell apart are computed in double precision, as is all that is kept."""
SINGLE_ERROR = 1e-5  # an upper estimate of their relative errors, before blocks shrink
SINGLE_SHARE = (
    1e-3  # below this share of the largest block, they are recomputed in double precision
)
MAX_CLOSE = 16  # with more gains that are not told apart, blocks are in double precision
SINGLE_RIDGE = 1e9  # for lambda beyond this, or below its inverse, single precision might overflow
PART = 128  # symmetric D x D matrices are computed in parts of this width, each pair once
FIRST = 64  # items whose gains are computed before those of all others that may be better


class TraceSearch:
    """Algorithm 1 from M_0 on, over the items at `candidates`; indices refer to these.

    Updates K = M^{-1} and the trace as items are added (sign 1) and removed (sign -1).
    """

    def __init__(
        self,
        h_ND: Array,
        probs_NC: np.ndarray,
        h_LD: Array,
        ridge: float,
        candidates: np.ndarray,
    ) -> None:
        n, labeled = len(probs_NC), h_LD.shape[0]
        weights_E, self.basis_CE = _class_basis(probs_NC)
        squares_D, h_ND = _feature_basis(h_ND, h_LD)
        labeled_P = np.multiply.outer(weights_E, squares_D).ravel()
        self.m_P = ridge + labeled_P
        self.fisher_PP = np.diag(labeled_P)
        _add_information(self.fisher_PP, h_ND, probs_NC, self.basis_CE)
        self.fisher_PP /= n + labeled
        self.h_ND = h_ND if len(candidates) == n else take_rows(h_ND, candidates)
        self.probs_NC = probs_NC[candidates]
        self.k = Inverse(1.0 / self.m_P)
        self.trace = float(self.k.base @ np.diagonal(self.fisher_PP))
        self.change = 0.0  # of the trace, by the last step

    def forward(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return up to `count` greedy picks, and the decrease of the trace with each."""
        open_N = np.ones(len(self.probs_NC), dtype=bool)
        blocks = self.blocks(single=self._may_be_single)
        chosen: list[int] = []
        gains: list[float] = []
        while len(chosen) < min(count, len(open_N)):
            if blocks.shrunk() < REBUILD_SHARE:
                self.invert(chosen)
                blocks = self.blocks()
            elif blocks.single and blocks.shrunk() < SINGLE_SHARE:
                blocks = self.blocks()
            among, gains_M = blocks.best(open_N)
            if blocks.single and among.size > MAX_CLOSE:
                blocks = self.blocks()
                among, gains_M = blocks.best(open_N)
            elif blocks.single and among.size > 1:
                gains_M = np.array([self.gain(item) for item in among])
            best = int(np.argmax(gains_M >= gains_M.max() - TIE * abs(gains_M.max())))
            chosen.append(int(among[best]))
            open_N[chosen[-1]] = False
            blocks.update(*self.step(chosen[-1], 1.0), 1.0)
            gains.append(self.change)
        return np.array(chosen), np.array(gains)

    @property
    def _may_be_single(self) -> bool:
        size = len(self.probs_NC) * len(self.m_P)
        return size >= SINGLE_FROM and 1.0 / SINGLE_RIDGE < self.m_P.min() < SINGLE_RIDGE

    def backward(self, chosen: np.ndarray, budget: int) -> np.ndarray:
        """Remove items that increase the trace least; return the positions of `budget` items.

        The item picked last is removed on ties.
        """
        kept = np.arange(len(chosen))
        if len(chosen) <= budget:
            return kept
        # Small blocks decide here; recomputed, they have no errors of earlier, large blocks.
        joint = self.k.is_diagonal
        if joint:
            blocks: Any = JointBlocks(*self.k.of_directions(), len(chosen))
        else:
            self.invert(chosen)
            blocks = self.blocks(chosen)
        while len(kept) > budget:
            losses_M = blocks.losses(kept)
            worst = np.flatnonzero(losses_M <= losses_M.min() + TIE * abs(losses_M.min()))[-1]
            if joint:
                blocks.remove(kept[worst])
                self.trace += float(losses_M[worst])
            else:
                blocks.update(*self.step(chosen[kept[worst]], -1.0), -1.0)
            kept = np.delete(kept, worst)
        return kept

    def invert(self, chosen: Sequence[int] | np.ndarray) -> None:
        """Compute K and the trace from the labelled and the chosen items, by inversion."""
        items = np.asarray(chosen, dtype=np.int64)
        m_PP = np.diag(self.m_P)
        _add_information(m_PP, take_rows(self.h_ND, items), self.probs_NC[items], self.basis_CE)
        self.k = Inverse(_inverse(m_PP))
        self.trace = float(np.vdot(self.k.base, self.fisher_PP))

    def blocks(self, items: np.ndarray | None = None, *, single: bool = False) -> Blocks:
        """Return the blocks of some items, or of all, computed from K and Q as matrices."""
        h_MD, probs_MC = self.h_ND, self.probs_NC
        if items is not None:
            h_MD, probs_MC = take_rows(h_MD, items), probs_MC[items]
        if single:
            h_MD = namespace(h_MD).astype(h_MD, namespace(h_MD).float32)
        return Blocks(h_MD, probs_MC, self.basis_CE, *self.k.with_information(self.fisher_PP))

    def gain(self, item: int) -> float:
        """Return tr[(I + V'KV)^{-1} V'QV], the decrease of the trace by adding an item."""
        v_PJ = self._directions(item)
        kv_PJ, _ = self.k.times(v_PJ)
        g_JJ = kv_PJ.T @ self._information_times(kv_PJ)
        return float(np.trace(np.linalg.solve(np.eye(len(g_JJ)) + v_PJ.T @ kv_PJ, g_JJ)))

    def step(self, item: int, sign: float) -> tuple[np.ndarray, np.ndarray]:
        """Add or remove an item; return U and Y: K -= sign U U', Q -= sign (U Y' + Y U').

        With I(x) = V V' and R R' = (I + sign V'KV)^{-1}, U = K V R and Y = K F U - sign/2 U U'FU.
        """
        v_PJ = self._directions(item)
        kv_PJ, v_KJ = self.k.times(v_PJ)
        values_J, vectors_JJ = np.linalg.eigh(v_PJ.T @ kv_PJ)
        roots_J = np.sqrt(_positive(1.0 + sign * values_J))
        u_PJ = kv_PJ @ (vectors_JJ / roots_J)
        fu_PJ = self._information_times(u_PJ)
        kfu_PJ, fu_KJ = self.k.times(fu_PJ)
        ufu_JJ = u_PJ.T @ fu_PJ
        x_KJ = np.concatenate([v_KJ, (vectors_JJ * roots_J).T])
        self.k.subtract(u_PJ, sign, x_KJ, np.concatenate([fu_KJ, ufu_JJ]))
        self.change = float(np.trace(ufu_JJ))
        self.trace -= sign * self.change
        return u_PJ, kfu_PJ - 0.5 * sign * u_PJ @ ufu_JJ

    def _information_times(self, x_PJ: np.ndarray) -> np.ndarray:
        """Return F x; a D x D block of F is symmetric, and is read once for both its places."""
        directions, columns = self.basis_CE.shape[1], x_PJ.shape[1]
        x_EDJ = x_PJ.reshape(directions, -1, columns)
        fisher_EDED = self.fisher_PP.reshape(*x_EDJ.shape[:2], *x_EDJ.shape[:2])
        result_EDJ = np.zeros_like(x_EDJ)
        for e in range(directions):
            result_EDJ[e] += fisher_EDED[e, :, e] @ x_EDJ[e]
            for f in range(e + 1, directions):
                both = fisher_EDED[e, :, f] @ np.hstack([x_EDJ[f], x_EDJ[e]])
                result_EDJ[e] += both[:, :columns]
                result_EDJ[f] += both[:, columns:]
        return result_EDJ.reshape(x_PJ.shape)

    def _directions(self, item: int) -> np.ndarray:
        """Return V with I(x) = V V': the root of T'(diag p - pp')T, (x) h."""
        h_D = to_float64_numpy(self.h_ND[item])
        covariance_EE = _covariances(self.probs_NC[item : item + 1], self.basis_CE)[0]
        values_J, vectors_EJ = np.linalg.eigh(covariance_EE)
        return np.kron(vectors_EJ * np.sqrt(np.maximum(values_J, 0.0)), h_D[:, None])


class Inverse:
    """K as a matrix, or as a diagonal minus U U' while U has at most P columns.

    In the latter case K = (diagonal^{-1} + V V')^{-1} with the directions V of all added items. X
    with diagonal V = U X is kept, and U'FU: X'X = I + V' diagonal V, and K V = U X^{-T}.
    """

    def __init__(self, base: np.ndarray) -> None:
        self.base = base
        self.columns = 0
        self._u_PK = np.empty((len(base), 0), order="F")
        self._x_KK, self._ufu_KK = np.zeros((2, 0, 0))

    @property
    def is_diagonal(self) -> bool:
        """Whether K is a diagonal minus U U'."""
        return self.base.ndim == 1

    def times(self, x_PJ: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return K x and U'x."""
        if not self.is_diagonal:
            return self.base @ x_PJ, np.empty((0, x_PJ.shape[1]))
        u_PK = self._u_PK[:, : self.columns]
        x_KJ = u_PK.T @ x_PJ
        return self.base[:, None] * x_PJ - u_PK @ x_KJ, x_KJ

    def subtract(self, u_PJ: np.ndarray, sign: float, x_KJ: np.ndarray, ufu_KJ: np.ndarray) -> None:
        """Make K the difference K - sign U U', with new columns of X and of U'FU."""
        start, stop = self.columns, self.columns + u_PJ.shape[1]
        if self.is_diagonal and (sign < 0 or stop > len(self.base)):
            self.base = self.dense()
        if not self.is_diagonal:
            for rows in row_chunks(len(u_PJ), 8 * len(u_PJ)):
                self.base[rows] -= sign * u_PJ[rows] @ u_PJ.T
            return
        if stop > len(self._x_KK):
            self._grow(min(2 * stop, len(self.base)))
        self._u_PK[:, start:stop] = u_PJ
        self._x_KK[:stop, start:stop] = x_KJ
        self._ufu_KK[:stop, start:stop] = ufu_KJ
        self._ufu_KK[start:stop, :stop] = ufu_KJ.T
        self.columns = stop

    def _grow(self, columns: int) -> None:
        grown_PK = np.empty((len(self.base), columns), order="F")
        grown_PK[:, : self.columns] = self._u_PK[:, : self.columns]
        more = columns - len(self._x_KK)
        self._u_PK = grown_PK
        self._x_KK, self._ufu_KK = (
            np.pad(each, ((0, more), (0, more))) for each in (self._x_KK, self._ufu_KK)
        )

    def dense(self) -> np.ndarray:
        """Return K as a matrix."""
        if not self.is_diagonal:
            return self.base
        u_PK = self._u_PK[:, : self.columns]
        return np.diag(self.base) - u_PK @ u_PK.T

    def with_information(self, fisher_PP: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return K and Q = K F K as matrices; K as a vector while it is a diagonal."""
        if self.is_diagonal and not self.columns:
            q_PP = self.base[:, None] * fisher_PP
            q_PP *= self.base
            return self.base, q_PP
        k_PP = self.dense()
        return k_PP, k_PP @ fisher_PP @ k_PP

    def of_directions(self) -> tuple[np.ndarray, np.ndarray]:
        """Return I - V'KV = (X'X)^{-1} and V'QV = X^{-1} U'FU X^{-T} for all added items."""
        size = slice(0, self.columns)
        x_KK = np.linalg.inv(self._x_KK[size, size])
        return x_KK @ x_KK.T, x_KK @ self._ufu_KK[size, size] @ x_KK.T


class JointBlocks:
    """W = I - V'KV and G = V'QV of all chosen items, from which items are removed.

    W is the inverse of I + V' diagonal V (see `Inverse`). Without item i it is the inverse of the
    rest of that matrix, a Schur complement: with S = W_:i W_ii^{-1}, W becomes W - S W_i: and G
    becomes G - S G_i: - G_:i S' + S G_ii S'.
    """

    def __init__(self, w_KK: np.ndarray, g_KK: np.ndarray, items: int) -> None:
        self._w_KK, self._g_KK = w_KK, g_KK
        self._directions = len(w_KK) // items

    def losses(self, items: np.ndarray) -> np.ndarray:
        """Return tr(W_ii^{-1} G_ii), the increase of the trace by removing each item."""
        own_MJ = items[:, None] * self._directions + np.arange(self._directions)
        w_MJJ, g_MJJ = (
            matrix_KK[own_MJ[:, :, None], own_MJ[:, None, :]]
            for matrix_KK in (self._w_KK, self._g_KK)
        )
        return np.einsum("mjj->m", np.linalg.solve(w_MJJ, g_MJJ))

    def remove(self, item: int) -> None:
        """Remove an item; its rows and columns are not used any more."""
        own = slice(item * self._directions, (item + 1) * self._directions)
        s_KJ = np.linalg.solve(self._w_KK[own, own], self._w_KK[own]).T
        g_JK = self._g_KK[own] - 0.5 * self._g_KK[own, own] @ s_KJ.T
        self._w_KK -= s_KJ @ self._w_KK[own].copy()
        change_KK = s_KJ @ g_JK
        self._g_KK -= change_KK + change_KK.T


class Blocks:
    """A = V'KV and G = V'QV of every item, V = B (x) h, B = diag(sqrt p) - p sqrt(p)'.

    As V V' = I(x), the trace depends on an item only through these (Woodbury). They have the
    precision of the features.
    """

    def __init__(
        self,
        h_ND: Array,
        probs_NC: np.ndarray,
        basis_CE: np.ndarray,
        k_PP: np.ndarray,
        q_PP: np.ndarray,
    ) -> None:
        n, classes = probs_NC.shape
        dtype = to_numpy(h_ND[:1]).dtype
        self.single = dtype == np.float32
        self.h_ND, self.probs_NC = h_ND, probs_NC.astype(dtype, copy=False)
        self.roots_NC, self.basis_CE = np.sqrt(probs_NC).astype(dtype, copy=False), basis_CE
        self.a_NCC, self.g_NCC = np.empty((2, n, classes, classes), dtype=dtype)
        self.g_N, self.ag_N, self.aag_N = np.empty((3, n))
        for rows in row_chunks(n, 8 * (h_ND.shape[1] + 4 * classes**2), PRODUCT_BYTES):
            for matrix_PP, blocks_NCC in ((k_PP, self.a_NCC), (q_PP, self.g_NCC)):
                form_NCE = basis_CE @ quadratic_forms(h_ND[rows], matrix_PP)
                left_NEC = np.swapaxes(self._times_b(form_NCE, rows), 1, 2)
                blocks_NCC[rows] = self._times_b(basis_CE @ left_NEC, rows)
            self._summarise(rows)
        self._first_peak = self.g_N.max()

    def update(self, u_PJ: np.ndarray, y_PJ: np.ndarray, sign: float) -> None:
        """Update the blocks after a step of K and Q, with one product over the features."""
        n, classes = self.probs_NC.shape
        width, directions = self.h_ND.shape[1], u_PJ.shape[1]
        both_EDJ = np.hstack([u_PJ, y_PJ]).reshape(self.basis_CE.shape[1], -1)
        both_CDJ = (self.basis_CE @ both_EDJ).reshape(classes, width, -1)
        weights = to_backend_of(both_CDJ.transpose(1, 0, 2).reshape(width, -1), self.h_ND)
        for rows in row_chunks(n, 8 * (width + 6 * classes**2), CACHE_BYTES):
            product = to_numpy(self.h_ND[rows] @ weights).reshape(-1, classes, 2 * directions)
            both_NCJ = self._times_b(product, rows)
            u_NCJ, y_NCJ = both_NCJ[:, :, :directions], both_NCJ[:, :, directions:]
            u_NJC = np.swapaxes(u_NCJ if sign > 0 else -u_NCJ, 1, 2)
            cross_NCC = y_NCJ @ u_NJC
            self.a_NCC[rows] -= u_NCJ @ u_NJC
            self.g_NCC[rows] -= cross_NCC + np.swapaxes(cross_NCC, 1, 2)
            self._summarise(rows)

    def shrunk(self) -> float:
        """Return the largest tr G as a share of what it was at first.

        To first order, tr G is the decrease of the trace by an item.
        """
        return float(self.g_N.max() / self._first_peak)

    def best(self, open_N: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the open items that may have the largest gain, and their gains.

        In double precision these are the contenders; in single precision, those of them whose gains
        are the same within their errors.
        """
        among = self.contenders(open_N)
        gains_M = self.gains(among)
        if not self.single:
            return among, gains_M
        close = gains_M >= gains_M.max() * (1.0 - SINGLE_ERROR / self.shrunk())
        return among[close], gains_M[close]

    def contenders(self, open_N: np.ndarray) -> np.ndarray:
        """Return the open items that may have the largest gain; bounds exclude the others.

        1 / (1 + a) is convex, so by Jensen's inequality the gain is at least
        tr(G)^2 / (tr G + tr AG). The same bound for tr[(I + A)^{-1} AG], the difference of tr G and
        the gain, shows that the gain is at most tr G - tr(AG)^2 / (tr AG + tr AAG). Not from the
        paper. The gains of the items with the largest bounds exclude most of what is left.
        """
        lower_N = self.g_N * (self.g_N / (self.g_N + self.ag_N))
        upper_N = self.g_N - self.ag_N * (self.ag_N / (self.ag_N + self.aag_N))
        upper_N[~open_N] = -np.inf
        slack = 1.0 - (SINGLE_ERROR / self.shrunk() if self.single else 1e-6)
        found = np.flatnonzero(open_N & (upper_N >= slack * lower_N[open_N].max()))
        if found.size > FIRST:
            first = found[top_k(upper_N[found], FIRST)]
            found = found[upper_N[found] >= slack * self.gains(first).max()]
        # If all gains are rounding errors the bounds are, too, and may exclude all items.
        return found if found.size else np.flatnonzero(open_N)

    def gains(self, items: np.ndarray) -> np.ndarray:
        """Return tr[(I + A)^{-1} G], the decrease of the trace by adding each item."""
        identity_CC = np.eye(self.a_NCC.shape[1], dtype=self.a_NCC.dtype)
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
        a_NCC, g_NCC, tiny = self.a_NCC[rows], self.g_NCC[rows], np.finfo(self.a_NCC.dtype).tiny
        ag_NCC = a_NCC @ g_NCC
        self.g_N[rows] = np.maximum(np.einsum("ncc->n", g_NCC), tiny)
        self.ag_N[rows] = np.maximum(np.einsum("ncc->n", ag_NCC), tiny)
        self.aag_N[rows] = np.maximum(np.einsum("ncd,ncd->n", a_NCC, ag_NCC), 0.0)


def quadratic_forms(h_ND: Array, matrix_PP: np.ndarray) -> np.ndarray:
    """Return (I (x) h)' matrix (I (x) h) of every row; a diagonal may be given as a vector.

    h'Sh depends only on the symmetric part of S, so every pair of features is multiplied once.
    """
    xp = namespace(h_ND)
    n, width = h_ND.shape
    directions = len(matrix_PP) // width
    if matrix_PP.ndim == 1:
        diagonal_ED = to_backend_of(matrix_PP.reshape(directions, width), h_ND)
        values_NE = to_float64_numpy((h_ND * h_ND) @ xp.matrix_transpose(diagonal_ED))
        return values_NE[:, :, None] * np.eye(directions)
    result_NEE = np.zeros((n, directions, directions))
    matrix_EDED = matrix_PP.reshape(directions, width, directions, width)
    for e in range(directions):
        for f in range(e, directions):
            block_DD = matrix_EDED[e, :, f] + matrix_EDED[e, :, f].T
            for part in row_chunks(width, 1, PART):
                rest = slice(part.start, width)
                weights = block_DD[rest, part].copy()
                weights[: part.stop - part.start] /= 2.0
                product = h_ND[:, rest] @ to_backend_of(weights, h_ND)
                result_NEE[:, e, f] += to_float64_numpy(xp.sum(product * h_ND[:, part], axis=1))
            result_NEE[:, f, e] = result_NEE[:, e, f]
    return result_NEE


def _add_information(
    total_PP: np.ndarray, h_ND: Array, probs_NC: np.ndarray, basis_CE: np.ndarray
) -> None:
    """Add sum_x T'(diag(p) - p p')T (x) h h' to `total_PP`; each pair of features once."""
    xp = namespace(h_ND)
    width, directions = h_ND.shape[1], basis_CE.shape[1]
    total_EDED = total_PP.reshape(directions, width, directions, width)
    parts = list(row_chunks(width, 1, PART))
    for rows in row_chunks(len(probs_NC), 8 * (2 * width + directions**2), PRODUCT_BYTES):
        h_MD = h_ND[rows]
        columns_DM = xp.matrix_transpose(h_MD)
        weights_MEE = _covariances(probs_NC[rows], basis_CE)
        for e in range(directions):
            for f in range(e, directions):
                weighted_MD = h_MD * to_backend_of(weights_MEE[:, e, f], h_MD)[:, None]
                for part in parts:
                    product = columns_DM[part] @ weighted_MD[:, part.start :]
                    total_EDED[e, part, f, part.start :] += to_float64_numpy(product)
    for e in range(directions):
        for f in range(e, directions):
            for part in parts:
                upper_DD = total_EDED[e, part, f, part.stop :]
                total_EDED[e, part.stop :, f, part] = upper_DD.T
            total_EDED[f, :, e] = total_EDED[e, :, f]


def _class_basis(probs_NC: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues of the mean diag(p) - p p', and the basis T of its eigenvectors.

    The eigenvector of a common shift, with eigenvalue 0, is left out.
    """
    from scipy.linalg import helmert

    basis_CE = helmert(probs_NC.shape[1]).T
    total_EE = np.zeros((basis_CE.shape[1],) * 2)
    for rows in row_chunks(len(probs_NC), 8 * 2 * probs_NC.shape[1] ** 2):
        total_EE += _covariances(probs_NC[rows], basis_CE).sum(axis=0)
    values_E, vectors_EE = np.linalg.eigh(total_EE / len(probs_NC))
    return np.maximum(values_E, 0.0), basis_CE @ vectors_EE


def _feature_basis(h_ND: Array, h_LD: Array) -> tuple[np.ndarray, Array]:
    """Return the eigenvalues of sum_x h h' over labelled items, and h in their eigenvectors."""
    if not h_LD.shape[0]:
        return np.zeros(h_ND.shape[1]), h_ND
    h_DD = to_float64_numpy(namespace(h_LD).matrix_transpose(h_LD) @ h_LD)
    values_D, vectors_DD = np.linalg.eigh(h_DD)
    return np.maximum(values_D, 0.0), h_ND @ to_backend_of(vectors_DD, h_ND)


def _covariances(probs_NC: np.ndarray, basis_CE: np.ndarray) -> np.ndarray:
    """Return T'(diag(p) - p p')T of every row, as sum_c p_c (t_c - t)(t_c - t)' with t = T'p.

    There is no cancellation for p near one class, where only terms of order (1 - p)^2 are lost.
    """
    centred_NCE = basis_CE - (probs_NC @ basis_CE)[:, None, :]
    return np.swapaxes(centred_NCE * probs_NC[:, :, None], 1, 2) @ centred_NCE


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
