"""The unanswered items that are most like a given one, by the features of a project."""

from __future__ import annotations

import numpy as np

from sabal.errors import InputError
from sabal.labeling.features.feature_files import computed_parts
from sabal.labeling.project import Project


def similar_items(project: Project, key: str, annotator: str, count: int) -> list[str]:
    """Return the keys of the nearest items that nobody has answered or holds, nearest first."""
    row = project.store.item(key).id
    distances_N = squared_distances(project, row)
    free = np.asarray(sorted(project.store.free_rows(annotator) - {row}), dtype=np.int64)
    free = free[free < len(distances_N)]
    near = free[np.argsort(distances_N[free], kind="stable")[:count]]
    keys = project.store.keys_of(near.tolist())
    return [keys[each] for each in near.tolist() if np.isfinite(distances_N[each])]


def squared_distances(project: Project, row: int) -> np.ndarray:
    """Return the squared distances of items from one, as far as their features are computed."""
    center_D, begin = None, 0
    for part in computed_parts(project):
        if begin <= row < begin + len(part):
            center_D = part[row - begin].astype(np.float64)
        begin += len(part)
    if center_D is None:
        raise InputError("the features of the item", "none so far", "try again in a while")
    # NaN, of items that cannot be read, sorts last.
    return np.concatenate(
        [((part - center_D) ** 2).sum(axis=1) for part in computed_parts(project)]
    )
