"""Networks on disk as safetensors, with the arguments of `build` as JSON; nothing is pickled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from sabal.core.files import write_whole
from sabal.errors import FileError, InputError, SabalError
from sabal.models.architectures import build
from sabal.models.inputs import HeadedNetwork, move_to_device

RECIPE = "sabal.network"  # the metadata key of the arguments of `build`


def save(network: HeadedNetwork, path: str | Path) -> Path:
    """Write the parameters and buffers of a network; a failure leaves the old file as it was."""
    try:
        metadata = {} if network.recipe is None else {RECIPE: json.dumps(network.recipe)}
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
    path: str | Path, *, into: HeadedNetwork | None = None, device: str | torch.device | None = None
) -> HeadedNetwork:
    """Load a network, in evaluation mode.

    Parameters
    ----------
    path : str or pathlib.Path
        A file that `save` wrote.
    into : HeadedNetwork, optional
        A network to put the parameters into; if left out, one is built from the arguments in the
        file.
    device : str or torch.device, optional
        Where to put the network.

    Returns
    -------
    HeadedNetwork

    Raises
    ------
    FileError
        If the file cannot be read, or has other parameters than the network.
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
    network = _build(metadata.get(RECIPE), source) if into is None else into
    _check_state(network, state, source)
    # A network of the caller keeps its parameter objects, which an optimiser may refer to.
    network.load_state_dict(state, assign=into is None)
    move_to_device(network, device)
    return network.eval()


def _check_state(network: HeadedNetwork, state: dict[str, torch.Tensor], source: Path) -> None:
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


def _build(recipe: str | None, source: Path) -> HeadedNetwork:
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
