"""Atoms: the contribution of each item to the loss of the pool (docs/method.md, 1 and 4).

g_j(y) is the item's gradient or centred loss vector under label y, q_j the distribution of that
label. The atom is a_j = E[g_j(y)], its variance V_j = E||g_j(y) - a_j||^2, its deviation
D_j = E||g_j(y) - a_j||. How a label varies depends on the type of prediction.

Inputs have been checked, and their axes are in the names. They may be rows on disk, which are read
a block at a time; atoms are computed from them during a pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sabal.core.arrays import (
    CACHE_BYTES,
    Array,
    namespace,
    per_row,
    row_chunks,
    take_rows,
    to_backend_of,
    to_float64_numpy,
    to_numpy,
)
from sabal.core.checks import LARGEST_SQUARE
from sabal.core.rows import is_stored
from sabal.errors import InputError
from sabal.pools.pool import feature_norms, gradient_variance
from sabal.predictions import Prediction, Softmax
from sabal.sparse.operators import Block, Computed, Dense, Fourier, Operator, RankOne
from sabal.sparse.random_features import CurvatureDraws, KernelDraws

Rows = slice | np.ndarray

VANISHING = 1e-6  # atoms below this share of the labels' standard deviation are rounding errors

FURTHEST = 1e30
"""The distance from the centre, in median distances, at which kernel atoms are clipped."""

SMALLEST_LOG = float(np.log(np.finfo(np.float32).tiny))
"""The minimum log-probability: a probability of zero would be an infinite loss."""


@dataclass(frozen=True)
class Atoms:
    """An operator over the pool, with the variance and deviation of every atom if known.

    `clipped` is the number of log-probabilities that were raised to `SMALLEST_LOG`.
    """

    operator: Operator
    variance_N: np.ndarray | None = None
    deviation_N: np.ndarray | None = None
    clipped: int = 0


def clipped_warning(clipped: int) -> tuple[str, ...]:
    """Return a warning about clipped log-probabilities, if there are any."""
    if not clipped:
        return ()
    floor = f"{SMALLEST_LOG:.1f}"
    return (f"{clipped} log-probabilities below {floor} were read as {floor}",)


def gradient_atoms(
    features_ND: Array,
    prediction_NC: Array,
    label_NC: Array,
    bias: bool,
    *,
    kind: type[Prediction] = Softmax,
    dispersion_NC: Array | None = None,
    deviation: bool = True,
) -> Atoms:
    """Return last-layer gradients, for a softmax g_j(y) = (p_j - e_y) (x) h_j, as factors.

    E[g_j] = (p_j - q_j) (x) h_j: exactly zero where q = p.

    Parameters
    ----------
    features_ND, prediction_NC : array
        h_j and the prediction p_j.
    label_NC : array
        The mean of the label, q_j.
    bias : bool
        Whether the last layer has a bias.
    kind : type
        The type of prediction, which has the formulas of its loss.
    dispersion_NC : array, optional
        How the label varies; `label_NC` by default.
    deviation : bool
        Whether to compute D_j, which may be slow.
    """
    xp = namespace(features_ND)

    def make(rows: Rows) -> RankOne:
        h_ND = _rows(features_ND, rows)
        difference_NC = _rows(prediction_NC, rows) - _rows(label_NC, rows)
        left_NC = xp.astype(difference_NC, h_ND.dtype)
        return RankOne(left_NC, h_ND, constant=bias, right_norms_N=norms_N[rows])

    row_bytes = 32 * prediction_NC.shape[1]
    norms_N = feature_norms(features_ND, bias)
    if not kind.bounded:
        _check_products(norms_N, prediction_NC, label_NC, float(xp.finfo(features_ND.dtype).max))
    dispersion_NC = label_NC if dispersion_NC is None else dispersion_NC
    variance_N = gradient_variance(norms_N, dispersion_NC, kind)
    deviation_N = gradient_deviation(norms_N, dispersion_NC, kind) if deviation else None
    # The difference of two nearly equal predictions is mostly rounding error.
    rounding = max(float(xp.finfo(array.dtype).eps) for array in (prediction_NC, label_NC))
    operator = Computed(make, size=features_ND.shape[0], row_bytes=row_bytes, rounding=rounding)
    return Atoms(operator, variance_N, deviation_N)


def gradient_deviation(
    norms_N: np.ndarray, dispersion_NC: Array, kind: type[Prediction]
) -> np.ndarray:
    """Return D_j of gradient atoms."""
    return np.sqrt(norms_N) * per_row(kind.deviation, dispersion_NC)


def _check_products(
    norms_N: np.ndarray, prediction_NC: Array, label_NC: Array, largest_number: float
) -> None:
    """Raise if entries of atoms, or sums of them, would not be finite."""
    xp = namespace(prediction_NC, label_NC)
    chunks = row_chunks(norms_N.size, 24 * prediction_NC.shape[1], CACHE_BYTES)
    largest = max(float(xp.max(xp.abs(prediction_NC[rows] - label_NC[rows]))) for rows in chunks)
    limit = min(LARGEST_SQUARE**0.5, largest_number / 1e6)
    if largest * float(np.sqrt(norms_N.max())) > limit:
        raise InputError(
            f"`means` times `features` of at most {limit:.3g}",
            f"differences of {largest:.3g} and features of {np.sqrt(norms_N.max()):.3g}",
            "divide the features or the targets by a constant",
        )


def posterior_atoms(log_probs_NKC: Array, label_probs_NC: Array | None) -> Atoms:
    """Return centred losses at K posterior samples shared by all items.

    g_j(y) = (l_jk(y) - mean_k l_jk(y))_k / sqrt(K) with l = -log p_k(y | x_j). The paper's
    Problem 2 omits the 1/sqrt(K) of its own norm (eq. norm-pi); here it is included.

    The atoms have K entries and are kept in memory, unless the pool is on disk.
    """
    n, samples, classes = log_probs_NKC.shape
    stored = is_stored(log_probs_NKC)
    dtype = to_numpy(log_probs_NKC[:1]).dtype
    atoms_NK = np.empty((0 if stored else n, samples), dtype=dtype)
    variance_N, deviation_N = np.empty(n), np.empty(n)
    clipped, entropy = 0, 0.0
    for rows in row_chunks(n, 8 * samples * classes, CACHE_BYTES):
        raw_NKC = to_numpy(log_probs_NKC[rows])
        clipped += int(np.count_nonzero(raw_NKC < SMALLEST_LOG))
        a_NK, g_NKC, q_NC = _centred_losses(raw_NKC, _given(label_probs_NC, rows))
        g_NKC -= a_NK[:, :, None]
        dispersion_NC = np.einsum("nkc,nkc->nc", g_NKC, g_NKC)
        variance_N[rows] = np.einsum("nc,nc->n", q_NC, dispersion_NC)
        deviation_N[rows] = np.einsum("nc,nc->n", q_NC, np.sqrt(dispersion_NC))
        entropy -= float(np.vdot(q_NC, np.log(np.maximum(q_NC, np.finfo(np.float32).tiny))))
        if not stored:
            atoms_NK[rows] = a_NK

    def make(rows: Rows) -> Dense:
        raw_NKC = to_numpy(_rows(log_probs_NKC, rows))
        return Dense(_centred_losses(raw_NKC, _given(label_probs_NC, rows))[0].astype(dtype))

    operator: Operator
    if stored:
        row_bytes = 24 * samples * classes
        operator = Computed(make, size=n, row_bytes=row_bytes, recomputes_atoms=True)
    else:
        operator = Dense(to_backend_of(atoms_NK, log_probs_NKC))
    if variance_N.any():
        # Losses are rounded relative to the entropy, and centred losses may be far smaller.
        loss, spread = entropy / n, float(np.sqrt(variance_N.mean()))
        operator.rounding = float(np.finfo(dtype).eps) * loss / spread
    return Atoms(operator, variance_N, deviation_N, clipped)


def _centred_losses(
    raw_NKC: np.ndarray, q_NC: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the atoms sum_y q(y) g(y), the g(y) themselves, and q (by default the mean)."""
    samples = raw_NKC.shape[1]
    if q_NC is None:
        # In the precision of the input: half the time, and q needs no more digits than p.
        q_NC = np.einsum("nkc->nc", np.exp(raw_NKC)).astype(np.float64) / samples
    g_NKC = np.maximum(raw_NKC, SMALLEST_LOG, dtype=np.float64)
    mean_NC = np.einsum("nkc->nc", g_NKC) / samples
    # The loss is the negative logarithm, so the mean comes first. In place from here on.
    np.subtract(mean_NC[:, None], g_NKC, out=g_NKC)
    g_NKC /= np.sqrt(samples)
    return np.matmul(g_NKC, q_NC[:, :, None])[:, :, 0], g_NKC, q_NC


