"""Pools: the items to choose from, in this process or on a cluster.

All pools have the same protocol. A pool that this process can read (`ArrayPool`: arrays in memory,
rows on disk, or computed on first use) has its arrays as attributes. Strategies that stream use
questions instead: functions of a `Shard` that return a few numbers, never one per item. A pool in
one process is one shard; a pool on a cluster has one shard per worker, and answers are combined in
row order. So all pools give identical results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from sabal.core.arrays import (
    Array,
    namespace,
    per_row,
    row_chunks,
    row_norms_squared,
    segments_of,
    take_rows,
    to_float64_numpy,
    to_numpy,
    top_k,
)
from sabal.core.checks import (
    check_choice,
    check_features,
    check_ids,
    check_same_classes,
    check_same_items,
    check_scores,
    check_square,
)
from sabal.core.rows import is_stored, load
from sabal.errors import InputError
from sabal.pools.ids import Ids
from sabal.pools.sampling import PrioritySample, priorities, priority_sample
from sabal.predictions import ARRAYS, BY_LOSS, Gaussian, Posterior, Prediction, Sigmoid, Softmax

Part = Array | Callable[[], Array] | None
"""An array, or a function that computes it on first use."""

Question = Callable[..., Any]
"""A function of a shard and further arguments; it must be picklable by name."""

FILE_ARRAYS = ("features", *ARRAYS, "scores")
"""The arrays of a pool file or table, of any loss."""

UNCERTAINTIES = ("variance", "margin", "entropy", "mutual-information", "predictive-variance")
"""What `ArrayPool.uncertainty` may be asked for by an option."""

NO_FEATURES = "there are no features: items are told apart by their predictions alone"

NO_CLASSES = ("features", "scores")
"""Arrays whose last axis is not that of the classes."""

AGREEMENT = 0.01
"""The largest difference between given probabilities and the softmax of given logits."""

BYTES_PER_ITEM = 48  # bytes a streaming selection keeps per item: uncertainty, norm and score


class Pool(ABC):
    """Items to choose from.

    Attributes
    ----------
    size : int
        The number of items.
    ids : array or indexable by row numbers
        The ids of the items.
    prediction_type : type
        The type of the prediction (see `sabal.predictions`).
    classes : int
        The number of classes (labels, outputs); 0 without a prediction.
    memory : int or None
        Bytes that a selection may take, if there is a limit.
    used_once : bool
        Whether a selection may release arrays that it does not need any more.
    """

    size: int
    ids: Any
    memory: int | None = None
    used_once: bool = False

    @property
    @abstractmethod
    def prediction_type(self) -> type[Prediction]:
        """The type of the prediction."""

    @property
    @abstractmethod
    def classes(self) -> int:
        """The number of classes (labels, outputs); 0 without a prediction."""

    @property
    @abstractmethod
    def labeled_features(self) -> Array:
        """(labelled items, d): features of the labelled items."""

    @abstractmethod
    def given(self) -> list[str]:
        """Return the names of the arrays that were given."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Return whether `name` is given or can be derived; "probs" means any prediction."""

    @abstractmethod
    def map(self, question: Question, *args: Any) -> list[Any]:
        """Return `question(shard, *args)` for every shard, in row order."""

    @abstractmethod
    def map_rows(self, question: Question, rows: np.ndarray, *args: Any) -> Any:
        """Return `question(shard, rows, *args)` for rows of any shard, in the order of `rows`.

        The result is an array with a row for each, or a tuple or dict of such arrays.
        """

    @abstractmethod
    def take(self, rows: np.ndarray) -> ArrayPool:
        """Return a pool of some of the items, in this process."""

    @abstractmethod
    def stored_bytes(self, names: Collection[str] | None = None) -> dict[str, int] | None:
        """Return the size in memory of each array on disk; None if the pool cannot be loaded."""

    @abstractmethod
    def loaded(self, names: Collection[str]) -> ArrayPool:
        """Return the pool with the arrays `names` in memory."""

    @property
    def in_one_piece(self) -> bool:
        """Whether all rows are in this process."""
        return False

    @cached_property
    def numbers(self) -> Iterator[int]:
        """Numbers that tell apart what the shards of this pool cache (see `Shard.keep`)."""
        return count()

    def share(self, value: Any) -> Any:
        """Return a reference to a `value` used by many questions, so that it is sent once."""
        return value

    def computing(self) -> AbstractContextManager[Any]:
        """Return a context manager to run a strategy in."""
        return nullcontext()

    def evidence(self) -> dict[str, Any]:
        """Return facts about the pool for the evidence of a selection."""
        return {}

    def model_is_certain(self) -> bool:
        """Return whether the model is certain of every item, or there is no model."""
        return not any(self.map(has_uncertain_items))

    def rows_here(self, rows: np.ndarray) -> tuple[ArrayPool, np.ndarray]:
        """Return a pool in this process that contains `rows`, and their positions in it."""
        return self.take(rows), np.arange(rows.size)

    def release(self, name: str) -> None:  # noqa: B027  # most pools have nothing to release
        """Let go of an array that is not needed any more, if the pool is used only once."""

    def coordinates_of(self, rows: np.ndarray) -> Array:
        """Return the coordinates of some items: features, or predictions without features."""
        return self.map_rows(coordinates_at, rows)

    def top(self, kind: str | None, count: int) -> TopRows:
        """Return the most uncertain rows; the lower row on ties."""
        return TopRows.merge(self.map(most_uncertain, kind, count), count)

    def sample(self, kind: str | None, count: int, seed: int) -> PrioritySample:
        """Return at most `count` rows sampled by uncertainty, uniformly if all are certain."""
        uniform = self.model_is_certain()
        parts = self.map(largest_priorities, kind, uniform, count + 1, seed)
        best = TopRows.merge(parts, count + 1)
        return priority_sample(best.rows, best.scores, count, seed)


