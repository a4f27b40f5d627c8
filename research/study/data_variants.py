"""Data sets made harder by a seeded rule: rare classes, near duplicates and wrong labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

RARE_CLASSES = 1 / 2
RARE_SHARE = 1 / 10
"""Share of a rare class that is kept."""

COPIED = 1 / 3
"""Share of the training set that is replaced by copies."""

SOURCES = 1 / 15
"""Share of the training set that is copied: five copies each, on average."""

JITTER = 0.05
"""Noise of copies: in standard deviations of a feature, or as a share of the range of pixels."""

WRONG = 1 / 20
"""Share of the training labels that are wrong."""

Pair = tuple[np.ndarray, np.ndarray]
Variant = Callable[[np.ndarray, np.ndarray, np.random.Generator], Pair]


def plain(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Pair:
    """Return the data unchanged."""
    return x, y


def imbalanced(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Pair:
    """Keep a tenth of the items of half of the classes, at least one, and all of the others."""
    classes = np.unique(y)
    rare = rng.permutation(classes)[: round(RARE_CLASSES * classes.size)]
    kept = np.ones(y.size, dtype=bool)
    for each in np.sort(rare):
        rows = rng.permutation(np.flatnonzero(y == each))
        kept[rows[max(1, round(RARE_SHARE * rows.size)) :]] = False
    return x[kept], y[kept]


def near_duplicates(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Pair:
    """Replace a third of the items by jittered copies of a fifteenth, with their labels."""
    drawn = rng.permutation(y.size)
    replaced = drawn[: round(COPIED * y.size)]
    sources = drawn[replaced.size :][: max(1, round(SOURCES * y.size))]
    copied = rng.choice(sources, size=replaced.size)
    items, labels = x.copy(), y.copy()
    items[replaced] = _jittered(x[copied], x, rng)
    labels[replaced] = y[copied]
    return items, labels


def wrong_labels(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Pair:
    """Give a twentieth of the items the label of another class, each as likely as any other."""
    classes, code = np.unique(y, return_inverse=True)
    wrong = rng.permutation(y.size)[: round(WRONG * y.size)]
    code[wrong] = (code[wrong] + rng.integers(1, classes.size, wrong.size)) % classes.size
    return x, classes[code]


def _jittered(items: np.ndarray, whole: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if items.dtype != np.uint8:
        scale = JITTER * whole.std(axis=0)
        noise = scale * rng.standard_normal(items.shape)
        return np.asarray(items + noise, dtype=items.dtype)
    noise = JITTER * 255 * rng.standard_normal(items.shape)
    return np.clip(np.round(items + noise), 0, 255).astype(np.uint8)


VARIANTS: dict[str, Variant] = {
    "plain": plain,
    "imbalanced": imbalanced,
    "near-duplicates": near_duplicates,
    "wrong-labels": wrong_labels,
}
