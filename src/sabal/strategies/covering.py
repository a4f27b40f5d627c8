"""How `sabal` chooses by default: the undecided part of a pool, covered item by item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sabal.core.arrays import (
    CACHE_BYTES,
    Array,
    beside,
    namespace,
    power_of_two,
    row_chunks,
    take_rows,
    to_host,
)
from sabal.sparse.formulate import NO_FEATURES, Formulation, Pool
from sabal.sparse.operators import Dense, row_norms_squared
from sabal.strategies.coverage import Cover, Coverage

SAMPLE = 8192
"""So many items stand for a larger pool: enough for what a batch can tell apart."""

SAMPLED_PER_PICK = 3
"""At least so many for every item of the batch."""

NEAREST_OF = 512
"""How many items the radius is taken over."""

RANDOM_BATCHES = 5
"""How many random batches the evidence compares with."""

ROUNDING = 1e-12
"""Squared distances below this share of the squared norms are rounding."""

MOST_ROUNDING = 1e-3
"""Of an exponent of the kernel: beyond, single precision would decide what is near."""

ALL_SURE = "the model is sure of every item: all are covered alike"
ALL_EQUAL = (
    "all features are equal, or equal to those of labelled items: items differ in their "
    "uncertainty only"
)


@dataclass(frozen=True)
class Covered:
    """A batch in the rows of its pool, and what there is to say of it."""

    rows: np.ndarray
    cover: Cover
    evidence: dict[str, Any]
    warnings: tuple[str, ...]


def cover_pool(
    pool: Pool, formulation: Formulation, budget: int, radius: float, rng: np.random.Generator
) -> Covered:
    """Cover the pool, each item by as much as `formulation` holds it to be uncertain.

    A pool of more than `SAMPLE` items, and `SAMPLED_PER_PICK` for every pick, is represented by a
    sample of these, drawn by uncertainty: one pass over the pool, and then none.
    radius: of what an item covers, in units of `resolution`.
    """
    count = max(SAMPLE, SAMPLED_PER_PICK * budget)
    sample = pool.sample(formulation, count, int(rng.integers(2**63)))
    labeled_LD = None
    if pool.has("features") and pool.has("labeled_features"):
        labeled_LD = pool.labeled_features
    points_MD, labeled_LD, unit = _centred(pool.features_of(formulation, sample.rows), labeled_LD)
    reach = resolution(points_MD, labeled_LD, budget, rng)
    warnings = [] if pool.has("features") else [NO_FEATURES]
    if pool.has("probs") and pool.facts(formulation).all_sure():
        warnings.append(ALL_SURE)
    if not reach:
        warnings.append(ALL_EQUAL)
    mass_M = sample.sizes if sample.sizes.any() else np.ones(sample.sizes.size)
    reach_of_one = radius * reach or 1.0
    points_MD, labeled_LD = _precise(points_MD, labeled_LD, reach_of_one)
    coverage = Coverage(points_MD, mass_M, labeled_LD, reach_of_one)
    batches = [rng.choice(mass_M.size, size=budget, replace=False) for _ in range(RANDOM_BATCHES)]
    cover = coverage.greedy(budget, others=batches)
    if cover.idle:
        warnings.append(
            f"{cover.idle} of {budget} items cover nothing that the others do not: they are the "
            "most uncertain ones left"
        )
    evidence = {
        "atoms": "coverage",
        "candidates": int(mass_M.size),
        "labelled": 0 if labeled_LD is None else int(labeled_LD.shape[0]),
        "radius": unit * radius * reach,
        "objective": 1.0 - cover.after,
        "objective_before": 1.0 - cover.before,
        "random_batch": {"objective": 1.0 - float(np.mean(cover.others))},
        "zero_weights": int(np.sum(cover.weights == 0)),
        "passes": 1,
        "kernel_rows": cover.rows,
    }
    return Covered(sample.rows[cover.indices], cover, evidence, tuple(warnings))


def resolution(
    points_MD: Array, labeled_LD: Array | None, budget: int, rng: np.random.Generator
) -> float:
    """How finely as many items as will be labelled can tell a pool apart; 0 if all are equal.

    The median distance of an item to the nearest of the labelled ones and `budget` random ones.
    It shrinks as labels come in: each speaks for a smaller neighbourhood than the one before.
    """
    size = points_MD.shape[0]
    order = rng.permutation(size)
    centres = order[: max(1, min(budget, size // 2))]
    asked_QD = to_host(take_rows(points_MD, order[centres.size :][:NEAREST_OF]))
    if not len(asked_QD):
        return 0.0
    squares_Q = _nearest_squares(asked_QD, points_MD, centres)
    if labeled_LD is not None:
        everyone = np.arange(labeled_LD.shape[0])
        squares_Q = np.minimum(squares_Q, _nearest_squares(asked_QD, labeled_LD, everyone))
    # Nearer than rounding is equal.
    apart_Q = squares_Q > ROUNDING * np.mean(row_norms_squared(asked_QD))
    return float(np.sqrt(np.median(squares_Q[apart_Q]))) if apart_Q.any() else 0.0


def _nearest_squares(asked_QD: np.ndarray, others_ED: Array, rows_R: np.ndarray) -> np.ndarray:
    """The squared distance of each point to the nearest of some rows of the others."""
    nearest_Q = np.full(len(asked_QD), np.inf)
    for part in row_chunks(rows_R.size, 8 * len(asked_QD), CACHE_BYTES):
        part_ED = to_host(take_rows(others_ED, rows_R[part]))
        squares_QE = row_norms_squared(part_ED) - 2.0 * asked_QD @ part_ED.T
        nearest_Q = np.minimum(nearest_Q, squares_QE.min(axis=1))
    return nearest_Q + row_norms_squared(asked_QD)


def _centred(features_MD: Array, labeled_LD: Array | None) -> tuple[Array, Array | None, float]:
    """Both less the mean of the first, and the unit that they are divided by.

    A product of matrices loses digits to an offset, and overflows for very large numbers.
    """
    unit = power_of_two(features_MD, labeled_LD)
    # The sample is a copy of ours.
    points_MD = features_MD
    points_MD /= unit
    size = points_MD.shape[0]
    mean_D = beside(Dense(points_MD).combine(np.full(size, 1.0 / size)), points_MD)
    points_MD -= mean_D
    if labeled_LD is not None:
        xp = namespace(points_MD, labeled_LD)
        labeled_LD = xp.astype(labeled_LD / unit, points_MD.dtype, copy=False) - mean_D
    return points_MD, labeled_LD, unit


def _precise(
    points_MD: Array, labeled_LD: Array | None, reach: float
) -> tuple[Array, Array | None]:
    """Both in double precision, where single precision is too coarse for distances of `reach`."""
    xp = namespace(points_MD)
    largest = max(
        float(np.max(row_norms_squared(each)))
        for each in (points_MD, labeled_LD)
        if each is not None and each.shape[0]
    )
    if float(xp.finfo(points_MD.dtype).eps) * largest <= MOST_ROUNDING * reach**2:
        return points_MD, labeled_LD
    points_MD = xp.astype(points_MD, xp.float64, copy=False)
    if labeled_LD is not None:
        labeled_LD = xp.astype(labeled_LD, xp.float64, copy=False)
    return points_MD, labeled_LD