class CheckedArrays(Mapping[str, Array]):
    """Arrays with a row for every item, each computed and checked on first use.

    Parameters
    ----------
    parts : mapping
        Arrays, or functions without arguments that return them.
    checks : mapping
        The check for each array.
    size : int, optional
        The number of rows each must have.
    """

    def __init__(
        self,
        parts: Mapping[str, Part],
        checks: Mapping[str, Callable[[Any, str], Array]],
        size: int | None = None,
    ) -> None:
        self.parts = dict(parts)
        self.size = size
        self._checks = checks
        self._checked: dict[str, Array] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __contains__(self, name: object) -> bool:
        return name in self.parts

    def __getitem__(self, name: str) -> Array:
        if name not in self.parts:
            raise InputError(f"`{name}`", "outputs without it", f"pass {name}=")
        if name not in self._checked:
            part = self.parts[name]
            array = self._checks[name](part() if callable(part) else part, name)
            self._check_alike(name, array)
            self._checked[name] = array
        return self._checked[name]

    def release(self, name: str) -> None:
        """Let go of an array, which cannot be read after this."""
        self.parts[name] = _released
        self._checked.pop(name, None)

    def _check_alike(self, name: str, array: Array) -> None:
        namespace(array, *self._checked.values())
        check_same_items(**self._checked, **{name: array})
        if self.size is not None and array.shape[0] != self.size:
            raise InputError(
                f"`{name}` with a row for each of the {self.size} items",
                f"{array.shape[0]} rows",
                "compute it for the whole pool",
            )
        by_class = {n: a for n, a in {**self._checked, name: array}.items() if n not in NO_CLASSES}
        check_same_classes(**by_class)


def _released() -> Array:
    raise RuntimeError("this array was released")


