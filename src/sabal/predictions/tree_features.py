"""Features of items as an ensemble of trees sees them.

Trees do not see the units of their columns, and no transformation of a column that keeps its
order. Distances between raw columns would be dominated by the column with the largest numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MIN_TREES = 10  # with fewer trees, leaves tell too few items apart
EMBEDDED = 512  # the number of columns that leaves are hashed to
QUANTILES = 1000
HASH_FACTOR = 0x9E3779B97F4A7C15
OTHER_BOOSTING = ("lightgbm", "catboost")
"""Packages of trees whose estimators have no `apply`."""


def has_leaves(estimator: Any, X: Any) -> bool:
    """Return whether an estimator tells the leaves of enough trees."""
    if not hasattr(estimator, "apply"):
        return False
    return int(np.prod(np.shape(estimator.apply(X[:1]))[1:])) >= MIN_TREES


def ignores_units(estimator: Any) -> bool:
    """Return whether an estimator consists of trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.tree import BaseDecisionTree

    trees = (HistGradientBoostingClassifier, HistGradientBoostingRegressor, BaseDecisionTree)
    package = type(estimator).__module__.partition(".")[0]
    return isinstance(estimator, trees) or package in OTHER_BOOSTING


def leaf_features(estimator: Any, X: Any) -> np.ndarray:
    """Return features whose distances are those of leaves.

    The squared distance of two items is about 2 (1 - s), where s is the share of trees in which
    they are in the same leaf: the proximity of a random forest (Breiman 2001). Each leaf of each
    tree is hashed to a column and a sign, the same in every call (feature hashing, Weinberger et
    al. 2009).
    """
    from scipy.sparse import csr_array

    leaves = np.asarray(estimator.apply(X))
    leaves_NT = leaves.reshape(leaves.shape[0], -1)
    n, trees = leaves_NT.shape
    hash_NT = _hashed(leaves_NT.astype(np.uint64) + (np.arange(trees, dtype=np.uint64) << 32))
    sign_NT = 1.0 - 2.0 * (hash_NT & 1)
    column_NT = (hash_NT >> 1) % EMBEDDED
    rows = np.arange(0, n * trees + 1, trees)
    values = sign_NT.ravel() / np.sqrt(trees)
    # Leaves of one item in the same column are summed.
    return csr_array((values, column_NT.ravel(), rows), shape=(n, EMBEDDED)).toarray()


def _hashed(keys: np.ndarray) -> np.ndarray:
    """Return a number for every (tree, leaf)."""
    # Unsigned integers wrap around, as intended here.
    mixed = keys * np.uint64(HASH_FACTOR)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(HASH_FACTOR)
    return (mixed >> np.uint64(40)).astype(np.int64)


def ranked_columns(columns_ND: np.ndarray, reference_ND: np.ndarray) -> np.ndarray:
    """Return columns as quantiles of a reference; unknown values are in the middle."""
    from sklearn.preprocessing import QuantileTransformer

    quantiles = QuantileTransformer(n_quantiles=min(QUANTILES, len(reference_ND)), random_state=0)
    return np.nan_to_num(quantiles.fit(reference_ND).transform(columns_ND), nan=0.5)
