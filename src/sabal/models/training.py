"""Training: one seed decides the order of the batches, the augmentation and all noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sabal.core.checks import check_choice, check_number, check_whole
from sabal.errors import InputError
from sabal.models.batches import TrainingData
from sabal.models.inputs import (
    Headed,
    Items,
    batch_of,
    check_headed,
    check_items,
    check_labels,
    classes_of,
    evaluating,
    placed,
    slices,
)
from sabal.models.progress import Progress, ticking
from sabal.models.seeds import Stream, seeded
from sabal.models.variational import VariationalLinear, kl_of

SCHEDULES: dict[str, Callable[[float], float]] = {
    # From 1 to 1/100, which is 1e-5 for the usual 1e-3 of Adam, as Pinsler et al. 2019 have it.
    "cosine": lambda done: 0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * done)),
    "step": lambda done: 0.1 ** (int(done >= 0.5) + int(done >= 0.75)),
}
"""The learning rate's factor, by the share of the epochs that is done."""


@dataclass(frozen=True)
class Training:
    """How a training went.

    losses: the objective of every epoch, as a mean per unit of weight: the loss, plus, with a
        variational layer, KL / (sum of weights), which makes it a bound on the evidence.
    val_losses: the mean loss on the validation split after every epoch, where there is one.
    best_epoch: the epoch (from 1) whose parameters were kept.
    """

    losses: list[float]
    val_losses: list[float]
    best_epoch: int

    @property
    def epochs(self) -> int:
        """How many epochs were run."""
        return len(self.losses)


def fit(
    network: Headed,
    x: Any,
    y: Any,
    *,
    weights: Any = None,
    epochs: int = 100,
    batch_size: int = 32,
    optimizer: str = "sgd",
    lr: float = 0.01,
    momentum: float = 0.9,
    weight_decay: float = 5e-4,
    schedule: str | None = None,
    augment: str | None = None,
    patience: int | None = None,
    x_val: Any = None,
    y_val: Any = None,
    reduction: str = "mean",
    seed: int = 0,
    device: str | torch.device | None = None,
    progress: Progress = False,
) -> Training:
    """Train `network` in place on items and class numbers; it ends in evaluation mode.

    weights: importance per item; 2 counts as the item twice, 0 as its absence (which, with batch
        norm, it then also is). The objective is sum_j w_j loss_j / sum_j w_j.
    optimizer: "sgd" (with `momentum`) or "adam". weight_decay spares variational layers, whose
        prior does its work.
    schedule: None, "cosine" (down to lr / 100) or "step" (a tenth at 1/2 and again at 3/4).
    augment: None or "crop-flip" (shifts of up to 4 pixels, mirror images).
    patience: stop after so many epochs without a better loss on x_val, y_val, and keep the best
        parameters; None trains all epochs and keeps the last.
    reduction: "mean", or "sum" over the batch, as Pinsler et al. 2019 have it: weight decay then
        weighs less by the size of the batch.

    To start afresh, train a network fresh from `build`.
    """
    classes = classes_of(check_headed(network))
    for value, name in ((epochs, "epochs"), (batch_size, "batch_size")):
        check_whole(value, name)
    check_choice(reduction, "reduction", ("mean", "sum"))
    if schedule is not None:
        check_choice(schedule, "schedule", tuple(SCHEDULES))
    data = TrainingData(network, x, y, weights, augment, batch_size, seed)
    validation = _check_validation(network, x_val, y_val, patience, classes)
    keeper = _Keeper(network, patience)
    where = placed(network, device)
    steps = _optimizer(network, optimizer, lr, momentum, weight_decay)
    losses: list[float] = []
    val_losses: list[float] = []
    try:
        with seeded(seed, Stream.NOISE, where), ticking(progress, epochs, "training") as tick:
            for epoch in range(epochs):
                factor = 1.0 if schedule is None else SCHEDULES[schedule](epoch / epochs)
                for group in steps.param_groups:
                    group["lr"] = lr * factor
                losses.append(_finite(_epoch(network, data, steps, reduction), epoch))
                tick(1)
                if validation is not None:
                    val_losses.append(_mean_loss(network, *validation, batch_size))
                    if keeper.enough(val_losses[-1], epoch):
                        break
        best_epoch = keeper.restore(len(losses))
    finally:
        network.eval()
    return Training(losses, val_losses, best_epoch)


