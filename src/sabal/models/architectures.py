"""Networks in plain torch: LeNet-5, VGG-16, ResNet-18 (their small-image forms) and an MLP.

Each has a body and a head: forward(x) = head(features(x)). `width` scales the number of channels,
for small machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from sabal.core.checks import check_choice, check_whole
from sabal.errors import InputError, UnknownNameError
from sabal.models.inputs import HeadedNetwork
from sabal.models.layers import (
    ResidualBlock,
    Shape,
    Standardise,
    dense,
    dropout_layers,
    he_initial,
    image_shape,
    scaled,
)
from sabal.models.random_streams import Stream, seeded_torch
from sabal.models.variational import VariationalLinear


class Network(HeadedNetwork):
    """A network with a body and a head.

    Parameters
    ----------
    body : torch.nn.Module
        Everything before the last layer.
    dimensions : int
        The width of the output of the body.
    input_shape : tuple of int
        The shape of one item.
    classes : int
        The number of classes.
    head : {"linear", "variational"}
        The kind of the last layer.
    prior_variance : float, optional
        Of a variational head; see `VariationalLinear`.
    mean, std : sequence of float, optional
        One number per channel, to standardise the inputs with.
    """

    options: ClassVar[tuple[str, ...]] = ()
    common_options: ClassVar[tuple[str, ...]] = ("head", "prior_variance", "mean", "std")

    def __init__(
        self,
        body: nn.Module,
        dimensions: int,
        input_shape: Shape,
        classes: int,
        *,
        head: str = "linear",
        prior_variance: float | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.input_shape = input_shape
        self.scale = Standardise(input_shape, mean, std)
        self.body = body
        if check_choice(head, "head", ("linear", "variational")) == "linear":
            self.head = nn.Linear(dimensions, classes)
        else:
            self.head = VariationalLinear(dimensions, classes, prior_variance=prior_variance)

    def features(self, x: Tensor) -> Tensor:
        """Return the input of the last layer, (n, d)."""
        features: Tensor = self.body(self.scale(x))
        return features

    def forward(self, x: Tensor) -> Tensor:
        """Return logits, (n, classes)."""
        logits: Tensor = self.head(self.features(x))
        return logits


class LeNet5(Network):
    """LeNet-5 (LeCun et al. 1998) with ReLU and max pooling, as is usual today; 84-d features.

    Images other than 32 x 32, of at least 12 pixels, are padded by 2, which makes 28 x 28 the 32 x
    32 of the paper. Dropout follows each of the two dense layers.
    """

    options = ("width", "dropout")

    def __init__(
        self,
        input_shape: Shape,
        classes: int,
        *,
        width: float = 1.0,
        dropout: float = 0.0,
        **common: Any,
    ) -> None:
        channels, *size = image_shape(input_shape)
        padding = 0 if size == [32, 32] else 2
        height, across = ((((s + 2 * padding - 4) // 2) - 4) // 2 for s in size)
        if min(height, across) < 1:
            raise InputError(
                "images of at least 12 x 12 pixels for lenet5", f"{size[0]} x {size[1]}", "use mlp"
            )
        first, second, third, fourth = (scaled(c, width) for c in (6, 16, 120, 84))
        body = nn.Sequential(
            nn.Conv2d(channels, first, 5, padding=padding),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(first, second, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            *dense(second * height * across, third, dropout),
            *dense(third, fourth, dropout),
        )
        super().__init__(body, fourth, input_shape, classes, **common)


class VGG16(Network):
    """VGG-16 (Simonyan & Zisserman 2015) for small images: 13 convolutions with batch norm.

    The dense layers of the original are replaced by a head on 512 features. Sizes other than 32 x
    32 end in an average over the remaining positions. Dropout precedes the head.
    """

    options = ("width", "dropout")

    def __init__(
        self,
        input_shape: Shape,
        classes: int,
        *,
        width: float = 1.0,
        dropout: float = 0.0,
        **common: Any,
    ) -> None:
        channels, *size = image_shape(input_shape)
        layers: list[nn.Module] = []
        for wide, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
            for _ in range(count):
                convolution = nn.Conv2d(channels, scaled(wide, width), 3, padding=1)
                channels = convolution.out_channels
                layers += [convolution, nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
            # 28 pixels are down to 1 before the last pooling, which then must be left out.
            if min(size) > 1:
                layers.append(nn.MaxPool2d(2))
                size = [s // 2 for s in size]
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), *dropout_layers(dropout)]
        body = nn.Sequential(*layers)
        he_initial(body)
        super().__init__(body, channels, input_shape, classes, **common)


class ResNet18(Network):
    """ResNet-18 (He et al. 2016) for small images: a 3 x 3 stem and no max pooling.

    `features` is the width of a last hidden layer with ReLU (32, with Xavier initial weights, as in
    Pinsler et al. 2019); None for the 512 averages themselves. Dropout precedes the head.
    """

    options = ("width", "dropout", "features")

    def __init__(
        self,
        input_shape: Shape,
        classes: int,
        *,
        width: float = 1.0,
        features: int | None = 32,
        dropout: float = 0.0,
        **common: Any,
    ) -> None:
        channels = scaled(64, width)
        stem = nn.Conv2d(image_shape(input_shape)[0], channels, 3, padding=1, bias=False)
        layers: list[nn.Module] = [stem, nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
        for wide, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            out = scaled(wide, width)
            layers += [ResidualBlock(channels, out, stride), ResidualBlock(out, out, 1)]
            channels = out
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        if features is not None:
            last = nn.Linear(channels, check_whole(features, "features"))
            nn.init.xavier_normal_(last.weight)
            channels = last.out_features
            layers += [last, nn.ReLU()]
        body = nn.Sequential(*layers, *dropout_layers(dropout))
        he_initial(body)
        super().__init__(body, channels, input_shape, classes, **common)


class MLP(Network):
    """Dense layers with ReLU over the flattened input; dropout after each of them."""

    options = ("hidden", "width", "dropout")

    def __init__(
        self,
        input_shape: Shape,
        classes: int,
        *,
        hidden: Sequence[int] = (128, 128),
        width: float = 1.0,
        dropout: float = 0.0,
        **common: Any,
    ) -> None:
        inputs = int(torch.Size(input_shape).numel())
        layers: list[nn.Module] = [nn.Flatten()]
        for wide in hidden:
            outputs = scaled(check_whole(wide, "hidden"), width)
            layers += dense(inputs, outputs, dropout)
            inputs = outputs
        super().__init__(nn.Sequential(*layers), inputs, input_shape, classes, **common)


NETWORKS: dict[str, type[LeNet5 | VGG16 | ResNet18 | MLP]] = {
    "lenet5": LeNet5,
    "vgg16": VGG16,
    "resnet18": ResNet18,
    "mlp": MLP,
}


def build(
    name: str, input_shape: Sequence[int], classes: int, seed: int = 0, **options: Any
) -> Network:
    """Build a new network, in evaluation mode.

    Parameters
    ----------
    name : {"lenet5", "vgg16", "resnet18", "mlp"}
        The architecture.
    input_shape : sequence of int
        The shape of one item: (channels, height, width) for images.
    classes : int
        The number of classes.
    seed : int
        Determines the initial weights. The body does not depend on the kind of the head.
    **options
        Options of the architecture (such as `width` and `dropout`) and of `Network`.

    Returns
    -------
    Network
    """
    if name not in NETWORKS:
        raise UnknownNameError(f"one of {', '.join(NETWORKS)}", repr(name), "pick one of these")
    kind = NETWORKS[name]
    known = (*kind.options, *Network.common_options)
    for option in options:
        if option not in known:
            raise UnknownNameError(
                f"options of {name}: {', '.join(known)}", option, "leave it out or rename it"
            )
    shape = tuple(check_whole(length, "input_shape") for length in input_shape)
    classes = check_whole(classes, "classes", minimum=2)
    with seeded_torch(seed, Stream.WEIGHTS):
        network: Network = kind(shape, classes, **options)
    network.recipe = {
        "name": name, "input_shape": list(shape), "classes": classes, "seed": int(seed), **options
    }  # fmt: skip
    return network.eval()
