"""Learners around PyTorch networks, built and trained from scratch for every training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import sabal.models as models
from sabal.core.arrays import row_chunks, to_float64_numpy
from sabal.errors import InputError
from sabal.learners.learner import Learner
from sabal.learners.network_recipes import NetworkRecipe
from sabal.models.inputs import HeadedNetwork
from sabal.pools import ArrayPool
from sabal.predictions.calibration import apply_temperature, fit_temperature

MAX_FOLDS = 5  # how many networks are trained for a temperature by cross-validation, at most
MIN_LABELS = 4  # with fewer labels, cross-validation is not worth while
PREDICTION_SEED = 0  # draws the posterior samples behind predictions: the same ones in every round
MIN_VARIATION = 1e-6  # a channel that varies by a smaller share of its mean is constant


@dataclass(frozen=True)
class _TrainingSet:
    """The rows of the pool that a network was trained on."""

    items: np.ndarray
    labels: np.ndarray
    weights: np.ndarray | None

    def take(self, rows: np.ndarray) -> _TrainingSet:
        weights = None if self.weights is None else self.weights[rows]
        return _TrainingSet(self.items[rows], self.labels[rows], weights)


class NetworkLearner(Learner):
    """A network that is built and trained by a recipe.

    Parameters
    ----------
    recipe : NetworkRecipe
        The network and its training.
    x_pool : numpy.ndarray
        Images (n, h, w) or (n, h, w, channels), or rows of features. They are standardised by the
        mean and standard deviation of the pool, which no label changes.
    classes : int or sequence of str
        The number of classes, or their names.
    validation : tuple of numpy.ndarray, optional
        Held-out items and their labels, for the temperature and for early stopping. Without it, the
        temperature of a network without a posterior comes from cross-validation.
    """

    def __init__(
        self,
        recipe: NetworkRecipe,
        x_pool: np.ndarray,
        classes: int | Sequence[str],
        *,
        validation: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        if recipe.patience is not None and validation is None:
            raise InputError(
                "a validation split to be patient with", "none", "hold out items, or drop patience"
            )
        super().__init__(x_pool, classes)
        self.recipe = recipe
        self.validation = (
            None if validation is None else (self.prepare(validation[0]), validation[1])
        )
        # Refuse a network that does not fit the data before anything is trained.
        models.build(recipe.network, self.x_pool.shape[1:], self.classes, **recipe.network_options)
        self.network: HeadedNetwork | None = None
        self._training_set = _TrainingSet(np.empty(0, np.int64), np.empty(0, np.int64), None)

    @property
    def trained(self) -> bool:
        """Whether there is a trained network."""
        return self.network is not None

    @property
    def gives(self) -> tuple[str, ...]:
        """The names of the arrays that `outputs` has once the network is trained."""
        own = ("log_probs",) if self.recipe.samples else ("label_probs",)
        return ("features", "logits", "probs", "labeled_features", *own)

    @cached_property
    def statistics(self) -> dict[str, list[float]]:
        """The mean and standard deviation of every channel of the pool, as `build` takes them."""
        mean, std = channel_statistics(self.x_pool)
        return {"mean": mean.tolist(), "std": std.tolist()}

    def prepare(self, x: Any) -> np.ndarray:
        """Return images with their channels first."""
        return channels_first(x)

    def train(
        self, items: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, seed: int
    ) -> None:
        """Build a new network from the seed and train it."""
        self._training_set = _TrainingSet(items, labels, weights)
        self.network = self._train_network(self._training_set, seed)

    def _train_network(self, training_set: _TrainingSet, seed: int) -> HeadedNetwork:
        recipe = self.recipe
        network = models.build(
            recipe.network,
            self.x_pool.shape[1:],
            self.classes,
            seed,
            **recipe.network_options,
            **self.statistics,
        )
        held_out: dict[str, Any] = {}
        if recipe.patience is not None and self.validation is not None:
            held_out = {"x_val": self.validation[0], "y_val": self.validation[1]}
        x = self.x_pool[training_set.items]
        given = {"weights": training_set.weights, "seed": seed, **recipe.training(), **held_out}
        models.fit(network, x, training_set.labels, **given)
        return network

    def outputs(self, items: np.ndarray, labeled: np.ndarray, seed: int) -> ArrayPool:
        """Return all outputs of the network for `items`; before training, their pixels."""
        if self.network is None:
            return ArrayPool(size=len(items), features=lambda: self.space(items))
        found = models.pool_outputs(
            self.network,
            self.x_pool[items],
            samples=self.recipe.samples,
            x_labeled=self.x_pool[labeled],
            seed=seed,
        )
        if self.recipe.samples:
            # The label distribution of a posterior is its predictive mean, which is `probs`.
            return found
        return ArrayPool(
            size=found.size,
            features=lambda: found.features,
            logits=lambda: found.logits,
            label_probs=lambda: self._label_probs(found, seed),
            labeled_features=lambda: found.labeled_features,
        )

    def _label_probs(self, outputs: ArrayPool, seed: int) -> Any:
        if self.validation is not None:
            x_val, y_val = self.validation
            temperature = fit_temperature(self._logits(self._trained_network, x_val), y_val)
            return apply_temperature(outputs.logits, temperature)
        try:
            return apply_temperature(outputs.logits, self._cross_validated_temperature(seed))
        except InputError:
            # Too few labels for folds: use the prediction itself; the strategy says what that
            # means for it.
            return outputs.probs

    def _cross_validated_temperature(self, seed: int) -> float:
        """Fit a temperature to predictions for folds, without classes that were not trained on."""
        logits, targets = [], []
        labels = self._training_set.labels
        for train, held_out in _folds(labels, seed):
            seen = np.isin(labels[held_out], labels[train])
            asked = self._training_set.take(held_out[seen])
            if asked.items.size:
                network = self._train_network(self._training_set.take(train), seed)
                logits.append(self._logits(network, self.x_pool[asked.items]))
                targets.append(asked.labels)
        if not logits:
            raise _too_few_labels(labels)
        return fit_temperature(np.concatenate(logits), np.concatenate(targets))

    def probs(self, items: np.ndarray) -> np.ndarray:
        """Return the predicted probabilities of rows of the pool, (items, classes)."""
        return self._probs(self.x_pool[items])

    def predict_proba(self, x: Any) -> np.ndarray:
        """Return the predicted probabilities of any data of the pool's kind, (n, classes)."""
        return self._probs(self.prepare(x))

    def space(self, items: np.ndarray) -> np.ndarray:
        """Return rows of the pool as the last layer sees them; before training, their pixels."""
        if self.network is None:
            return unit_scale(self.x_pool[items]).reshape(len(items), -1)
        return to_float64_numpy(models.pool_outputs(self.network, self.x_pool[items]).features)

    def save(self, path: Path) -> bool:
        """Store the network as safetensors."""
        models.save(self._trained_network, path)
        return True

    def load(
        self, path: Path, items: np.ndarray, labels: np.ndarray, weights: np.ndarray | None
    ) -> None:
        """Restore a stored network."""
        self._training_set = _TrainingSet(items, labels, weights)
        self.network = models.load(path)

    @property
    def _trained_network(self) -> HeadedNetwork:
        if self.network is None:
            raise InputError("a trained network", "none yet", "train it first")
        return self.network

    def _probs(self, x: np.ndarray) -> np.ndarray:
        """Return the softmax of the network, or its mean over the samples of a posterior."""
        samples = self.recipe.samples
        found = models.pool_outputs(self._trained_network, x, samples=samples, seed=PREDICTION_SEED)
        return to_float64_numpy(found.probs)

    def _logits(self, network: HeadedNetwork, x: np.ndarray) -> np.ndarray:
        return to_float64_numpy(models.pool_outputs(network, x).logits)


