"""Posteriors: K models drawn once and shared by every item of the pool.

A fresh draw per item would make two identical items look unrelated, so a draw is an object that is
made once, from a seed, and then asked about batch after batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from sabal.errors import InputError
from sabal.models.inputs import Headed, check_headed, classes_of, device_of, evaluating
from sabal.models.seeds import Stream, generator_of
from sabal.models.variational import VariationalLinear


class Draw(Protocol):
    """K models from a posterior."""

    @property
    def of_features(self) -> bool:
        """Whether the models take features (only their heads differ) rather than items."""

    def log_probs(self, batch: Tensor) -> Tensor:
        """(n, K, C) log-probabilities for a batch of features or items."""


class Posterior(Protocol):
    """A distribution over models."""

    @property
    def is_the_model(self) -> bool:
        """Whether the prediction is the mean over the posterior, not that of one network.

        A Laplace posterior lies around a network whose own prediction stays what it is.
        """

    def draw(self, samples: int, seed: int) -> Draw:
        """`samples` models; the same for the same seed."""


@dataclass(frozen=True, eq=False)
class HeadDraw:
    """K last layers on the features of one network."""

    weights_KCD: Tensor
    bias_KC: Tensor
    of_features: ClassVar[bool] = True

    def log_probs(self, batch: Tensor) -> Tensor:
        """Log softmax(W_k h + b_k)."""
        samples, classes, dimensions = self.weights_KCD.shape
        features = batch.to(self.weights_KCD)
        logits = functional.linear(
            features, self.weights_KCD.reshape(-1, dimensions), self.bias_KC.reshape(-1)
        )
        return functional.log_softmax(logits.reshape(-1, samples, classes), dim=-1)


class Variational:
    """The posterior that a network with a variational head was trained to have."""

    is_the_model: ClassVar[bool] = True

    def __init__(self, network: Headed) -> None:
        head = check_headed(network).head
        if not isinstance(head, VariationalLinear):
            raise InputError(
                "a network with a variational head",
                f"a {type(head).__name__} head",
                "build it with head='variational', or use Laplace, Dropout or Ensemble",
            )
        self.head = head

    def draw(self, samples: int, seed: int) -> HeadDraw:
        """Weights from the mean-field Gaussian."""
        return HeadDraw(*self.head.sample_weights(samples, generator_of(seed, Stream.POSTERIOR)))


@dataclass(frozen=True, eq=False)
class EnsembleDraw:
    """The members of an ensemble."""

    networks: tuple[nn.Module, ...]
    of_features: ClassVar[bool] = False

    def log_probs(self, batch: Tensor) -> Tensor:
        """Log softmax of every member's logits."""
        with evaluating(*self.networks):
            logits = [member(batch.to(device_of(member))).cpu() for member in self.networks]
        return functional.log_softmax(torch.stack(logits, dim=1), dim=-1)


class Ensemble:
    """Deep ensemble (Lakshminarayanan et al. 2017): networks trained from different seeds."""

    is_the_model: ClassVar[bool] = True

    def __init__(self, networks: Sequence[Headed]) -> None:
        members = tuple(check_headed(network) for network in networks)
        classes = {classes_of(member) for member in members}
        if len(classes) != 1:
            raise InputError(
                "at least one network, all with the same classes",
                f"{len(members)} networks with {sorted(classes)} classes",
                "train the members on the same labels",
            )
        self.networks = members

    def draw(self, samples: int, seed: int) -> EnsembleDraw:
        """All members: there is nothing to draw, so `samples` is their number."""
        if samples != len(self.networks):
            raise InputError(
                f"samples={len(self.networks)}, one for each network of the ensemble",
                f"samples={samples}",
                "pass that number, or train more networks",
            )
        return EnsembleDraw(self.networks)