class ArrayPool(Pool):
    """A pool that this process can read.

    Each array has a row per item, and may be given as a function without arguments that is called
    on first use. Probabilities are derived from logits or posterior samples if not given.

    Parameters
    ----------
    features : array of shape (n, d), optional
        The input of the model's last layer.
    labeled_features : array of shape (m, d), optional
        Features of the labelled items.
    loss : {"softmax", "sigmoid", "squared"}
        The loss that the model is trained with.
    ids : sequence, optional
        The ids of the items; row numbers by default.
    size : int, optional
        The number of items, if all arrays are functions.
    memory : int, optional
        Bytes that a selection may take, if arrays are on disk.
    atoms : callable, optional
        Computes the posterior atoms of the pool without holding all of `log_probs`; by default
        they are computed from `log_probs`.
    scores : array of shape (n,), optional
        The uncertainty of every item, if it is given rather than computed from a prediction.
    **arrays
        The prediction: arrays that belong to `loss`.
    """

    def __init__(
        self,
        *,
        features: Part = None,
        labeled_features: Part = None,
        loss: str = "softmax",
        ids: Any = None,
        size: int | None = None,
        memory: int | None = None,
        atoms: Callable[[], Any] | None = None,
        scores: Part = None,
        **arrays: Part,
    ) -> None:
        predicted = {name: arrays[name] for name in ARRAYS if arrays.get(name) is not None}
        predicted |= {name: part for name, part in arrays.items() if part is not None}
        kind = _prediction_type(loss, list(predicted))
        parts = {"features": features, **predicted, "scores": scores}
        parts = {name: part for name, part in parts.items() if part is not None}
        checks = {"features": check_features, "scores": check_scores, **kind.checks}
        self.arrays = CheckedArrays(parts, checks, size)
        self.prediction = kind(self.arrays)
        self.make_atoms = atoms
        self.memory = memory
        self.owner: object = None  # what has to live as long as the pool, such as its folder
        self._labeled_features = labeled_features
        self._checked_labeled: Array = None
        self.size = self.arrays.size = self._find_size(size, ids)
        # Ids that are read on demand are kept as they are.
        self.ids: Any = ids if isinstance(ids, Ids) else self._names(ids)
        self._shard: Shard | None = None

    def _names(self, ids: Any) -> np.ndarray:
        return np.arange(self.size) if ids is None else check_ids(ids, self.size)

    def _find_size(self, size: int | None, ids: Any) -> int:
        if size is not None:
            return size
        for name, part in self.arrays.parts.items():
            if not callable(part):
                return int(self.arrays[name].shape[0])
        if ids is not None:
            return len(ids)
        raise InputError(
            "something that describes the pool",
            "no array at all",
            "pass features=, probs=, logits= or log_probs= with one row per item",
        )

    # -- arrays ------------------------------------------------------------------------------

    @property
    def prediction_type(self) -> type[Prediction]:
        """The type of the prediction."""
        return type(self.prediction)

    @property
    def classes(self) -> int:
        """The number of classes (labels, outputs); 0 without a prediction."""
        return self.prediction.classes

    def check(self) -> ArrayPool:
        """Check everything now rather than on first use."""
        for name in self.arrays:
            _ = self.arrays[name]
        if "logits" in self.arrays and "probs" in self.arrays:
            self._check_agreement()
        if self._labeled_features is not None:
            _ = self.labeled_features
        return self

    def given(self) -> list[str]:
        """Return the names of the arrays that were given."""
        return list(self.arrays)

    def has(self, name: str) -> bool:
        """Return whether `name` is given or can be derived."""
        if name == "labeled_features":
            return self._labeled_features is not None
        if name == "probs":
            return self.prediction.given
        return name in self.arrays

    @property
    def features(self) -> Array:
        """(n, d): the input of the last layer."""
        return self.arrays["features"]

    @property
    def logits(self) -> Array:
        """(n, classes): the prediction before the softmax."""
        return self.arrays["logits"]

    @property
    def probs(self) -> Array:
        """(n, classes): the prediction; given, from logits, or the mean over the posterior."""
        return self.prediction.mean

    @property
    def label_probs(self) -> Array:
        """(n, classes): the label distribution."""
        return self.arrays["label_probs"]

    @property
    def log_probs(self) -> Array:
        """(n, samples, classes): log-probabilities of posterior samples shared by all items."""
        return self.arrays["log_probs"]

    @property
    def means(self) -> Array:
        """(n, outputs): the mean of the prediction."""
        return self.arrays["means"]

    @property
    def variances(self) -> Array:
        """(n, outputs): the variance of the prediction."""
        return self.arrays["variances"]

    @property
    def label_means(self) -> Array:
        """(n, outputs): the mean of the label distribution."""
        return self.arrays["label_means"]

    @property
    def scores(self) -> Array:
        """(n,): the uncertainty of every item, as it was given."""
        return self.arrays["scores"]

    @property
    def coordinates(self) -> Array:
        """(n, d): features, or the prediction if there are none."""
        return self.features if self.has("features") else self.prediction.mean

    @property
    def labeled_features(self) -> Array:
        """(labelled items, d): features of the labelled items."""
        if self._checked_labeled is None:
            part = self._labeled_features
            array = check_features(part() if callable(part) else part, "labeled_features")
            if self.has("features"):
                namespace(array, self.features)
            if self.has("features") and array.shape[1] != self.features.shape[1]:
                raise InputError(
                    f"`labeled_features` with {self.features.shape[1]} columns, as `features`",
                    f"{array.shape[1]} columns",
                    "compute both with the same model",
                )
            if self.has("features"):
                _check_range(array, self.features)
            self._checked_labeled = array
        return self._checked_labeled

    def uncertainty(
        self, kind: str | None = None, *, bias: bool = True, temperature: float | None = None
    ) -> np.ndarray:
        """Return the uncertainty of the prediction for every item.

        Parameters
        ----------
        kind : str, optional
            One of the prediction's uncertainties, or "variance" for the variance of the gradient of
            the last layer; by default the scores if they were given, or else the prediction's
            default.
        bias : bool
            Whether that layer has a bias.
        temperature : float, optional
            Derives the label distribution from the prediction if it is not given.
        """
        if kind is None and self.has("scores"):
            return to_float64_numpy(self.scores[:])
        if kind != "variance":
            return self.prediction.uncertainty(kind)
        norms_N = feature_norms(self.features, bias)
        return gradient_variance(
            norms_N, self.prediction.label_dispersion(temperature), self.prediction_type
        )

    def _check_agreement(self) -> None:
        """Raise if the given logits and probabilities differ."""
        logits_NC, probs_NC = self.logits, self.arrays["probs"]
        xp = namespace(logits_NC, probs_NC)
        to_probs = self.prediction.probabilities
        furthest = max(
            float(xp.max(xp.abs(to_probs(logits_NC[rows]) - probs_NC[rows])))
            for rows in row_chunks(self.size, 24 * probs_NC.shape[1])
        )
        if furthest > AGREEMENT:
            raise InputError(
                "`logits` and `probs` that say the same",
                f"probabilities that differ by up to {furthest:.2g}",
                "pass one of them; a calibrated prediction goes into `label_probs`",
            )

    # -- the protocol of pools ---------------------------------------------------------------

    @property
    def shard(self) -> Shard:
        """The whole pool as one shard."""
        if self._shard is None:
            self._shard = Shard(self, 0, self.size)
        return self._shard

    def map(self, question: Question, *args: Any) -> list[Any]:
        """Return the answer of the one shard."""
        return [question(self.shard, *args)]

    def map_rows(self, question: Question, rows: np.ndarray, *args: Any) -> Any:
        """Return the answer of the one shard."""
        return question(self.shard, rows, *args)

    def rows_here(self, rows: np.ndarray) -> tuple[ArrayPool, np.ndarray]:
        """Return this pool."""
        return self, rows

    def take(self, rows: np.ndarray) -> ArrayPool:
        """Return a pool of some of the items; computes all arrays for the whole pool."""
        parts: dict[str, Any] = {n: take_rows(array, rows) for n, array in self.arrays.items()}
        ids = np.asarray(self.ids[rows]).tolist()
        return ArrayPool(
            **parts, labeled_features=self._labeled_features, ids=ids, loss=self.prediction.loss
        )

    def stored_bytes(self, names: Collection[str] | None = None) -> dict[str, int]:
        """Return the size in memory of each array on disk."""
        wanted = set(self.arrays) if names is None else set(names)
        if "probs" in wanted and "probs" not in self.arrays:
            wanted |= {"logits", "log_probs"}
        return {
            name: part.nbytes
            for name, part in self.arrays.parts.items()
            if name in wanted and part is not None and not callable(part) and is_stored(part)
        }

    def loaded(self, names: Collection[str]) -> ArrayPool:
        """Return the same pool with the arrays `names` in memory."""
        stored = self.stored_bytes(names)
        if not stored:
            return self
        parts: dict[str, Any] = {
            name: load(array) if name in stored else array for name, array in self.arrays.items()
        }
        return ArrayPool(
            **parts,
            labeled_features=self._labeled_features,
            ids=self.ids,
            size=self.size,
            loss=self.prediction.loss,
        )

    @property
    def in_one_piece(self) -> bool:
        """Whether all rows are in this process."""
        return True

    def release(self, name: str) -> None:
        """Let go of an array that is not needed any more, if the pool is used only once."""
        if self.used_once and name in self.arrays:
            self.arrays.release(name)

    def with_labeled(self, features: Part) -> ArrayPool:
        """Return the pool with other labelled features; itself if they are None."""
        if features is None:
            return self
        other = copy(self)
        other._labeled_features, other._checked_labeled = features, None
        other._shard = None
        return other


