"""The data of a run: loaded by name, subsampled by seed, and changed into the task's variant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from research.study.data_variants import VARIANTS
from research.study.definitions import StudyTask
from research.study.query_data import MADE_UP, is_query_data, stored
from research.study.seeded_draws import check_enough, draws_of
from sabal.errors import FileError, SabalError
from sabal.simulate.datasets.catalog import NAMES, Dataset, load


@lru_cache(maxsize=1)
def whole(name: str, folder: Path | None) -> Dataset:
    """Load the data set called `name`: one that Sabal knows, or NAME.npz in `folder`.

    Only the last one is kept in memory, as the runs of a process are ordered by task.
    """
    if name in NAMES:
        return load(name, data_dir=folder)
    if folder is None:
        raise FileError(f"a folder with {name}.npz", "none", "name it with --data")
    return load(f"npz:{folder / f'{name}.npz'}")


def missing_data(names: Iterable[str], folder: Path | None) -> dict[str, str]:
    """Return the unavailable data sets with the reason; available ones are downloaded."""
    if folder is not None and not folder.is_dir():
        raise FileError("a folder for --data", f"no folder at {folder}", "check the path")
    missing = {}
    for name in dict.fromkeys(names):
        try:
            if name in MADE_UP:
                continue
            stored(name, folder) if is_query_data(name) else whole(name, folder)
        except SabalError as error:
            missing[name] = str(error)
    return missing


def prepared(task: StudyTask, seed: int, folder: Path | None) -> Dataset:
    """Return the training and test set that the runs of a task and seed share."""
    found = whole(task.dataset, folder)
    pool = None if task.pool is None else task.pool + task.validation
    train = _drawn(len(found.y_train), pool, draws_of(seed, "pool"), task)
    test = _drawn(len(found.y_test), task.test, draws_of(seed, "test"), task)
    x_train, y_train = VARIANTS[task.variant](
        found.x_train[train], found.y_train[train], draws_of(seed, "variant")
    )
    x_test = found.x_test[test]
    if task.rotate:
        axes = _random_axes(x_train.shape[1])
        x_train, x_test = x_train @ axes, x_test @ axes
    return replace(
        found, x_train=x_train, y_train=y_train, x_test=x_test, y_test=found.y_test[test]
    )


def _random_axes(dimensions: int) -> np.ndarray:
    """Return an orthogonal matrix, the same for all seeds."""
    gaussian = np.random.default_rng(0).standard_normal((dimensions, dimensions))
    return np.linalg.qr(gaussian)[0].astype(np.float32)


def _drawn(items: int, wanted: int | None, rng: np.random.Generator, task: StudyTask) -> np.ndarray:
    if wanted is None:
        return np.arange(items)
    check_enough(items, wanted, task)
    return np.sort(rng.permutation(items)[:wanted])