def _epoch(
    network: Headed, data: TrainingData, steps: torch.optim.Optimizer, reduction: str
) -> float:
    """One pass over the data; the mean objective on the way."""
    network.train()
    total = 0.0
    for rows in data.batches():
        logits = network(data.inputs(rows, network))
        losses = functional.cross_entropy(
            logits, data.labels[rows].to(logits.device), reduction="none"
        )
        # The batch stands for the whole set, of which it is this much by number of items.
        share = len(rows) / len(data.kept)
        loss = (data.weights_N[rows].to(losses) * losses).sum() / (share * data.total_weight)
        kl = kl_of(network)
        if kl is not None:
            loss = loss + kl / data.total_weight
        steps.zero_grad()
        torch.autograd.backward(loss * (share * data.total_weight) if reduction == "sum" else loss)
        steps.step()
        total += float(loss.detach()) * share
    return total


class _Keeper:
    """Watches the validation loss, and keeps the parameters of its best epoch."""

    def __init__(self, network: nn.Module, patience: int | None) -> None:
        self.network, self.patience = network, patience
        self.best, self.best_epoch = math.inf, 0
        self.state: dict[str, Tensor] | None = None

    def enough(self, loss: float, epoch: int) -> bool:
        if self.patience is None:
            return False
        if loss < self.best:
            self.best, self.best_epoch = loss, epoch + 1
            self.state = {k: v.detach().clone() for k, v in self.network.state_dict().items()}
        return epoch + 1 - self.best_epoch >= self.patience

    def restore(self, epochs: int) -> int:
        """Put the best parameters back; the epoch that they are from."""
        if self.state is None:
            return epochs
        self.network.load_state_dict(self.state)
        return self.best_epoch


def _optimizer(
    network: nn.Module, name: str, lr: float, momentum: float, weight_decay: float
) -> torch.optim.Optimizer:
    check_choice(name, "optimizer", ("sgd", "adam"))
    check_number(lr, "lr", above=0.0)
    check_number(momentum, "momentum")
    check_number(weight_decay, "weight_decay")
    spared = {
        id(parameter)
        for module in network.modules()
        if isinstance(module, VariationalLinear)
        for parameter in module.parameters()
    }
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in trained if id(p) not in spared], "weight_decay": weight_decay},
        {"params": [p for p in trained if id(p) in spared], "weight_decay": 0.0},
    ]
    if name == "adam":
        return torch.optim.Adam(groups, lr=lr)
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


def _mean_loss(network: Headed, items: Items, labels: Tensor, batch_size: int) -> float:
    total = 0.0
    with evaluating(network):
        for rows in slices(items.shape[0], batch_size):
            logits = network(batch_of(items, rows, network)).cpu()
            total += float(functional.cross_entropy(logits, labels[rows], reduction="sum"))
    return total / items.shape[0]


def _check_validation(
    network: Headed, x_val: Any, y_val: Any, patience: int | None, classes: int
) -> tuple[Items, Tensor] | None:
    if (x_val is None) != (y_val is None) or (patience is not None and x_val is None):
        raise InputError(
            "x_val and y_val together, and both when `patience` is given",
            "one of them missing",
            "pass a validation split",
        )
    if patience is not None:
        check_whole(patience, "patience")
    if x_val is None:
        return None
    items = check_items(x_val, network, "x_val")
    return items, check_labels(y_val, items.shape[0], classes, "y_val")


def _finite(loss: float, epoch: int) -> float:
    if not math.isfinite(loss):
        raise InputError(
            "a finite training loss",
            f"{loss} in epoch {epoch + 1}",
            "lower lr, or look for NaN in x",
        )
    return loss
