"""A last-layer Laplace posterior in closed form, for any trained network with a linear head.

theta ~ N(theta*, P^-1) with the generalised Gauss-Newton precision
P = sum_j w_j Lam_j (x) h_j h_j' + tau I, Lam_j = diag(p_j) - p_j p_j', h_j the features with a
constant 1 for the bias (Daxberger et al. 2021; Kristiadi et al. 2020). The labels do not enter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sabal.core.checks import check_choice, check_number, check_whole
from sabal.errors import InputError
from sabal.models.inputs import (
    HeadedNetwork,
    check_item_weights,
    check_items,
    check_network,
    evaluation_mode,
    move_to_device,
    row_slices,
    take_batch,
)
from sabal.models.posteriors import HeadDraw
from sabal.models.progress import Progress, report_progress
from sabal.models.random_streams import Stream, make_generator

FULL_UP_TO = 1000  # `structure="auto"` keeps the full precision for at most this many weights
PRECISION_BOUNDS = (1e-6, 1e6)


class Laplace:
    """The Laplace posterior of the last layer of a trained network.

    Parameters
    ----------
    network : HeadedNetwork
        A trained network with a linear head.
    x : array
        The items that it was trained on.
    weights : array, optional
        The importance of the items in training.
    structure : {"auto", "full", "kron"}
        "full" keeps all of P. "kron" replaces the sum of products by a product of sums,
        (sum_j w_j Lam_j) (x) (sum_j w_j h_j h_j' / sum_j w_j), as K-FAC does (Martens & Grosse
        2015), the bias being one of the features. "auto" is "full" up to 1,000 weights.
    prior_precision : float or "evidence"
        tau (weight decay times the number of items, for a mean loss), or "evidence" for the one
        that maximises the marginal likelihood.
    batch_size, device, progress
        As in `pool_outputs`.
    """

    is_the_model: ClassVar[bool] = False

    def __init__(
        self,
        network: HeadedNetwork,
        x: Any,
        *,
        weights: Any = None,
        structure: str = "auto",
        prior_precision: float | str = 1.0,
        batch_size: int = 256,
        device: str | torch.device | None = None,
        progress: Progress = False,
    ) -> None:
        check_choice(structure, "structure", ("auto", "kron", "full"))
        head = check_network(network).head
        if not isinstance(head, nn.Linear):
            raise InputError(
                "a network with a linear head for a Laplace posterior",
                f"a {type(head).__name__} head",
                "a variational head is a posterior already: use Variational",
            )
        move_to_device(network, device)
        self.dtype, self.device = head.weight.dtype, head.weight.device
        self.has_bias = head.bias is not None
        mean = head.weight.detach().double()
        if self.has_bias:
            mean = torch.cat([mean, head.bias.detach().double()[:, None]], dim=1)
        self.mean_CD = mean.cpu()
        if structure == "auto":
            structure = "full" if self.mean_CD.numel() <= FULL_UP_TO else "kron"
        self.structure = structure
        curvature = _Full(self.mean_CD) if structure == "full" else _Kronecker(self.mean_CD)
        items = check_items(x, network)
        weights_N = torch.from_numpy(check_item_weights(weights, items.shape[0]))
        with (
            evaluation_mode(network),
            report_progress(progress, items.shape[0], "curvature") as tick,
        ):
            for rows in row_slices(items.shape[0], batch_size):
                features = network.features(take_batch(items, rows, network))
                probs_NC = torch.softmax(head(features).double().cpu(), dim=1)
                curvature.add(self._with_constant(features), probs_NC, weights_N[rows])
                tick(features.shape[0])
        self.basis = curvature.decompose()
        self.prior_precision = (
            self._evidence_precision()
            if isinstance(prior_precision, str)
            and check_choice(prior_precision, "prior_precision", ("evidence",))
            else check_number(prior_precision, "prior_precision", above=0.0)
        )

    def draw(self, samples: int, seed: int) -> HeadDraw:
        """Return `samples` last layers, theta* + P^(-1/2) noise."""
        shape = (check_whole(samples, "samples"), *self.mean_CD.shape)
        generator = make_generator(seed, Stream.POSTERIOR)
        noise_KCD = torch.randn(shape, generator=generator, dtype=torch.float64)
        scale_CD = (self.basis.eigenvalues_CD + self.prior_precision).rsqrt()
        theta_KCD = (self.mean_CD + self.basis.rotate(noise_KCD * scale_CD)).to(
            device=self.device, dtype=self.dtype
        )
        dimensions = theta_KCD.shape[2] - self.has_bias
        if not self.has_bias:
            return HeadDraw(theta_KCD, theta_KCD.new_zeros(theta_KCD.shape[:2]))
        return HeadDraw(theta_KCD[:, :, :dimensions].contiguous(), theta_KCD[:, :, dimensions])

    def covariance(self) -> Tensor:
        """Return P^-1, dense, over the weights in the order of `mean_CD`."""
        count = self.mean_CD.numel()
        identity = torch.eye(count, dtype=torch.float64).reshape(count, *self.mean_CD.shape)
        scale_CD = (self.basis.eigenvalues_CD + self.prior_precision).rsqrt()
        root = self.basis.rotate(identity * scale_CD).reshape(count, count)
        return root.T @ root

    def _with_constant(self, features: Tensor) -> Tensor:
        features = features.double().cpu()
        if not self.has_bias:
            return features
        return torch.cat([features, features.new_ones(features.shape[0], 1)], dim=1)

    def _evidence_precision(self) -> float:
        """Find the tau at which tau ||theta*||^2 is the number of well-determined weights.

        That number is sum_i lambda_i / (lambda_i + tau) (MacKay 1992, eq. 4.9). It decreases with
        tau while the other side increases, so there is exactly one solution.
        """
        from scipy.optimize import brentq

        eigenvalues = self.basis.eigenvalues_CD.numpy()
        norm = float(self.mean_CD.square().sum())

        def excess(log_tau: float) -> float:
            tau = np.exp(log_tau)
            return float(tau * norm - np.sum(eigenvalues / (eigenvalues + tau)))

        low, high = np.log(PRECISION_BOUNDS)
        if excess(low) >= 0:
            return PRECISION_BOUNDS[0]
        if excess(high) <= 0:
            return PRECISION_BOUNDS[1]
        return float(np.exp(brentq(excess, low, high, xtol=1e-10)))


class _Basis(NamedTuple):
    """Eigenvalues, and the product U v with the eigenvectors: from coordinates to weights."""

    eigenvalues_CD: Tensor
    rotate: Callable[[Tensor], Tensor]


class _Full:
    """sum_j w_j Lam_j (x) h_j h_j' as one matrix over all weights."""

    def __init__(self, like_CD: Tensor) -> None:
        classes, dimensions = like_CD.shape
        self.sum_CDCD = torch.zeros(classes, dimensions, classes, dimensions, dtype=torch.float64)

    def add(self, h_ND: Tensor, probs_NC: Tensor, weights_N: Tensor) -> None:
        for c in range(probs_NC.shape[1]):
            # Row c of every Lam_j: p_c (e_c - p).
            row_NC = -probs_NC[:, c : c + 1] * probs_NC
            row_NC[:, c] += probs_NC[:, c]
            for d in range(c, probs_NC.shape[1]):
                block_DD = h_ND.T @ (h_ND * (weights_N * row_NC[:, d])[:, None])
                self.sum_CDCD[c, :, d] += block_DD
                if d > c:
                    self.sum_CDCD[d, :, c] += block_DD

    def decompose(self) -> _Basis:
        shape = self.sum_CDCD.shape[:2]
        count = shape.numel()
        values, vectors = torch.linalg.eigh(self.sum_CDCD.reshape(count, count))
        return _Basis(
            values.clamp_min(0.0).reshape(shape),
            lambda values_KCD: (values_KCD.flatten(1) @ vectors.T).reshape(values_KCD.shape),
        )