def curvature_atoms(
    features_ND: Array,
    dispersion_NC: Array,
    draws: CurvatureDraws,
    bias: bool,
    *,
    kind: type[Prediction] = Softmax,
) -> Atoms:
    """Return random features of the last layer's curvature H_j = Lam_j (x) h_j h_j'.

    For a softmax Lam_j = diag(p_j) - p_j p_j', and H_j is the Hessian; other predictions define
    their own Lam_j.
    atom_j[m] = (u_m' Lam_j u'_m) (s_m' h_j) (s'_m' h_j) / sqrt(2 M), so that
    E<atom_i, atom_j> = 1/2 tr(Lam_i Lam_j) (h_i' h_j)^2, up to one common factor: h is first
    scaled to a mean square norm of 1, so that atoms fit in float32 for any unit of the features.
    Not from the paper (method.md 4).
    """
    n, dimensions = features_ND.shape
    width, unit = draws.u_CM.shape[1], draws.unit
    like = _float32(features_ND[:0])
    u, v, uv = (to_backend_of(d, like) for d in (draws.u_CM, draws.v_CM, draws.u_CM * draws.v_CM))
    s, t = to_backend_of(draws.s_DM, like), to_backend_of(draws.t_DM, like)
    dispersion_unit = draws.dispersion_unit
    # For features beyond the range of float32, the constant of the bias is negligible.
    constant = bias and unit < float(np.finfo(np.float32).max)

    def make(rows: Rows) -> Dense:
        chosen_NC = _rows(dispersion_NC, rows)
        if dispersion_unit != 1.0:
            chosen_NC = chosen_NC / dispersion_unit
        h_ND = _float32(_rows(features_ND, rows) / unit)
        curvature = kind.curvature(_float32(chosen_NC), u, v, uv)
        first, second = h_ND @ s[:dimensions], h_ND @ t[:dimensions]
        if constant:
            first, second = first + s[dimensions] / unit, second + t[dimensions] / unit
        return Dense(curvature * first * second / np.sqrt(2.0 * width))

    row_bytes = 4 * (4 * width + dimensions)
    return Atoms(Computed(make, size=n, row_bytes=row_bytes, recomputes_atoms=True))


