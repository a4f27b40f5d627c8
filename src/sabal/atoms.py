"""Atoms: what one item contributes to the loss of the pool (docs/method.md, 1 and 4).

g_j(y) is the item's gradient or centred loss vector under label y, q_j the distribution of that
label. The atom is a_j = E[g_j(y)], its variance V_j = E||g_j(y) - a_j||^2, its deviation
D_j = E||g_j(y) - a_j||, each an exact sum over the classes.

Inputs here have been checked; axes are in the names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from array_api_compat import device

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
from sabal.operators import Dense, Operator, RankOne, row_norms_squared

VANISHING = 1e-6
"""Atoms below this share of the labels' standard deviation are rounding noise."""


@dataclass(frozen=True)
class Atoms:
    """An operator over the pool, with the variance and deviation of every atom where known.

    A root mean square of the atoms up to `noise` is rounding, not a signal.
    """

    operator: Operator
    variance_N: np.ndarray | None = None
    deviation_N: np.ndarray | None = None
    noise: float = 0.0
    warnings: tuple[str, ...] = ()


def gradient_atoms(features_ND: Array, probs_NC: Array, label_probs_NC: Array, bias: bool) -> Atoms:
    """Last-layer gradients of the cross entropy: g_j(y) = (p_j - e_y) (x) h_j, as factors.

    E[g_j] = (p_j - q_j) (x) h_j: exactly zero where q = p.
    """
    difference_NC = to_host(probs_NC) - to_host(label_probs_NC)
    operator = RankOne(beside(difference_NC, features_ND), features_ND, constant=bias)
    variance_N, deviation_N = gradient_spread(features_ND, label_probs_NC, bias)
    return Atoms(operator, variance_N, deviation_N, _noise(variance_N))


def gradient_spread(
    features_ND: Array, label_probs_NC: Array, bias: bool
) -> tuple[np.ndarray, np.ndarray]:
    """V_j and D_j of gradient atoms; p cancels in g_j(y) - a_j = (q_j - e_y) (x) h_j.

    V_j = ||h_j||^2 (1 - ||q_j||^2), D_j = ||h_j|| sum_y q_j(y) sqrt(1 - 2 q_j(y) + ||q_j||^2).
    """
    feature_norm_N = row_norms_squared(features_ND) + float(bias)
    q_NC = to_host(label_probs_NC)
    q_norm_N = np.einsum("ij,ij->i", q_NC, q_NC)
    distance_NC = np.sqrt(np.maximum(1.0 - 2.0 * q_NC + q_norm_N[:, None], 0.0))
    variance_N = feature_norm_N * np.maximum(1.0 - q_norm_N, 0.0)
    deviation_N = np.sqrt(feature_norm_N) * (q_NC * distance_NC).sum(axis=1)
    return variance_N, deviation_N


def posterior_atoms(log_probs_NKC: Array, label_probs_NC: Array | None) -> Atoms:
    """Centred losses at K posterior samples shared by all items.

    g_j(y) = (l_jk(y) - mean_k l_jk(y))_k / sqrt(K) with l = -log p_k(y | x_j). The paper's
    Problem 2 leaves out the 1/sqrt(K) of its own norm (eq. norm-pi); here it is in.
    """
    n, samples, classes = log_probs_NKC.shape
    atoms_NK = np.empty((n, samples), dtype=to_numpy(log_probs_NKC[:1]).dtype)
    variance_N, deviation_N = np.empty(n), np.empty(n)
    floor = np.log(np.finfo(np.float32).tiny)
    zeros = 0
    for rows in row_chunks(n, 8 * samples * classes, CACHE_BYTES):
        raw_NKC = to_numpy(log_probs_NKC[rows])
        zeros += int(np.count_nonzero(raw_NKC < floor))
        if label_probs_NC is None:
            # In the precision of the input: half the time, and q needs no more digits than p has.
            q_NC = np.einsum("nkc->nc", np.exp(raw_NKC)).astype(np.float64) / samples
        else:
            q_NC = to_host(label_probs_NC[rows])
        # A probability of exactly zero would be an infinite loss: read as the smallest float32.
        g_NKC = np.maximum(raw_NKC, floor, dtype=np.float64)
        mean_NC = np.einsum("nkc->nc", g_NKC) / samples
        # The loss is minus the logarithm, so the mean comes first. In place from here on.
        np.subtract(mean_NC[:, None], g_NKC, out=g_NKC)
        g_NKC /= np.sqrt(samples)
        a_NK = np.matmul(g_NKC, q_NC[:, :, None])[:, :, 0]
        g_NKC -= a_NK[:, :, None]
        spread_NC = np.einsum("nkc,nkc->nc", g_NKC, g_NKC)
        atoms_NK[rows] = a_NK
        variance_N[rows] = np.einsum("nc,nc->n", q_NC, spread_NC)
        deviation_N[rows] = np.einsum("nc,nc->n", q_NC, np.sqrt(spread_NC))
    warnings = (
        (f"{zeros} log-probabilities below {floor:.1f} were read as {floor:.1f}",) if zeros else ()
    )
    operator = Dense(beside(atoms_NK, log_probs_NKC))
    return Atoms(operator, variance_N, deviation_N, _noise(variance_N), warnings)


