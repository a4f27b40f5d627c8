"""Posteriors: K models drawn once and shared by every item of the pool.

A new draw per item would make two identical items look unrelated. A draw is therefore an object
that is made once, from a seed, and then evaluated batch by batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from sabal.errors import InputError
from sabal.models.inputs import (
    HeadedNetwork,
    check_network,
    count_classes,
    device_of,
    evaluation_mode,
)
from sabal.models.random_streams import Stream, make_generator
from sabal.models.variational import VariationalLinear


class Draw(Protocol):
    """K models from a posterior."""

    @property
    def of_features(self) -> bool:
        """Whether the models take features (only their heads differ) rather than items."""

    def log_probs(self, batch: Tensor) -> Tensor:
        """Return log-probabilities (n, K, C) for a batch of features or items."""


class ModelPosterior(Protocol):
    """A distribution over models."""

    @property
    def is_the_model(self) -> bool:
        """Whether the prediction is the posterior mean; not if a network around it predicts."""

    def draw(self, samples: int, seed: int) -> Draw:
        """Return `samples` models; the same ones for the same seed."""


@dataclass(frozen=True, eq=False)
class HeadDraw:
    """K last layers on the features of one network."""

    weights_KCD: Tensor
    bias_KC: Tensor
    of_features: ClassVar[bool] = True

    def log_probs(self, batch: Tensor) -> Tensor:
        """Return log softmax(W_k h + b_k) for a batch of features h, (n, K, C)."""
        samples, classes, dimensions = self.weights_KCD.shape
        features = batch.to(self.weights_KCD)
        logits = functional.linear(
            features, self.weights_KCD.reshape(-1, dimensions), self.bias_KC.reshape(-1)
        )
        return functional.log_softmax(logits.reshape(-1, samples, classes), dim=-1)


class Variational:
    """The posterior of a network that was trained with a variational head.

    Parameters
    ----------
    network : HeadedNetwork
        A network of `build(..., head="variational")`.
    """

    is_the_model: ClassVar[bool] = True

    def __init__(self, network: HeadedNetwork) -> None:
        head = check_network(network).head
        if not isinstance(head, VariationalLinear):
            raise InputError(
                "a network with a variational head",
                f"a {type(head).__name__} head",
                "build it with head='variational', or use Laplace, Dropout or Ensemble",
            )
        self.head = head

    def draw(self, samples: int, seed: int) -> HeadDraw:
        """Return `samples` last layers from the mean-field Gaussian."""
        return HeadDraw(*self.head.sample_weights(samples, make_generator(seed, Stream.POSTERIOR)))


@dataclass(frozen=True, eq=False)
class EnsembleDraw:
    """The members of an ensemble."""

    networks: tuple[nn.Module, ...]
    of_features: ClassVar[bool] = False

    def log_probs(self, batch: Tensor) -> Tensor:
        """Return the log softmax of the logits of every member, (n, K, C)."""
        with evaluation_mode(*self.networks):
            logits = [member(batch.to(device_of(member))).cpu() for member in self.networks]
        return functional.log_softmax(torch.stack(logits, dim=1), dim=-1)


class Ensemble:
    """A deep ensemble (Lakshminarayanan et al. 2017).

    Parameters
    ----------
    networks : sequence of HeadedNetwork
        Networks trained from different seeds.
    """

    is_the_model: ClassVar[bool] = True

    def __init__(self, networks: Sequence[HeadedNetwork]) -> None:
        members = tuple(check_network(network) for network in networks)
        classes = {count_classes(member) for member in members}
        if len(classes) != 1:
            raise InputError(
                "at least one network, all with the same classes",
                f"{len(members)} networks with {sorted(classes)} classes",
                "train the members on the same labels",
            )
        self.networks = members

    def draw(self, samples: int, seed: int) -> EnsembleDraw:
        """Return all members; `samples` must be their number."""
        if samples != len(self.networks):
            raise InputError(
                f"samples={len(self.networks)}, one for each network of the ensemble",
                f"samples={samples}",
                "pass that number, or train more networks",
            )
        return EnsembleDraw(self.networks)
