"""Which learner a project gets."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

from sabal.errors import InputError
from sabal.labeling.settings import Settings
from sabal.learners.learner import Learner
from sabal.learners.linear import LinearLearner

LINEAR, LENET = "linear", "lenet"
PACKAGES = ("torch", "safetensors")  # the packages that a network needs


def name_of_head(settings: Settings, backbone: str) -> str:
    """Return the learner for the features of a backbone: "linear" or "lenet".

    With the setting "auto", small pixels get a network if PyTorch is installed. All other features
    get a linear model: they have been through a network already, or are not images.
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


def make_learner(name: str, features_ND: np.ndarray, class_names: Sequence[str]) -> Learner:
    """Return the learner called `name` for a pool of features, not trained yet."""
    if name == LINEAR:
        return LinearLearner(features_ND, class_names)
    from sabal.learners.lenet import LeNetLearner

    return LeNetLearner(features_ND, class_names)
