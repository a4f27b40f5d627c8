"""Data sets in memory, and the checks and splits that all of them go through."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sabal.core.checks import check_features, check_same_items
from sabal.errors import InputError

Kind = Literal["images", "features", "texts"]
Arrays = dict[str, np.ndarray]

PARTS = ("x_train", "y_train", "x_test", "y_test")
MAX_CHANNELS = 4  # a longer last axis of images means another order of the axes


@dataclass(frozen=True, eq=False)
class Dataset:
    """A classification data set: a pool (train) with hidden labels, and a test set.

    Items are images as uint8 (n, h, w) or (n, h, w, channels), or features as float32 (n, d); those
    of texts are computed from the training texts alone. Labels are int64 from 0 to classes - 1.
    """

    name: str
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    classes: int
    class_names: tuple[str, ...]
    kind: Kind

    def fingerprint(self) -> str:
        """Return a digest of all items and labels."""
        digest = hashlib.blake2b(digest_size=8)
        for array in (self.x_train, self.y_train, self.x_test, self.y_test):
            digest.update(f"{array.shape} {array.dtype}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def assemble(
    name: str, arrays: Arrays, *, kind: Kind | None = None, class_names: Sequence[str] | None = None
) -> Dataset:
    """Return a checked data set; without `class_names` the classes are the sorted labels."""
    x_train, x_test = (_items(arrays[part], part) for part in ("x_train", "x_test"))
    y_train, y_test = (_labels(arrays[part], part) for part in ("y_train", "y_test"))
    check_same_items(x_train=x_train, y_train=y_train)
    check_same_items(x_test=x_test, y_test=y_test)
    if x_train.shape[1:] != x_test.shape[1:]:
        raise InputError(
            "x_train and x_test with items of one shape",
            f"{x_train.shape[1:]} and {x_test.shape[1:]}",
            "prepare both in the same way",
        )
    y_train, y_test, names = _encode(y_train, y_test, class_names)
    return Dataset(
        name=name,
        x_train=x_train,
        y_train=y_train,
        x_test=x_test,
        y_test=y_test,
        classes=len(names),
        class_names=names,
        kind=kind or ("features" if x_train.ndim == 2 else "images"),
    )


def split_parts(x: np.ndarray, y: np.ndarray, share: float, seed: int) -> Arrays:
    """Split `x` and `y` into training and test arrays, with `share` of every class in the test."""
    labels = _labels(y, "y")
    if x.ndim == 0:
        raise InputError("`x` with one row per item", "a single number", "pass an array")
    check_same_items(x=x, y=labels)
    train, test = stratified_split(labels, share, seed)
    return dict(zip(PARTS, (x[train], labels[train], x[test], labels[test]), strict=True))


def stratified_split(y: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of a training and a test set, drawn at random class by class.

    The share of every class is rounded by largest remainders, so that the total is right too. A
    class with a single item stays in training.
    """
    rng = np.random.default_rng(seed)
    _, code_N, count_C = np.unique(y, return_inverse=True, return_counts=True)
    quota_C = share * count_C
    taken_C = np.floor(quota_C).astype(np.int64)
    open_places = max(1, round(share * y.size)) - int(taken_C.sum())
    by_remainder = np.lexsort((rng.random(count_C.size), taken_C - quota_C))
    spare = by_remainder[(taken_C + 1 < count_C)[by_remainder]]
    taken_C[spare[:open_places]] += 1
    if not taken_C.any():
        raise InputError(
            "enough items to set some aside for a test",
            f"{y.size} items with {count_C.size} different labels",
            "bring at least two items of some class",
        )
    shuffled = rng.permutation(y.size)
    by_class = shuffled[np.argsort(code_N[shuffled], kind="stable")]
    rank_N = np.arange(y.size) - np.repeat(np.cumsum(count_C) - count_C, count_C)
    is_test_N = rank_N < np.repeat(taken_C, count_C)
    return rng.permutation(by_class[~is_test_N]), rng.permutation(by_class[is_test_N])


def as_labels(words: Sequence[str]) -> np.ndarray:
    """Return labels that were read as text, as integers if all of them are integers."""
    texts = np.asarray(words, dtype=str)
    try:
        numbers = texts.astype(np.int64)
    except (ValueError, OverflowError):
        return texts
    # Integers sort 10 after 9; but "01" and "1" are two labels.
    return numbers if np.array_equal(numbers.astype(str), texts) else texts


def _items(x: np.ndarray, name: str) -> np.ndarray:
    if x.ndim not in (3, 4):
        with np.errstate(over="ignore"):
            rows = x.astype(np.float32) if x.dtype.kind in "biuf" else x
        return np.asarray(check_features(rows, name))
    if 0 in x.shape:
        raise InputError(f"`{name}` with some items", f"shape {x.shape}", "bring at least one")
    if x.dtype.kind not in "iu" or x.min() < 0 or x.max() > 255:
        raise InputError(
            f"images in `{name}` as whole numbers from 0 to 255",
            f"{x.dtype} of shape {x.shape}",
            "scale images to uint8, or reshape features to (items, dimensions)",
        )
    if x.ndim == 4 and x.shape[3] > MAX_CHANNELS:
        raise InputError(
            f"images in `{name}` as (items, height, width, channels)",
            f"shape {x.shape}",
            "move the channels to the last axis",
        )
    return np.ascontiguousarray(x, dtype=np.uint8)


def _labels(y: np.ndarray, name: str) -> np.ndarray:
    """Return one label for each item, as int64 or str."""
    flat = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if flat.ndim != 1 or flat.size == 0:
        raise InputError(
            f"`{name}` as one label per item", f"shape {y.shape}", "pass one axis, not one-hot rows"
        )
    if flat.dtype.kind == "S":
        return np.char.decode(flat, "utf-8", "replace")
    if flat.dtype.kind == "U":
        return flat
    with np.errstate(invalid="ignore"):
        whole = flat.astype(np.int64) if flat.dtype.kind in "biuf" else None
    if whole is None or not np.array_equal(whole, flat):
        raise InputError(
            f"`{name}` as whole numbers or strings",
            f"{flat.dtype} such as {flat[:3].tolist()}",
            "give every class a number or a name",
        )
    return whole


def _encode(
    y_train: np.ndarray, y_test: np.ndarray, known: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    if y_train.dtype.kind != y_test.dtype.kind:
        raise InputError(
            "y_train and y_test of one kind",
            f"{y_train.dtype} and {y_test.dtype}",
            "write both as numbers or both as strings",
        )
    labels, codes = np.unique(np.concatenate([y_train, y_test]), return_inverse=True)
    if labels.size < 2:
        raise InputError(
            "at least two classes", f"only {labels[0]!s}", "bring items of another class"
        )
    names = tuple(str(label) for label in labels)
    if known is not None:
        if labels.dtype.kind != "i" or labels[0] < 0 or labels[-1] >= len(known):
            raise InputError(
                f"labels from 0 to {len(known) - 1}",
                f"labels from {labels[0]!s} to {labels[-1]!s}",
                "number the classes as the data set's authors do",
            )
        # A part of the data may lack a class: the numbers keep their meaning.
        names, codes = tuple(known), np.concatenate([y_train, y_test])
    codes = codes.astype(np.int64)
    return codes[: y_train.size], codes[y_train.size :], names
