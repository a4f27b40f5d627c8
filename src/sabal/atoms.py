"""Atoms: what one item contributes to the loss of the pool (docs/method.md, 1 and 4).

g_j(y) is the item's gradient or centred loss vector under label y, q_j the distribution of that
label. The atom is a_j = E[g_j(y)], its variance V_j = E||g_j(y) - a_j||^2, its deviation
D_j = E||g_j(y) - a_j||, each an exact sum over the classes.

Inputs here have been checked; axes are in the names. They may be rows on disk: they are read a
block at a time, and atoms are made from them when a pass asks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sabal.arrays import (
    CACHE_BYTES,
    Array,
    beside,
    namespace,
    row_chunks,
    take_rows,
    to_host,
    to_numpy,
)
from sabal.draws import CurvatureDraws, KernelDraws
from sabal.operators import Block, Computed, Dense, Fourier, Operator, RankOne, row_norms_squared
from sabal.rows import is_stored

Rows = slice | np.ndarray

VANISHING = 1e-6
"""Atoms below this share of the labels' standard deviation are rounding noise."""

SMALLEST_LOG = float(np.log(np.finfo(np.float32).tiny))
"""What a log-probability is read as at least: a probability of zero would be an infinite loss."""


@dataclass(frozen=True)
class Atoms:
    """An operator over the pool, with the variance and deviation of every atom where known.

    clipped: how many log-probabilities were read as `SMALLEST_LOG`.
    """

    operator: Operator
    variance_N: np.ndarray | None = None
    deviation_N: np.ndarray | None = None
    clipped: int = 0


def clipped_warning(clipped: int) -> tuple[str, ...]:
    """What to say of `clipped` log-probabilities: nothing of none."""
    if not clipped:
        return ()
    floor = f"{SMALLEST_LOG:.1f}"
    return (f"{clipped} log-probabilities below {floor} were read as {floor}",)


def gradient_atoms(features_ND: Array, probs_NC: Array, label_probs_NC: Array, bias: bool) -> Atoms:
    """Last-layer gradients of the cross entropy: g_j(y) = (p_j - e_y) (x) h_j, as factors.

    E[g_j] = (p_j - q_j) (x) h_j: exactly zero where q = p.
    """
    xp = namespace(features_ND)

    def make(rows: Rows) -> RankOne:
        h_ND = _rows(features_ND, rows)
        difference_NC = _rows(probs_NC, rows) - _rows(label_probs_NC, rows)
        left_NC = xp.astype(difference_NC, h_ND.dtype)
        return RankOne(left_NC, h_ND, constant=bias, right_norms_N=norms_N[rows])

    row_bytes = 32 * probs_NC.shape[1]
    norms_N = feature_norms(features_ND, bias)
    variance_N, deviation_N = gradient_spread(norms_N, label_probs_NC)
    operator = Computed(make, size=features_ND.shape[0], row_bytes=row_bytes)
    return Atoms(operator, variance_N, deviation_N)


def feature_norms(features_ND: Array, bias: bool) -> np.ndarray:
    """||h_j||^2, with the constant 1 of the bias in it."""
    return row_norms_squared(features_ND) + float(bias)


def gradient_spread(norms_N: np.ndarray, label_probs_NC: Array) -> tuple[np.ndarray, np.ndarray]:
    """V_j and D_j of gradient atoms; p cancels in g_j(y) - a_j = (q_j - e_y) (x) h_j.

    V_j = ||h_j||^2 (1 - ||q_j||^2), D_j = ||h_j|| sum_y q_j(y) sqrt(1 - 2 q_j(y) + ||q_j||^2).
    """
    variance_N, deviation_N = norms_N.copy(), np.sqrt(norms_N)
    for rows in row_chunks(variance_N.size, 24 * label_probs_NC.shape[1], CACHE_BYTES):
        q_NC = to_host(label_probs_NC[rows])
        q_norm_N = np.einsum("ij,ij->i", q_NC, q_NC)
        distance_NC = np.sqrt(np.maximum(1.0 - 2.0 * q_NC + q_norm_N[:, None], 0.0))
        variance_N[rows] *= np.maximum(1.0 - q_norm_N, 0.0)
        deviation_N[rows] *= np.einsum("ij,ij->i", q_NC, distance_NC)
    return variance_N, deviation_N


def posterior_atoms(log_probs_NKC: Array, label_probs_NC: Array | None) -> Atoms:
    """Centred losses at K posterior samples shared by all items.

    g_j(y) = (l_jk(y) - mean_k l_jk(y))_k / sqrt(K) with l = -log p_k(y | x_j). The paper's
    Problem 2 leaves out the 1/sqrt(K) of its own norm (eq. norm-pi); here it is in.

    The atoms are K numbers each and kept, unless the pool is on disk.
    """
    n, samples, classes = log_probs_NKC.shape
    stored = is_stored(log_probs_NKC)
    dtype = to_numpy(log_probs_NKC[:1]).dtype
    atoms_NK = np.empty((0 if stored else n, samples), dtype=dtype)
    variance_N, deviation_N = np.empty(n), np.empty(n)
    clipped = 0
    for rows in row_chunks(n, 8 * samples * classes, CACHE_BYTES):
        raw_NKC = to_numpy(log_probs_NKC[rows])
        clipped += int(np.count_nonzero(raw_NKC < SMALLEST_LOG))
        a_NK, g_NKC, q_NC = _centred_losses(raw_NKC, _given(label_probs_NC, rows))
        g_NKC -= a_NK[:, :, None]
        spread_NC = np.einsum("nkc,nkc->nc", g_NKC, g_NKC)
        variance_N[rows] = np.einsum("nc,nc->n", q_NC, spread_NC)
        deviation_N[rows] = np.einsum("nc,nc->n", q_NC, np.sqrt(spread_NC))
        if not stored:
            atoms_NK[rows] = a_NK

    def make(rows: Rows) -> Dense:
        raw_NKC = to_numpy(_rows(log_probs_NKC, rows))
        return Dense(_centred_losses(raw_NKC, _given(label_probs_NC, rows))[0].astype(dtype))

    operator: Operator
    if stored:
        row_bytes = 24 * samples * classes
        operator = Computed(make, size=n, row_bytes=row_bytes, dear=True)
    else:
        operator = Dense(beside(atoms_NK, log_probs_NKC))
    return Atoms(operator, variance_N, deviation_N, clipped)