class _Kronecker:
    """(sum_j w_j Lam_j) (x) (sum_j w_j h_j h_j' / sum_j w_j)."""

    def __init__(self, like_CD: Tensor) -> None:
        classes, dimensions = like_CD.shape
        self.outer_CC = torch.zeros(classes, classes, dtype=torch.float64)
        self.inner_DD = torch.zeros(dimensions, dimensions, dtype=torch.float64)
        self.total = 0.0

    def add(self, h_ND: Tensor, probs_NC: Tensor, weights_N: Tensor) -> None:
        weighted_NC = weights_N[:, None] * probs_NC
        self.outer_CC += torch.diag(weighted_NC.sum(dim=0)) - weighted_NC.T @ probs_NC
        self.inner_DD += h_ND.T @ (weights_N[:, None] * h_ND)
        self.total += float(weights_N.sum())

    def decompose(self) -> _Basis:
        outer_C, left_CC = torch.linalg.eigh(self.outer_CC)
        inner_D, right_DD = torch.linalg.eigh(self.inner_DD / self.total)
        values_CD = torch.outer(outer_C.clamp_min(0.0), inner_D.clamp_min(0.0))
        # (U_C (x) U_D) v
        return _Basis(values_CD, lambda values_KCD: left_CC @ values_KCD @ right_DD.T)