Outputs = ArrayPool
"""The former name, which strategies of other packages may use."""


def _prediction_type(loss: str, names: Collection[str]) -> type[Prediction]:
    """Return the type of a prediction with these arrays; raise if `loss` does not support them."""
    kind = BY_LOSS[check_choice(loss, "loss", list(BY_LOSS))]
    if kind is Softmax and "log_probs" in names:
        kind = Posterior
    for name in names:
        if name not in kind.checks:
            other = next((k for k in (Posterior, Sigmoid, Gaussian) if name in k.checks), None)
            known = (Posterior if kind is Softmax else kind).checks
            raise InputError(
                f"outputs that loss={loss!r} knows ({', '.join(('features', *known))})",
                f"`{name}`",
                "leave it out" + ("" if other is None else f", or pass loss={other.loss!r}"),
            )
    if kind.mean_name in names and not set(kind.sources) & set(names):
        raise InputError(
            f"`{kind.dispersion_name}` beside `{kind.mean_name}`",
            " and ".join(names),
            f"pass {kind.dispersion_name}=",
        )
    return kind


class Shard:
    """Consecutive rows of a pool, in one process.

    The rows are a union of whole segments (see `sabal.core.arrays.SEGMENTS`), so that sums do not
    depend on the number of shards. `kept` is a cache: a shard that is read again gives the same
    answers without it.

    Parameters
    ----------
    pool : ArrayPool
        The rows.
    start : int
        The first row in the whole pool.
    pool_size : int
        The size of the whole pool.
    ids : indexable, optional
        The ids of the rows, if these are not the row numbers.
    """

    def __init__(self, pool: ArrayPool, start: int, pool_size: int, ids: Any = None) -> None:
        self.pool, self.ids = pool, ids
        self.start, self.stop, self.pool_size = start, start + pool.size, pool_size
        self.segments = [
            slice(part.start - start, part.stop - start)
            for part in segments_of(pool_size)
            if start <= part.start < self.stop
        ]
        self.kept: dict[str, tuple[Any, Any]] = {}

    def keep(self, name: str, key: Any, make: Callable[[], Any]) -> Any:
        """Return the cached value of `key`, made if needed; one key is cached per name."""
        if name not in self.kept or self.kept[name][0] != key:
            self.kept[name] = (key, make())
        return self.kept[name][1]


