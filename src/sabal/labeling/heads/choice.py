"""Which head a project gets."""

from __future__ import annotations

from importlib.util import find_spec

from sabal.errors import InputError
from sabal.labeling.settings import Settings

LINEAR, LENET = "linear", "lenet"
PACKAGES = ("torch", "safetensors")
"""What a network needs."""


def name_of_head(settings: Settings, backbone: str) -> str:
    """What learns from the features of a backbone: "linear" or "lenet".

    "auto" is a network for small pixels where PyTorch is installed, and else a linear head:
    features of every other kind have been through a network already, or are nobody's images.
    """
    if settings.head == LENET and backbone != "pixels":
        raise InputError(
            "pixels as features where `head` is lenet",
            f"the backbone {backbone!r}",
            'set backbone = "pixels", or head = "linear"',
        )
    if settings.head != "auto":
        return settings.head
    installed = all(find_spec(package) is not None for package in PACKAGES)
    return LENET if backbone == "pixels" and installed else LINEAR
