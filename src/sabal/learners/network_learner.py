"""PyTorch networks as learners of the loop: built and trained from scratch in every round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import sabal.models as models
from sabal.core.arrays import row_chunks, to_host
from sabal.errors import InputError
from sabal.learners.recipes import Recipe
from sabal.models.inputs import Headed
from sabal.pools.outputs import Outputs
from sabal.predictions.calibration import apply_temperature, fit_temperature

FOLDS = 5
"""How many networks are trained for a temperature by cross-validation, at most."""

FEWEST_LABELS = 4
"""With fewer, no folds are worth training on."""

TEST_SEED = 0
"""Draws the posterior samples that the test set is asked: the same ones in every round."""

CONSTANT = 1e-6
"""A channel that varies by a smaller share of its mean than this is constant but for rounding."""


@dataclass(frozen=True)
class _Lessons:
    """What the network was trained on."""

    items: np.ndarray
    labels: np.ndarray
    weights: np.ndarray | None

    def take(self, rows: np.ndarray) -> _Lessons:
        weights = None if self.weights is None else self.weights[rows]
        return _Lessons(self.items[rows], self.labels[rows], weights)


class NetworkLearner:
    """A network made by a recipe.

    x_pool, x_test: images (n, h, w) or (n, h, w, channels), or rows of features. They are
        standardised by the mean and standard deviation of the pool, which no label changes.
    validation: held-out items and their labels, for the temperature and for early stops. Without
        it, the temperature of a network without a posterior comes from cross-validation.
    """

    def __init__(
        self,
        recipe: Recipe,
        x_pool: np.ndarray,
        x_test: np.ndarray,
        y_test: np.ndarray,
        classes: int,
        *,
        validation: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        if recipe.patience is not None and validation is None:
            raise InputError(
                "a validation split to be patient with", "none", "hold out items, or drop patience"
            )
        self.recipe = recipe
        self.x_pool, self.x_test = channels_first(x_pool), channels_first(x_test)
        self.y_test = np.asarray(y_test)
        self.classes = classes
        self.validation = (
            None if validation is None else (channels_first(validation[0]), validation[1])
        )
        # A network that does not fit the data is better refused before anything is trained.
        models.build(recipe.network, self.x_pool.shape[1:], classes, **recipe.network_options)
        self.network: Headed | None = None
        self._lessons = _Lessons(np.empty(0, np.int64), np.empty(0, np.int64), None)

    @property
    def size(self) -> int:
        """The number of items in the pool."""
        return len(self.x_pool)

    @property
    def gives(self) -> tuple[str, ...]:
        """What a trained network says, with posterior samples where the recipe has some."""
        own = ("log_probs",) if self.recipe.samples else ("label_probs",)
        return ("features", "logits", "probs", "labeled_features", *own)

    @cached_property
    def statistics(self) -> dict[str, list[float]]:
        """The mean and standard deviation of every channel of the pool, as `build` takes them."""
        mean, std = channel_statistics(self.x_pool)
        return {"mean": mean.tolist(), "std": std.tolist()}

    def train(
        self, items: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, seed: int
    ) -> None:
        """Build a new network from the seed and train it; nothing of the last one remains."""
        self._lessons = _Lessons(items, labels, weights)
        self.network = self._trained(self._lessons, seed)

    def _trained(self, lessons: _Lessons, seed: int) -> Headed:
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
        x = self.x_pool[lessons.items]
        given = {"weights": lessons.weights, "seed": seed, **recipe.training(), **held_out}
        models.fit(network, x, lessons.labels, **given)
        return network

    def outputs(self, items: np.ndarray, labeled: np.ndarray, seed: int) -> Outputs:
        """Everything the network says of `items`, each when asked for; pixels before training."""
        if self.network is None:
            return Outputs(size=len(items), features=lambda: self._pixels(items))
        said = models.pool_outputs(
            self.network,
            self.x_pool[items],
            samples=self.recipe.samples,
            x_labeled=self.x_pool[labeled],
            seed=seed,
        )
        if self.recipe.samples:
            # The label distribution of a posterior is its predictive mean, which is `probs`.
            return said
        return Outputs(
            size=said.size,
            features=lambda: said.features,
            logits=lambda: said.logits,
            label_probs=lambda: self._label_probs(said, seed),
            labeled_features=lambda: said.labeled_features,
        )

    def _pixels(self, items: np.ndarray) -> np.ndarray:
        return unit_scale(self.x_pool[items]).reshape(len(items), -1)

    def _label_probs(self, said: Outputs, seed: int) -> Any:
        if self.validation is not None:
            x_val, y_val = self.validation
            temperature = fit_temperature(self._logits(self._model, x_val), y_val)
            return apply_temperature(said.logits, temperature)
        try:
            return apply_temperature(said.logits, self._cross_validated_temperature(seed))
        except InputError:
            # Too few labels for folds: the prediction itself, and the strategy will say what that
            # means for it.
            return said.probs

    def _cross_validated_temperature(self, seed: int) -> float:
        """Networks trained on all folds but one predict the one left out.

        Items of a class that such a network never saw are left out.
        """
        logits, targets = [], []
        for train, held_out in _folds(self._lessons.labels, seed):
            known = np.isin(self._lessons.labels[held_out], self._lessons.labels[train])
            asked = self._lessons.take(held_out[known])
            if asked.items.size:
                network = self._trained(self._lessons.take(train), seed)
                logits.append(self._logits(network, self.x_pool[asked.items]))
                targets.append(asked.labels)
        if not logits:
            raise _too_few_labels(self._lessons.labels)
        return fit_temperature(np.concatenate(logits), np.concatenate(targets))

    def metrics(self) -> dict[str, float]:
        """Accuracy and mean negative log-likelihood on the test set."""
        probs_NC = self._test_probs()
        of_label_N = probs_NC[np.arange(len(self.y_test)), self.y_test]
        return {
            "accuracy": float(np.mean(probs_NC.argmax(axis=1) == self.y_test)),
            "log_loss": float(-np.mean(np.log(np.maximum(of_label_N, 1e-12)))),
        }

    def predictions(self) -> np.ndarray:
        """The predicted class of every test item."""
        return self._test_probs().argmax(axis=1)

    def save(self, path: Path) -> bool:
        """Store the network as safetensors."""
        models.save(self._model, path)
        return True

    def load(
        self, path: Path, items: np.ndarray, labels: np.ndarray, weights: np.ndarray | None
    ) -> None:
        """Bring back a stored network, and what it was trained on."""
        self._lessons = _Lessons(items, labels, weights)
        self.network = models.load(path)

    @property
    def _model(self) -> Headed:
        if self.network is None:
            raise InputError("a trained network", "none yet", "train it first")
        return self.network

    def _test_probs(self) -> np.ndarray:
        """The prediction for the test set: with a posterior, the mean softmax over its samples."""
        samples = self.recipe.samples
        said = models.pool_outputs(self._model, self.x_test, samples=samples, seed=TEST_SEED)
        return to_host(said.probs)

    def _logits(self, network: Headed, x: np.ndarray) -> np.ndarray:
        return to_host(models.pool_outputs(network, x).logits)


def _folds(labels: np.ndarray, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows to train on and rows left out, with every class in every fold where there is enough."""
    from sklearn.model_selection import KFold, StratifiedKFold

    classes, counts = np.unique(labels, return_counts=True)
    if labels.size < FEWEST_LABELS or classes.size < 2:
        raise _too_few_labels(labels)
    stratified = counts.min() >= 2
    count = min(FOLDS, int(counts.min()) if stratified else labels.size)
    splitter = (StratifiedKFold if stratified else KFold)(count, shuffle=True, random_state=seed)
    yield from splitter.split(np.zeros(labels.size), labels)


