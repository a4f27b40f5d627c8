"""A variational last layer: a mean-field Gaussian over its weights.

The following is taken from Pinsler et al. 2019 and their public code
(rpinsler/active-bayesian-coresets):

- the prior N(0, 2 / C) on every weight, C the number of classes; the bias is a plain parameter;
- standard deviation softplus(rho); initial means N(0, 0.05^2), initial rho N(-4, 0.05^2);
- local reparametrisation in training, one draw of the logits per item (Kingma et al. 2015);
- the bound, sum over the data of the expected log-likelihood minus KL once: a batch of B of N items
  carries B / N of the KL.

What is not the posterior is not taken: their samples for projections reshape the (C, D) weights as
(D, C) and leave the bias out, their predictive averages logits by logsumexp rather than
probabilities, batch norm stays in training mode, and 1e-6 is added to the variance of the logits.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from sabal.core.checks import check_number, check_whole

INITIAL_MEAN_STD = 0.05
INITIAL_RHO = -4.0
INITIAL_RHO_STD = 0.05


class VariationalLinear(nn.Module):
    """A linear layer whose weights are independent Gaussians.

    In training, logits are drawn for every item separately; in evaluation they are those of the
    mean weights. `sample_weights` draws weights that all items share.

    Parameters
    ----------
    in_features, out_features : int
        The number of features and of classes.
    prior_variance : float, optional
        The variance of every weight under the prior; 2 / out_features if left out.
    """

    def __init__(
        self, in_features: int, out_features: int, *, prior_variance: float | None = None
    ) -> None:
        super().__init__()
        self.in_features = check_whole(in_features, "in_features")
        self.out_features = check_whole(out_features, "out_features")
        self.prior_variance = (
            2.0 / out_features
            if prior_variance is None
            else check_number(prior_variance, "prior_variance", above=0.0)
        )
        self.mean = nn.Parameter(torch.empty(out_features, in_features))
        self.rho = nn.Parameter(torch.empty(out_features, in_features))
        self.bias = nn.Parameter(torch.empty(out_features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw initial values from the global generator of torch."""
        nn.init.normal_(self.mean, 0.0, INITIAL_MEAN_STD)
        nn.init.normal_(self.rho, INITIAL_RHO, INITIAL_RHO_STD)
        bound = 1.0 / math.sqrt(self.in_features)
        nn.init.uniform_(self.bias, -bound, bound)

    @property
    def std(self) -> Tensor:
        """The standard deviation of every weight, (C, D)."""
        return functional.softplus(self.rho)

    def moments(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance of the logits: h'm + b and sum_d h_d^2 s_d^2."""
        mean_NC = functional.linear(features, self.mean, self.bias)
        return mean_NC, functional.linear(features.square(), self.std.square())

    def forward(self, features: Tensor) -> Tensor:
        """Return logits (n, C): drawn per item in training, of the mean weights in evaluation."""
        if not self.training:
            return functional.linear(features, self.mean, self.bias)
        mean_NC, variance_NC = self.moments(features)
        # Features that are all zero have no variance, where the square root has no derivative.
        return mean_NC + variance_NC.clamp_min(1e-12).sqrt() * torch.randn_like(mean_NC)

    def sample_weights(self, samples: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return weights (K, C, D) and biases (K, C) that all items share."""
        shape = (check_whole(samples, "samples"), *self.mean.shape)
        noise_KCD = torch.randn(shape, generator=generator, dtype=self.mean.dtype)
        weights_KCD = self.mean + self.std * noise_KCD.to(self.mean.device)
        return weights_KCD.detach(), self.bias.detach().expand(samples, -1)

    def kl(self) -> Tensor:
        """Return KL(q || prior) over all weights, in closed form."""
        ratio = self.std.square() / self.prior_variance
        return 0.5 * (ratio + self.mean.square() / self.prior_variance - 1.0 - ratio.log()).sum()

    def extra_repr(self) -> str:
        """Return what `repr` shows inside the brackets."""
        return f"{self.in_features}, {self.out_features}, prior_variance={self.prior_variance:g}"


def kl_divergence(network: nn.Module) -> Tensor | None:
    """Return the KL of all variational layers of a network; None if it has none."""
    terms = [module.kl() for module in network.modules() if isinstance(module, VariationalLinear)]
    return torch.stack(terms).sum() if terms else None