@dataclass(frozen=True)
class TopRows:
    """Some rows and their scores, best first."""

    rows: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, count: int, start: int = 0) -> TopRows:
        """Return the best `count` of `scores`, the first of which is row `start`."""
        chosen = top_k(scores, min(count, scores.size))
        return cls(start + chosen, scores[chosen])

    @staticmethod
    def merge(parts: Sequence[TopRows], count: int) -> TopRows:
        """Return the best `count` of all; the lower row on ties."""
        rows = np.concatenate([part.rows for part in parts])
        scores = np.concatenate([part.scores for part in parts])
        order = np.argsort(rows)
        kept = order[top_k(scores[order], min(count, order.size))]
        return TopRows(rows[kept], scores[kept])


# -- questions ---------------------------------------------------------------------------------


def has_uncertain_items(shard: Shard) -> bool:
    """Return whether the model is uncertain about any item."""
    known = shard.pool.has("probs") or shard.pool.has("scores")
    return known and bool(np.any(shard.pool.uncertainty() > 0))


def coordinates_at(shard: Shard, rows: np.ndarray) -> Array:
    """Return the coordinates of some rows."""
    return take_rows(shard.pool.coordinates, rows - shard.start)


def coordinate_norm_sums(shard: Shard) -> np.ndarray:
    """Return the sum of ||h_j||^2 in each segment."""
    coordinates_ND = shard.pool.coordinates
    return np.array([row_norms_squared(coordinates_ND[rows]).sum() for rows in shard.segments])