def _too_few_labels(labels: np.ndarray) -> InputError:
    return InputError(
        f"at least {FEWEST_LABELS} labelled items, some of one class, of at least 2 classes",
        f"{labels.size} labels of {np.unique(labels).size} classes",
        "label more, or hold out a validation split",
    )


def channels_first(x: np.ndarray) -> np.ndarray:
    """Images (n, h, w) or (n, h, w, channels) as (n, channels, h, w); rows of features as is."""
    if x.ndim == 3:
        return x[:, None]
    return np.moveaxis(x, 3, 1) if x.ndim == 4 else x


def unit_scale(x: np.ndarray) -> np.ndarray:
    """The numbers that a network sees: 8-bit images as [0, 1]."""
    values = x.astype(np.float32)
    return values / np.float32(255.0) if x.dtype == np.uint8 else values


def channel_statistics(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every channel or feature; 1 for one that does not vary."""
    axes = (0, *range(2, x.ndim))
    sums, squares = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for rows in row_chunks(len(x), 16 * x[0].size):
        values = unit_scale(x[rows]).astype(np.float64)
        sums += values.sum(axis=axes)
        squares += np.square(values).sum(axis=axes)
    count = x.size // x.shape[1]
    mean = sums / count
    std = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
    return mean, np.where(std > CONSTANT * np.abs(mean), std, 1.0)