def kernel_atoms(features_ND: Array, uncertainty_N: np.ndarray, draws: KernelDraws) -> Atoms:
    """Return random Fourier features weighted by uncertainty: u_j [cos(Omega h_j), sin(Omega h_j)].

    Omega is Gaussian over the median distance l, and <atom_i, atom_j> approximates
    u_i u_j exp(-||h_i - h_j||^2 / 2 l^2): the representation term is a maximum mean discrepancy.
    Not from the paper (method.md 4).
    """
    n, dimensions = features_ND.shape
    frequencies = draws.omega_DF.shape[1]
    omega_DF = to_backend_of(draws.omega_DF, _float32(features_ND[:0]))
    centre_D = to_backend_of(draws.centre_D, features_ND)
    xp = namespace(features_ND)
    far = min(FURTHEST * draws.bandwidth, float(xp.finfo(features_ND.dtype).max))

    def phases(rows: Rows) -> Fourier:
        # At this distance the kernel is 0, and the phases would not fit in float32.
        centred_ND = xp.clip(_rows(features_ND, rows) - centre_D, -far, far)
        centred_ND /= draws.bandwidth
        phase_NF = _float32(centred_ND) @ omega_DF
        return Fourier(
            phase_NF, to_backend_of(uncertainty_N[rows] / np.sqrt(frequencies), phase_NF)
        )

    def make(rows: Rows) -> Block:
        return phases(rows).dense()

    row_bytes = 4 * (2 * frequencies + dimensions)
    operator = Computed(make, size=n, row_bytes=row_bytes, for_passes=phases, recomputes_atoms=True)
    return Atoms(operator)


def _rows(array: Array, rows: Rows) -> Array:
    return array[rows] if isinstance(rows, slice) else take_rows(array, rows)


def _given(label_probs_NC: Array | None, rows: Rows) -> np.ndarray | None:
    return None if label_probs_NC is None else to_float64_numpy(_rows(label_probs_NC, rows))


def _float32(array: Array) -> Array:
    return namespace(array).astype(array, namespace(array).float32)
