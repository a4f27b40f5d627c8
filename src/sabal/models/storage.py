"""Networks on disk: safetensors, with the arguments of `build` as JSON. Nothing is unpickled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from sabal.core.files import write_whole
from sabal.errors import FileError, InputError, SabalError
from sabal.models.inputs import Headed, placed
from sabal.models.networks import build

RECIPE = "sabal.network"
"""The metadata key under which the arguments of `build` are kept."""


def save(network: Headed, path: str | Path) -> Path:
    """Write the parameters and buffers; the file at `path` is whole or as it was."""
    recipe = getattr(network, "recipe", None)
    try:
        metadata = {} if recipe is None else {RECIPE: json.dumps(recipe)}
    except TypeError as error:
        raise InputError(
            "options of `build` that JSON can hold", str(error), "use plain numbers and lists"
        ) from None
    state = {
        name: value.detach().cpu().contiguous().clone()
        for name, value in network.state_dict().items()
    }
    return write_whole(path, lambda target: save_file(state, target, metadata=metadata))


def load(
    path: str | Path, *, into: Headed | None = None, device: str | torch.device | None = None
) -> Headed:
    """The network at `path`, in evaluation mode.

    into: a network of your own that the parameters are put into; without it one is built from the
        arguments in the file.
    """
    source = Path(path)
    try:
        with safe_open(str(source), framework="pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise FileError(
            f"a safetensors file at {source}", str(error), "check the path, or save it again"
        ) from None
    network = _built(metadata.get(RECIPE), source) if into is None else into
    _check_state(network, state, source)
    # A network of the caller's keeps its parameters, which an optimiser may know.
    network.load_state_dict(state, assign=into is None)
    placed(network, device)
    return network.eval()


def _check_state(network: Headed, state: dict[str, torch.Tensor], source: Path) -> None:
    wanted = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in state.items()}
    differing = sorted(name for name, _ in set(wanted.items()) ^ set(found.items()))
    if differing:
        name = differing[0]
        raise FileError(
            f"the parameters of {type(network).__name__} in {source}",
            f"{name} of shape {found.get(name)} instead of {wanted.get(name)}",
            "load it into the network that was saved",
        )


def _built(recipe: str | None, source: Path) -> Headed:
    if recipe is None:
        raise FileError(
            f"the arguments of `build` in {source}",
            "none: this is not a network made by `build`",
            "pass into= with the module to fill",
        )
    try:
        arguments: dict[str, Any] = json.loads(recipe)
        return build(**arguments)
    except (SabalError, TypeError, ValueError) as error:
        raise FileError(
            f"usable arguments of `build` in {source}", str(error), "save the network again"
        ) from None
