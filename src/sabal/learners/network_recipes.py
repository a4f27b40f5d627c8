"""Recipes of networks and their training, as plain data that a configuration file can hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from sabal.core.checks import check_choice, check_flag, check_number, check_whole
from sabal.errors import InputError, UnknownNameError, did_you_mean

NETWORK_OPTIONS: dict[str, tuple[str, ...]] = {
    "lenet5": ("width", "dropout", "head", "prior_variance"),
    "vgg16": ("width", "dropout", "head", "prior_variance"),
    "resnet18": ("width", "dropout", "features", "head", "prior_variance"),
    "mlp": ("hidden", "width", "dropout", "head", "prior_variance"),
}
"""The options of every network of sabal.models, except those that the data set determines."""


@dataclass(frozen=True, kw_only=True)
class NetworkRecipe:
    """How a network is built and trained: arguments of `sabal.models.build` and `sabal.models.fit`.

    `patience` needs a validation split. `samples` models of the posterior predict every item, for
    which the head must be variational; 0 for the prediction of the trained network itself.
    """

    network: str
    network_options: dict[str, Any] = field(default_factory=dict)
    epochs: int = 100
    batch_size: int = 32
    optimizer: str = "sgd"
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: str | None = None
    augment: str | None = None
    reduction: str = "mean"
    patience: int | None = None
    samples: int = 0
    decay_biases: bool = True
    drop_last: bool = False

    def __post_init__(self) -> None:
        check_choice(self.network, "network", tuple(NETWORK_OPTIONS))
        self._check_network_options()
        check_whole(self.epochs, "epochs")
        check_whole(self.batch_size, "batch_size")
        check_choice(self.optimizer, "optimizer", ("sgd", "adam"))
        check_number(self.lr, "lr", above=0.0)
        check_number(self.momentum, "momentum")
        check_number(self.weight_decay, "weight_decay")
        if self.schedule is not None:
            check_choice(self.schedule, "schedule", ("cosine", "step"))
        if self.augment is not None:
            check_choice(self.augment, "augment", ("crop-flip",))
        check_choice(self.reduction, "reduction", ("mean", "sum"))
        if self.patience is not None:
            check_whole(self.patience, "patience")
        check_whole(self.samples, "samples", minimum=0)
        check_flag(self.decay_biases, "decay_biases")
        check_flag(self.drop_last, "drop_last")
        self._check_samples()

    def _check_network_options(self) -> None:
        known = NETWORK_OPTIONS[self.network]
        for option in self.network_options:
            if option not in known:
                raise UnknownNameError(
                    f"options of {self.network}: {', '.join(known)}",
                    repr(option),
                    "leave it out or rename it",
                )
        try:
            json.dumps(self.network_options)
        except TypeError as error:
            raise InputError(
                "network options that JSON can hold", str(error), "use plain numbers and lists"
            ) from None

    def _check_samples(self) -> None:
        head = self.network_options.get("head", "linear")
        if self.samples and head != "variational":
            raise InputError(
                "a variational head for posterior samples",
                f"samples={self.samples} with a {head} head",
                "set head=variational, or samples=0",
            )
        if self.samples == 1:
            raise InputError(
                "`samples` of at least 2, or 0 for none", "1", "one sample has no spread to look at"
            )

    def training(self) -> dict[str, Any]:
        """Return the arguments of `sabal.models.fit`."""
        not_of_fit = ("network", "network_options", "samples")
        return {name: value for name, value in asdict(self).items() if name not in not_of_fit}

    def record(self) -> dict[str, Any]:
        """Return all fields, without those that older records lack and that change nothing."""
        neutral = {"decay_biases": True, "drop_last": False}
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in neutral or value != neutral[name]
        }


_VARIATIONAL: dict[str, Any] = {
    # As Pinsler et al. 2019 train theirs: Adam on the summed loss of a batch.
    "optimizer": "adam",
    "lr": 1e-3,
    "weight_decay": 5e-4,
    "reduction": "sum",
    "samples": 100,
}

RECIPES: dict[str, NetworkRecipe] = {
    "mlp": NetworkRecipe(network="mlp", optimizer="adam", lr=1e-3),
    "mlp-variational": NetworkRecipe(
        network="mlp", network_options={"head": "variational"}, **_VARIATIONAL
    ),
    "lenet5": NetworkRecipe(network="lenet5", epochs=150),
    "vgg16": NetworkRecipe(network="vgg16", epochs=100, batch_size=128),
    "resnet18": NetworkRecipe(
        network="resnet18",
        epochs=100,
        batch_size=128,
        lr=0.05,
        schedule="cosine",
        augment="crop-flip",
    ),
    "resnet18-variational": NetworkRecipe(
        network="resnet18",
        network_options={"head": "variational"},
        epochs=200,
        batch_size=256,
        schedule="cosine",
        augment="crop-flip",
        **_VARIATIONAL,
    ),
}
"""Recipes by the names that `sabal simulate --model` takes."""


def recipe_of(name: str, overrides: Mapping[str, Any]) -> NetworkRecipe:
    """Return the recipe called `name`, a key of `RECIPES`, with some of its fields changed.

    Options of the network may be given by themselves: width=0.5 is short for
    network_options={"width": 0.5}. Options that are not mentioned stay.
    """
    if name not in RECIPES:
        raise UnknownNameError(
            f"a recipe out of {', '.join(RECIPES)}", repr(name), did_you_mean(name, RECIPES)
        )
    changes = dict(overrides)
    network = changes.get("network", RECIPES[name].network)
    options = changes.pop("network_options", {})
    if not isinstance(options, Mapping):
        raise InputError(
            "`network_options` as names with values", repr(options), 'write {"width": 0.5}'
        )
    own = [each.name for each in fields(NetworkRecipe)]
    short = [option for option in changes if option in NETWORK_OPTIONS.get(network, ())]
    for change in changes:
        if change not in own and change not in short:
            of_network = NETWORK_OPTIONS.get(network, ())
            raise UnknownNameError(
                f"settings of {name}: {', '.join((*own, *of_network))}",
                repr(change),
                did_you_mean(change, (*own, *of_network), otherwise="leave it out"),
            )
    changes["network_options"] = {
        **RECIPES[name].network_options,
        **options,
        **{option: changes.pop(option) for option in short},
    }
    return replace(RECIPES[name], **changes)
