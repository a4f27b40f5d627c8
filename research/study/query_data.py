"""The data of tasks that go through `sabal.query`: tables, texts, and two made-up sets."""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from research.study.data_variants import VARIANTS
from research.study.definitions import StudyTask
from research.study.query_learners import QUERY_LEARNERS
from research.study.seeded_draws import check_enough, draws_of
from sabal.core.files import read_npz
from sabal.errors import FileError

TABLES, TEXTS = "tabular/", "texts/"
Items = tuple[Any, np.ndarray]
"""Rows, and the class of each as an integer."""


@dataclass(frozen=True, eq=False)
class QueryData:
    """A pool and a test set; the rows are numbers, a sparse matrix, or texts."""

    x_pool: Any
    y_pool: np.ndarray
    x_test: Any
    y_test: np.ndarray
    fingerprint: str


def honeypot(rng: np.random.Generator) -> Items:
    """Draw the data set Honeypot of Werner et al. (2024).

    Two clusters tell the classes apart. In a third, both classes are mixed at random: a model is
    uncertain there for ever, and its labels teach nothing.
    """
    centres = [(0.0, 0.0), (4.0, 3.0), (0.0, 6.0), (4.0, 3.0)]
    x = np.concatenate([rng.normal(centre, 1.0, size=(150, 2)) for centre in centres])
    return x, np.repeat([1, 0], 300)


def diverging_sine(rng: np.random.Generator) -> Items:
    """Draw the data set Diverging Sine of Werner et al. (2024).

    Two bands follow a sine and move apart: the boundary winds, and it matters at one end only.
    """
    along = np.linspace(0.0, 10.0, 1_000)
    bands = [
        np.sin(2.0 * along) + side * 0.5 * along + rng.normal(0.0, 0.3, along.size)
        for side in (1.0, -1.0)
    ]
    x = np.concatenate([np.column_stack([along, band]) for band in bands])
    return x, np.repeat([1, 0], along.size)


MADE_UP: dict[str, Callable[[np.random.Generator], Items]] = {
    "honeypot": honeypot,
    "diverging-sine": diverging_sine,
}
"""Data sets that are drawn by the seed of a run."""


def is_query_data(name: str) -> bool:
    """Return whether the data set is one of this module."""
    return name in MADE_UP or name.startswith((TABLES, TEXTS))


@lru_cache(maxsize=1)
def stored(name: str, folder: Path | None) -> Items:
    """Read a data set: digits, tabular/NAME from an .npz file, or texts/NAME from a .csv.gz file.

    A name such as `texts/newsgroups20:rec.,sci.` keeps the classes with these prefixes.
    """
    if name == "digits":
        from sklearn.datasets import load_digits

        return load_digits(return_X_y=True)
    if folder is None:
        raise FileError(f"a folder with {name}", "none", "name it with --data")
    file, _, prefixes = name.partition(":")
    if name.startswith(TABLES):
        return _table(folder / f"{file}.npz")
    return _texts(folder / f"{file}.csv.gz", tuple(prefixes.split(",")))


def _table(path: Path) -> Items:
    _, arrays = read_npz(path, ("x", "y"))
    if set(arrays) != {"x", "y"}:
        raise FileError(f"x and y in {path}", ", ".join(arrays) or "neither", "name them so")
    return arrays["x"], arrays["y"].astype(np.int64)


def _texts(path: Path, prefixes: tuple[str, ...]) -> Items:
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["label"].startswith(prefixes)]
    except (OSError, EOFError, KeyError, csv.Error) as error:
        reason = f"{type(error).__name__}: {error}"
        raise FileError(f"texts and labels in {path}", reason, "restore it") from None
    labels = np.unique([row["label"] for row in rows], return_inverse=True)[1]
    return np.array([row["text"] for row in rows], dtype=object), labels.astype(np.int64)


@lru_cache(maxsize=2)
def query_data(task: StudyTask, seed: int, folder: Path | None) -> QueryData:
    """Return the pool and the test set that the runs of a task and seed share.

    Both are drawn by the seed from all items.
    """
    if task.dataset in MADE_UP:
        x, y = MADE_UP[task.dataset](draws_of(seed, "made up"))
    else:
        x, y = stored(task.dataset, folder)
    pool = task.pool or 0
    check_enough(y.size, pool + (task.test or 1), task)
    drawn = draws_of(seed, "pool").permutation(y.size)
    rows, rest = np.sort(drawn[:pool]), np.sort(drawn[pool:][: task.test])
    x_pool, y_pool = VARIANTS[task.variant](x[rows], y[rows], draws_of(seed, "variant"))
    fingerprint = _fingerprint(x_pool, y_pool, x[rest], y[rest])
    x_pool, x_test = _vectorized(task, x_pool, x[rest])
    return QueryData(x_pool, y_pool, x_test, y[rest], fingerprint)


def _vectorized(task: StudyTask, pool: Any, test: Any) -> tuple[Any, Any]:
    settings = QUERY_LEARNERS[task.model].vectorizer
    if settings is None:
        return pool, test
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(**settings).fit(pool)
    return vectorizer.transform(pool), vectorizer.transform(test)


def _fingerprint(*arrays: np.ndarray) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for array in arrays:
        digest.update(f"{array.shape} {array.dtype}".encode())
        if array.dtype == object:
            digest.update("\0".join(array).encode())
        else:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
