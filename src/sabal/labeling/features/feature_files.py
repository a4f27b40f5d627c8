"""The features of a project on disk: one .npy file per chunk, written whole or not at all.

    features/features.json   the backbone, and how the pool is cut into chunks
    features/000003.npy      rows 1,500 to 1,999

So the computation continues where it stopped, in this process or another. Items that are added
later get chunks of their own, after the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from sabal.core.checks import check_features
from sabal.core.files import make_folder, write_text_whole, write_whole
from sabal.errors import FileError
from sabal.labeling.features.backbone import Backbone, make_backbone, name_of_backbone
from sabal.labeling.features.image_features import pixel_side
from sabal.labeling.learner_choice import LENET, name_of_head
from sabal.labeling.project import Project
from sabal.labeling.settings import Settings
from sabal.labeling.store.records import PoolItem

ROWS_PER_CHUNK = 500
FOLDER, PLAN = "features", "features.json"


class FeatureFiles:
    """Computes the features of a project a chunk at a time, and reads them back."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.folder = project.folder / FOLDER
        self._items: list[PoolItem] | None = None
        self._backbone: Backbone | None = None
        self._plan = self._begun()

    @property
    def backbone(self) -> str:
        """The name of the backbone."""
        return str(self._plan["backbone"])

    @property
    def side(self) -> int:
        """The side of small images where pixels are the features."""
        return int(self._plan["side"])

    @property
    def progress(self) -> float:
        """The share of chunks that are computed, 0 to 1."""
        done = sum(path.exists() for path in self._paths())
        return done / len(self._paths())

    @property
    def complete(self) -> bool:
        """Whether all chunks are computed."""
        return all(path.exists() for path in self._paths())

    def compute_next(self) -> None:
        """Compute the first chunk that is missing."""
        items = self._pool()
        if self._backbone is None:
            # Fitted to the first items only, so that new ones get features of the same kind.
            first = items[: self._plan["items"]]
            self._backbone = make_backbone(self.backbone, self.project, first, self.side)
        for (start, stop), path in zip(self._chunks(), self._paths(), strict=True):
            if not path.exists():
                rows = self._rows(self._backbone, items[start:stop])
                write_whole(path, partial(_save, rows))
                return

    def _rows(self, backbone: Backbone, part: list[PoolItem]) -> np.ndarray:
        """Return the features of some items; NaN for images that cannot be read."""
        readable, found = readable_rows(backbone, part)
        first = self._paths()[0]
        if not readable and not first.exists():
            # Where nothing at all can be read, something else is wrong.
            return check_features(backbone.rows(part))
        width = found.shape[1] if readable else _load(first).shape[1]
        rows = np.full((len(part), width), np.nan, dtype=found.dtype)
        if readable:
            rows[readable] = found
        return rows

    def load(self) -> np.ndarray:
        """Return the features of the pool as an (items, d) array; NaN for unreadable items."""
        parts = [_load(path) for path in self._paths()]
        if len({part.shape[1] for part in parts}) > 1:
            raise FileError(
                f"features of one width in {self.folder}",
                "several",
                f"remove {self.folder}: they are computed anew",
            )
        return np.concatenate(parts)

    def _chunks(self) -> list[tuple[int, int]]:
        """Return the first row of every chunk, and the one after its last row."""
        size, ends = self._plan["chunk"], [0, self._plan["items"], *self._plan.get("added", [])]
        return [
            (start, min(start + size, end))
            for begin, end in pairwise(ends)
            for start in range(begin, end, size)
        ]

    def _paths(self) -> list[Path]:
        return [self.folder / f"{number:06d}.npy" for number in range(len(self._chunks()))]

    def _extended(self, plan: dict[str, Any]) -> dict[str, Any]:
        """Return a plan with the items that were added since it was written."""
        ends = [plan["items"], *plan.get("added", [])]
        if len(self._pool()) <= ends[-1]:
            return plan
        plan = {**plan, "added": [*ends[1:], len(self._pool())]}
        write_text_whole(self.folder / PLAN, json.dumps(plan, indent=1))
        return plan

    def _pool(self) -> list[PoolItem]:
        if self._items is None:
            self._items = self.project.items
        return self._items

    def _begun(self) -> dict[str, Any]:
        """Return the plan that was begun, or begin the one of the settings."""
        settings = self.project.settings
        requested = {"backbone": settings.backbone, "size": settings.size}
        plan = plan_of(self.project)
        if plan is not None:
            if plan.get("asked") != requested:
                raise FileError(
                    f"the backbone that {self.folder} was begun with",
                    f"{settings.backbone!r} of size {settings.size}",
                    f"remove {self.folder}, or set the old one in sabal.toml",
                )
            return self._extended(plan)
        make_folder(self.folder)
        backbone = name_of_backbone(self.project)
        plan = {
            "backbone": backbone,
            "side": side_for(settings, backbone),
            "asked": requested,
            "items": len(self._pool()),
            "chunk": ROWS_PER_CHUNK,
        }
        write_text_whole(self.folder / PLAN, json.dumps(plan, indent=1))
        return plan


def readable_rows(backbone: Backbone, part: Sequence[PoolItem]) -> tuple[list[int], np.ndarray]:
    """Return the positions of the items that can be read, and their features."""
    try:
        return list(range(len(part))), check_features(backbone.rows(part))
    except FileError:
        # One by one: it is an image, and most of the others are fine.
        rows = [_row_of(backbone, item) for item in part]
    readable = [k for k, row in enumerate(rows) if row is not None]
    found = [row for row in rows if row is not None]
    return readable, np.concatenate(found) if found else np.empty((0, 0), dtype=np.float32)


def _row_of(backbone: Backbone, item: PoolItem) -> np.ndarray | None:
    try:
        return check_features(backbone.rows([item]))
    except FileError:
        return None


def computed_parts(project: Project) -> Iterator[np.ndarray]:
    """Yield the features that are computed so far, a chunk at a time; NaN for unreadable items."""
    for number in count():
        path = project.folder / FOLDER / f"{number:06d}.npy"
        if not path.exists():
            return
        yield _load(path)


def plan_of(project: Project) -> dict[str, Any] | None:
    """Return how the features of a project are computed; None before they are begun."""
    folder = project.folder / FOLDER
    path = folder / PLAN
    if not path.exists():
        return None
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
        # Plans without a side are from before there were networks on pixels.
        return {"side": pixel_side(project.settings.size, network=False), **plan}
    except (OSError, ValueError, TypeError) as error:
        raise FileError(f"a readable {path}", str(error), f"remove {folder}") from None


def side_for(settings: Settings, backbone: str) -> int:
    """Return the side of small images for the head of a project."""
    return pixel_side(settings.size, network=name_of_head(settings, backbone) == LENET)


def _save(rows: np.ndarray, target: Path) -> None:
    with target.open("wb") as file:
        np.save(file, rows, allow_pickle=False)


def _load(path: Path) -> np.ndarray:
    try:
        with path.open("rb") as file:
            rows: np.ndarray = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FileError(
            f"readable features in {path}", str(error), "remove the file: it is computed anew"
        ) from None
    if rows.ndim == 2 and rows.dtype.kind == "f":
        readable = rows[~np.isnan(rows).all(axis=1)]
        if len(readable):
            check_features(readable)
        return rows
    return check_features(rows)
