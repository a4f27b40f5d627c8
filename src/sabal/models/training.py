"""Training of networks; one seed determines the batches, the augmentation and all noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sabal.core.checks import check_choice, check_flag, check_number, check_whole
from sabal.errors import InputError
from sabal.models.inputs import (
    HeadedNetwork,
    InputArray,
    check_items,
    check_labels,
    check_network,
    count_classes,
    evaluation_mode,
    move_to_device,
    row_slices,
    take_batch,
)
from sabal.models.progress import Progress, report_progress
from sabal.models.random_streams import Stream, seeded_torch
from sabal.models.training_data import TrainingData
from sabal.models.variational import VariationalLinear, kl_divergence

SCHEDULES: dict[str, Callable[[float], float]] = {
    # From 1 to 1/100, which is 1e-5 for the usual 1e-3 of Adam, as in Pinsler et al. 2019.
    "cosine": lambda done: 0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * done)),
    "step": lambda done: 0.1 ** (int(done >= 0.5) + int(done >= 0.75)),
}
"""The factor of the learning rate, by the share of the epochs that is done."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """The settings of `fit`.

    Parameters
    ----------
    epochs : int
        Passes over the data.
    batch_size : int
        Items per step.
    optimizer : {"sgd", "adam"}
        `momentum` is for "sgd".
    lr, momentum : float
        The learning rate and the momentum.
    weight_decay : float
        Not applied to variational layers, which have a prior.
    decay_biases : bool
        Whether the weight decay also applies to biases.
    schedule : {None, "cosine", "step"}
        How the learning rate decreases: not at all, to lr / 100 along a cosine, or to a tenth at
        1/2 and again at 3/4 of the epochs.
    augment : {None, "crop-flip"}
        "crop-flip" shifts images by up to 4 pixels and mirrors half of them.
    patience : int, optional
        Stop after this many epochs without a lower loss on the validation split, and keep the best
        parameters. If left out, train all epochs and keep the last parameters.
    reduction : {"mean", "sum"}
        Of the loss over a batch. With "sum", as in Pinsler et al. 2019, weight decay counts less by
        the size of the batch.
    drop_last : bool
        Whether the last, incomplete batch of an epoch is left out. A set smaller than one batch is
        never left out.
    """

    epochs: int = 100
    batch_size: int = 32
    optimizer: str = "sgd"
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: str | None = None
    augment: str | None = None
    patience: int | None = None
    reduction: str = "mean"
    decay_biases: bool = True
    drop_last: bool = False

    def __post_init__(self) -> None:
        check_whole(self.epochs, "epochs")
        check_whole(self.batch_size, "batch_size")
        check_choice(self.optimizer, "optimizer", ("sgd", "adam"))
        check_number(self.lr, "lr", above=0.0)
        check_number(self.momentum, "momentum")
        check_number(self.weight_decay, "weight_decay")
        if self.schedule is not None:
            check_choice(self.schedule, "schedule", tuple(SCHEDULES))
        if self.augment is not None:
            check_choice(self.augment, "augment", ("crop-flip",))
        if self.patience is not None:
            check_whole(self.patience, "patience")
        check_choice(self.reduction, "reduction", ("mean", "sum"))
        check_flag(self.decay_biases, "decay_biases")
        check_flag(self.drop_last, "drop_last")

    def lr_at(self, epoch: int) -> float:
        """Return the learning rate of an epoch."""
        return self.lr * (SCHEDULES[self.schedule](epoch / self.epochs) if self.schedule else 1.0)


@dataclass(frozen=True)
class Training:
    """The course of a training.

    Attributes
    ----------
    losses : list of float
        The objective in every epoch, as a mean per unit of weight: the loss, plus, with a
        variational layer, KL / (sum of weights), which makes it a bound on the evidence.
    val_losses : list of float
        The mean loss on the validation split after every epoch, if there is one.
    best_epoch : int
        The epoch (from 1) whose parameters were kept.
    """

    losses: list[float]
    val_losses: list[float]
    best_epoch: int

    @property
    def epochs(self) -> int:
        """The number of epochs."""
        return len(self.losses)


def fit(
    network: HeadedNetwork,
    x: Any,
    y: Any,
    *,
    weights: Any = None,
    x_val: Any = None,
    y_val: Any = None,
    seed: int = 0,
    device: str | torch.device | None = None,
    progress: Progress = False,
    **settings: Any,
) -> Training:
    """Train a network in place; it ends in evaluation mode.

    Training continues from the present parameters; `build` a new network to start again.

    Parameters
    ----------
    network : HeadedNetwork
        The network.
    x, y : array
        The items, and their classes as integers.
    weights : array, optional
        The importance of the items: 2 counts like the item twice, 0 like its absence (also for
        batch norm). The objective is sum_j w_j loss_j / sum_j w_j.
    x_val, y_val : array, optional
        A validation split, for `patience`.
    seed : int
        Determines the order of the batches, the augmentation and all noise.
    device, progress
        The device to move the network to, and whether to show a progress bar.
    **settings
        The fields of `TrainingSettings`: epochs, batch_size, optimizer, lr, momentum, weight_decay,
        schedule, augment, patience, reduction, decay_biases, drop_last.

    Returns
    -------
    Training
        The losses.
    """
    given = TrainingSettings(**settings)
    check_network(network)
    data = TrainingData(
        network,
        x,
        y,
        weights,
        augment=given.augment,
        batch_size=given.batch_size,
        drop_last=given.drop_last,
        seed=seed,
    )
    validation = _check_validation(network, x_val, y_val, given.patience)
    where = move_to_device(network, device)
    try:
        with (
            seeded_torch(seed, Stream.NOISE, where),
            report_progress(progress, given.epochs, "training") as tick,
        ):
            return _run_epochs(network, data, validation, given, tick)
    finally:
        network.eval()


def _run_epochs(
    network: HeadedNetwork,
    data: TrainingData,
    validation: tuple[InputArray, Tensor] | None,
    settings: TrainingSettings,
    tick: Callable[[int], None],
) -> Training:
    keeper = _BestParameters(network, settings.patience)
    optimizer = _make_optimizer(network, settings)
    losses: list[float] = []
    val_losses: list[float] = []
    for epoch in range(settings.epochs):
        for group in optimizer.param_groups:
            group["lr"] = settings.lr_at(epoch)
        loss = _epoch(network, data, optimizer, settings.reduction)
        if not math.isfinite(loss):
            got = f"{loss} in epoch {epoch + 1}"
            raise InputError("a finite training loss", got, "lower lr, or look for NaN in x")
        losses.append(loss)
        tick(1)
        if validation is not None:
            val_losses.append(_mean_loss(network, *validation, settings.batch_size))
            if keeper.should_stop(val_losses[-1], epoch):
                break
    return Training(losses, val_losses, keeper.restore(len(losses)))


def _epoch(
    network: HeadedNetwork, data: TrainingData, optimizer: torch.optim.Optimizer, reduction: str
) -> float:
    """Train one epoch and return the mean objective."""
    network.train()
    total, seen = 0.0, 0.0
    for rows in data.batches():
        logits = network(data.inputs(rows, network))
        losses = functional.cross_entropy(
            logits, data.labels[rows].to(logits.device), reduction="none"
        )
        # The batch represents the whole set, of which it is this share by number of items.
        share = len(rows) / len(data.kept)
        loss = (data.weights_N[rows].to(losses) * losses).sum() / (share * data.total_weight)
        kl = kl_divergence(network)
        if kl is not None:
            loss = loss + kl / data.total_weight
        optimizer.zero_grad()
        torch.autograd.backward(loss * (share * data.total_weight) if reduction == "sum" else loss)
        optimizer.step()
        total += float(loss.detach()) * share
        seen += share
    return total / seen


class _BestParameters:
    """The parameters of the epoch with the lowest validation loss."""

    def __init__(self, network: nn.Module, patience: int | None) -> None:
        self.network, self.patience = network, patience
        self.best, self.best_epoch = math.inf, 0
        self.state: dict[str, Tensor] | None = None

    def should_stop(self, loss: float, epoch: int) -> bool:
        if self.patience is None:
            return False
        if loss < self.best:
            self.best, self.best_epoch = loss, epoch + 1
            self.state = {k: v.detach().clone() for k, v in self.network.state_dict().items()}
        return epoch + 1 - self.best_epoch >= self.patience

    def restore(self, epochs: int) -> int:
        """Restore the best parameters and return the epoch that they are from."""
        if self.state is None:
            return epochs
        self.network.load_state_dict(self.state)
        return self.best_epoch


def _make_optimizer(network: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    without_decay = {
        id(parameter)
        for module in network.modules()
        if isinstance(module, VariationalLinear)
        for parameter in module.parameters()
    }
    if not settings.decay_biases:
        named = network.named_parameters()
        without_decay |= {id(each) for name, each in named if name.split(".")[-1] == "bias"}
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    decay = settings.weight_decay
    groups = [
        {"params": [p for p in trained if id(p) not in without_decay], "weight_decay": decay},
        {"params": [p for p in trained if id(p) in without_decay], "weight_decay": 0.0},
    ]
    if settings.optimizer == "adam":
        return torch.optim.Adam(groups, lr=settings.lr)
    return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum)


def _mean_loss(network: HeadedNetwork, items: InputArray, labels: Tensor, batch_size: int) -> float:
    total = 0.0
    with evaluation_mode(network):
        for rows in row_slices(items.shape[0], batch_size):
            logits = network(take_batch(items, rows, network)).cpu()
            total += float(functional.cross_entropy(logits, labels[rows], reduction="sum"))
    return total / items.shape[0]


def _check_validation(
    network: HeadedNetwork, x_val: Any, y_val: Any, patience: int | None
) -> tuple[InputArray, Tensor] | None:
    if (x_val is None) != (y_val is None) or (patience is not None and x_val is None):
        raise InputError(
            "x_val and y_val together, and both when `patience` is given",
            "one of them missing",
            "pass a validation split",
        )
    if x_val is None:
        return None
    items = check_items(x_val, network, "x_val")
    return items, check_labels(y_val, items.shape[0], count_classes(network), "y_val")