def _centred_losses(
    raw_NKC: np.ndarray, q_NC: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The atoms sum_y q(y) g(y), the g(y) themselves, and q (the predictive mean if not given)."""
    samples = raw_NKC.shape[1]
    if q_NC is None:
        # In the precision of the input: half the time, and q needs no more digits than p has.
        q_NC = np.einsum("nkc->nc", np.exp(raw_NKC)).astype(np.float64) / samples
    g_NKC = np.maximum(raw_NKC, SMALLEST_LOG, dtype=np.float64)
    mean_NC = np.einsum("nkc->nc", g_NKC) / samples
    # The loss is minus the logarithm, so the mean comes first. In place from here on.
    np.subtract(mean_NC[:, None], g_NKC, out=g_NKC)
    g_NKC /= np.sqrt(samples)
    return np.matmul(g_NKC, q_NC[:, :, None])[:, :, 0], g_NKC, q_NC


def curvature_atoms(
    features_ND: Array, probs_NC: Array, draws: CurvatureDraws, bias: bool
) -> Atoms:
    """Random features of the last layer's Hessian H_j = (diag(p_j) - p_j p_j') (x) h_j h_j'.

    atom_j[m] = (u_m' Lam_j u'_m) (s_m' h_j) (s'_m' h_j) / sqrt(2 M), so that
    E<atom_i, atom_j> = 1/2 tr(Lam_i Lam_j) (h_i' h_j)^2, up to one common factor: h is first
    brought to a mean square norm of 1, so that no scale of the features leaves float32's range.
    Not from the paper (method.md 4).
    """
    n, dimensions = features_ND.shape
    width, unit = draws.u_CM.shape[1], draws.unit
    like = _float32(features_ND[:0])
    u, v, uv = (beside(d, like) for d in (draws.u_CM, draws.v_CM, draws.u_CM * draws.v_CM))
    s, t = beside(draws.s_DM, like), beside(draws.t_DM, like)

    def make(rows: Rows) -> Dense:
        p_NC = _float32(_rows(probs_NC, rows))
        h_ND = _float32(_rows(features_ND, rows) / unit)
        curvature = p_NC @ uv - (p_NC @ u) * (p_NC @ v)
        first, second = h_ND @ s[:dimensions], h_ND @ t[:dimensions]
        if bias:
            first, second = first + s[dimensions] / unit, second + t[dimensions] / unit
        return Dense(curvature * first * second / np.sqrt(2.0 * width))

    row_bytes = 4 * (4 * width + dimensions)
    return Atoms(Computed(make, size=n, row_bytes=row_bytes, dear=True))


def kernel_atoms(features_ND: Array, uncertainty_N: np.ndarray, draws: KernelDraws) -> Atoms:
    """Random Fourier features weighted by uncertainty: u_j [cos(Omega h_j), sin(Omega h_j)].

    Omega is Gaussian over the median distance l, and <atom_i, atom_j> approximates
    u_i u_j exp(-||h_i - h_j||^2 / 2 l^2): the representation term is a maximum mean discrepancy.
    Not from the paper (method.md 4).
    """
    n, dimensions = features_ND.shape
    frequencies = draws.omega_DF.shape[1]
    omega_DF = beside(draws.omega_DF, _float32(features_ND[:0]))
    centre_D = beside(draws.centre_D, features_ND)

    def phases(rows: Rows) -> Fourier:
        centred_ND = _rows(features_ND, rows) - centre_D
        centred_ND /= draws.bandwidth
        phase_NF = _float32(centred_ND) @ omega_DF
        return Fourier(phase_NF, beside(uncertainty_N[rows] / np.sqrt(frequencies), phase_NF))

    def make(rows: Rows) -> Block:
        return phases(rows).dense()

    row_bytes = 4 * (2 * frequencies + dimensions)
    return Atoms(Computed(make, size=n, row_bytes=row_bytes, for_passes=phases, dear=True))


def _rows(array: Array, rows: Rows) -> Array:
    return array[rows] if isinstance(rows, slice) else take_rows(array, rows)


def _given(label_probs_NC: Array | None, rows: Rows) -> np.ndarray | None:
    return None if label_probs_NC is None else to_host(_rows(label_probs_NC, rows))


def _float32(array: Array) -> Array:
    return namespace(array).astype(array, namespace(array).float32)