def curvature_atoms(
    features_ND: Array, probs_NC: Array, width: int, bias: bool, rng: np.random.Generator
) -> Atoms:
    """Random features of the last layer's Hessian H_j = (diag(p_j) - p_j p_j') (x) h_j h_j'.

    atom_j[m] = (u_m' Lam_j u'_m) (s_m' h_j) (s'_m' h_j) / sqrt(2 M), so that
    E<atom_i, atom_j> = 1/2 tr(Lam_i Lam_j) (h_i' h_j)^2, up to one common factor: h is first
    brought to a mean square norm of 1, so that no scale of the features leaves float32's range.
    Not from the paper (method.md 4).
    """
    dimensions = features_ND.shape[1]
    unit = float(np.sqrt(np.mean(row_norms_squared(features_ND)) + bias)) or 1.0
    u_CM, v_CM = rng.standard_normal((2, probs_NC.shape[1], width))
    s_DM, t_DM = rng.standard_normal((2, dimensions + bias, width))

    def features_of(rows: slice) -> Array:
        p_NC, h_ND = _float32(probs_NC[rows]), _float32(features_ND[rows] / unit)
        u, v, uv = (beside(draws, p_NC) for draws in (u_CM, v_CM, u_CM * v_CM))
        s, t = beside(s_DM, h_ND), beside(t_DM, h_ND)
        curvature = p_NC @ uv - (p_NC @ u) * (p_NC @ v)
        first, second = h_ND @ s[:dimensions], h_ND @ t[:dimensions]
        if bias:
            first, second = first + s[dimensions] / unit, second + t[dimensions] / unit
        return curvature * first * second / np.sqrt(2.0 * width)

    return Atoms(Dense(_in_chunks(features_of, features_ND, width)))


def kernel_atoms(
    features_ND: Array, uncertainty_N: np.ndarray, width: int, rng: np.random.Generator
) -> Atoms:
    """Random Fourier features weighted by uncertainty: u_j [cos(Omega h_j), sin(Omega h_j)].

    `width` is the length of an atom, so half as many frequencies. Omega is Gaussian over the
    median distance l, and <atom_i, atom_j> approximates u_i u_j exp(-||h_i - h_j||^2 / 2 l^2): the
    representation term is a maximum mean discrepancy. Not from the paper (method.md 4).
    """
    n, dimensions = features_ND.shape
    xp = namespace(features_ND)
    warnings: tuple[str, ...] = ()
    if not np.any(uncertainty_N > 0):
        uncertainty_N = np.ones(n)
        warnings = ("the model is sure of every item: all are represented alike",)
    bandwidth = median_distance(features_ND, rng)
    if bandwidth == 0:
        bandwidth = 1.0
        warnings = (*warnings, "all features are equal: items differ in their uncertainty only")
    omega_DF = rng.standard_normal((dimensions, width // 2))
    # The kernel does not see a shift; without the mean, float32 keeps its digits for the rest.
    centre_D = Dense(features_ND).combine(np.full(n, 1.0 / n))

    def features_of(rows: slice) -> Array:
        h_ND = features_ND[rows]
        centred_ND = _float32((h_ND - beside(centre_D, h_ND)) / bandwidth)
        phase_NF = centred_ND @ beside(omega_DF, centred_ND)
        weight_N = beside(uncertainty_N[rows] * np.sqrt(2.0 / width), centred_ND)
        return xp.concat([xp.cos(phase_NF), xp.sin(phase_NF)], axis=1) * weight_N[:, None]

    return Atoms(Dense(_in_chunks(features_of, features_ND, width)), warnings=warnings)


def median_distance(features_ND: Array, rng: np.random.Generator, most_rows: int = 1024) -> float:
    """The median distance between two items, over all pairs of at most `most_rows` of them.

    Falls back on the mean when more than half of the pairs coincide; 0 when all do.
    """
    from scipy.spatial.distance import pdist

    n = features_ND.shape[0]
    chosen = np.arange(n)
    if n > most_rows:
        chosen = np.sort(rng.choice(n, size=most_rows, replace=False))
    sample = to_host(take_rows(features_ND, chosen))
    # Distances of a sample of unit scale: squares of very large or small numbers do not fit.
    unit = float(np.abs(sample).max()) or 1.0
    distances = pdist(sample / unit) if n > 1 else np.zeros(1)
    return unit * (float(np.median(distances)) or float(np.mean(distances)))


def _noise(variance_N: np.ndarray) -> float:
    """Rounding of float32 predictions, next to the spread that the labels cause."""
    return VANISHING * float(np.sqrt(np.mean(variance_N)))


def _in_chunks(features_of: Callable[[slice], Array], like: Array, width: int) -> Array:
    """The (n, width) float32 matrix whose rows `features_of` computes, a chunk at a time."""
    xp = namespace(like)
    n = like.shape[0]
    result_NM = xp.empty((n, width), dtype=xp.float32, device=device(like))
    for rows in row_chunks(n, 4 * (3 * width + like.shape[1])):
        result_NM[rows] = features_of(rows)
    return result_NM


def _float32(array: Array) -> Array:
    return namespace(array).astype(array, namespace(array).float32)