def arrays_at(shard: Shard, rows: np.ndarray, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return some rows of the arrays called `names`."""
    return {
        name: to_numpy(take_rows(getattr(shard.pool, name), rows - shard.start)) for name in names
    }


def unit_of_dispersion(shard: Shard) -> float:
    """Return the unit of a shard's dispersion (see `Prediction.unit`)."""
    return shard.pool.prediction_type.unit(shard.pool.prediction.dispersion)


def most_uncertain(shard: Shard, kind: str | None, count: int) -> TopRows:
    """Return the most uncertain rows."""
    return TopRows.of(shard.pool.uncertainty(kind), count, shard.start)


def count_equal(shard: Shard, kind: str | None, score: float) -> int:
    """Return how many rows have this uncertainty."""
    return int(np.sum(shard.pool.uncertainty(kind) == score))


def largest_priorities(
    shard: Shard, kind: str | None, uniform: bool, count: int, seed: int
) -> TopRows:
    """Return the rows with the largest sampling priorities (see `sabal.pools.sampling`)."""
    size_N = np.ones(shard.pool.size) if uniform else shard.pool.uncertainty(kind)
    return TopRows.of(priorities(size_N, shard.start, seed), count, shard.start)


# -- gradients of the last layer ---------------------------------------------------------------


def feature_norms(features_ND: Array, bias: bool) -> np.ndarray:
    """Return ||h_j||^2, including the constant 1 of the bias."""
    norms_N = row_norms_squared(features_ND) + float(bias)
    check_square(norms_N.max(initial=0.0), "features")
    return norms_N


def gradient_variance(
    norms_N: np.ndarray, dispersion_NC: Array, kind: type[Prediction]
) -> np.ndarray:
    """Return V_j of last-layer gradients: the prediction cancels in g_j(y) - a_j."""
    with np.errstate(over="ignore"):
        variance_N = norms_N * per_row(kind.variance, dispersion_NC)
    check_square(variance_N.max(initial=0.0), "gradients")
    return variance_N


def float64_rows(pool: Pool, rows: np.ndarray) -> np.ndarray:
    """Return the coordinates of some items as a NumPy float64 array."""
    return to_float64_numpy(pool.coordinates_of(rows))


def _check_range(labeled_LD: Array, features_ND: Array) -> None:
    """Refuse labelled features that are infinite in the precision of the pool's features."""
    xp = namespace(labeled_LD, features_ND)
    largest = float(xp.max(xp.abs(labeled_LD))) if 0 not in labeled_LD.shape else 0.0
    if largest > float(xp.finfo(features_ND.dtype).max):
        raise InputError(
            f"`labeled_features` within the range of `features`, which are {features_ND.dtype}",
            f"{largest:.4g}",
            "pass both in double precision, and compute both with the same model",
        )