def _folds(labels: np.ndarray, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows to train on and rows left out; every class is in every fold where possible."""
    from sklearn.model_selection import KFold, StratifiedKFold

    classes, counts = np.unique(labels, return_counts=True)
    if labels.size < MIN_LABELS or classes.size < 2:
        raise _too_few_labels(labels)
    stratified = counts.min() >= 2
    count = min(MAX_FOLDS, int(counts.min()) if stratified else labels.size)
    splitter = (StratifiedKFold if stratified else KFold)(count, shuffle=True, random_state=seed)
    yield from splitter.split(np.zeros(labels.size), labels)


def _too_few_labels(labels: np.ndarray) -> InputError:
    return InputError(
        f"at least {MIN_LABELS} labelled items, some of one class, of at least 2 classes",
        f"{labels.size} labels of {np.unique(labels).size} classes",
        "label more, or hold out a validation split",
    )


def channels_first(x: np.ndarray) -> np.ndarray:
    """Return images (n, h, w) or (n, h, w, channels) as (n, channels, h, w); other rows as is."""
    if x.ndim == 3:
        return x[:, None]
    return np.moveaxis(x, 3, 1) if x.ndim == 4 else x


def unit_scale(x: np.ndarray) -> np.ndarray:
    """Return the numbers that a network sees: 8-bit images are scaled to [0, 1]."""
    values = x.astype(np.float32)
    return values / np.float32(255.0) if x.dtype == np.uint8 else values


def channel_statistics(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and standard deviation of every channel; 1 for one that does not vary."""
    axes = (0, *range(2, x.ndim))
    sums, squares = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for rows in row_chunks(len(x), 16 * x[0].size):
        values = unit_scale(x[rows]).astype(np.float64)
        sums += values.sum(axis=axes)
        squares += np.square(values).sum(axis=axes)
    count = x.size // x.shape[1]
    mean = sums / count
    std = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
    return mean, np.where(std > MIN_VARIATION * np.abs(mean), std, 1.0)
