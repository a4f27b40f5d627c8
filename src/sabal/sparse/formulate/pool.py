"""A pool to formulate a Problem over: here, or wherever its items are."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from sabal.core.arrays import Array, segments_of, take_rows, to_host, top_k
from sabal.pools.outputs import Outputs
from sabal.pools.sampling import Drawn, drawn, priorities
from sabal.sparse.formulate.formulation import Draws, Formulation
from sabal.sparse.items import Items
from sabal.sparse.random_features import PoolFacts, feature_norm_sums


class Pool(Protocol):
    """Items that a strategy can choose from without seeing them all."""

    @property
    def size(self) -> int:
        """How many items there are."""

    @property
    def ids(self) -> Any:
        """The names of the items, by row."""

    def has(self, name: str) -> bool:
        """Whether the output `name` is there, or follows from what is."""

    def facts(self, formulation: Formulation) -> PoolFacts:
        """What the draws of a formulation need to know."""

    def items(self, formulation: Formulation, draws: Draws) -> Items:
        """The items with their atoms."""

    def most_uncertain(self, formulation: Formulation, count: int) -> np.ndarray:
        """The rows of the most uncertain items, in rising order."""

    def take(self, rows: np.ndarray) -> Outputs:
        """The outputs of some items, brought here."""

    def sample(self, formulation: Formulation, count: int, seed: int) -> Drawn:
        """At most `count` rows, drawn by their uncertainty; all alike where there is none."""

    def features_of(self, formulation: Formulation, rows: np.ndarray) -> Array:
        """What some items are told apart by, brought here."""

    @property
    def labeled_features(self) -> Array:
        """Features of what is labelled already, where `has` says that there are any."""


class LocalPool:
    """Outputs that this process can read."""

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs
        self.size = outputs.size
        self.ids = outputs.ids

    def has(self, name: str) -> bool:
        """Whether the output `name` is there, or follows from what is."""
        return self._outputs.has(name)

    def facts(self, formulation: Formulation) -> LocalFacts:
        """What the draws of a formulation need to know."""
        return LocalFacts(formulation, self._outputs)

    def items(self, formulation: Formulation, draws: Draws) -> Items:
        """The items with their atoms."""
        return formulation.items(self._outputs, draws)

    def most_uncertain(self, formulation: Formulation, count: int) -> np.ndarray:
        """The rows of the most uncertain items, in rising order."""
        return np.sort(top_k(formulation.scores(self._outputs), count))

    def take(self, rows: np.ndarray) -> Outputs:
        """The outputs of some items."""
        return self._outputs.take(rows)

    def sample(self, formulation: Formulation, count: int, seed: int) -> Drawn:
        """At most `count` rows, drawn by their uncertainty; all alike where there is none."""
        everyone = self.facts(formulation).all_sure()
        sizes_N = np.ones(self.size) if everyone else formulation.scores(self._outputs)
        priority_N = priorities(sizes_N, 0, seed)
        best = top_k(priority_N, min(count + 1, self.size))
        return drawn(best, priority_N[best], count, seed)

    def features_of(self, formulation: Formulation, rows: np.ndarray) -> Array:
        """What some items are told apart by."""
        return take_rows(formulation.features(self._outputs), rows)

    @property
    def labeled_features(self) -> Array:
        """Features of what is labelled already."""
        return self._outputs.labeled_features


class LocalFacts:
    """The facts of outputs that this process can read."""

    def __init__(self, formulation: Formulation, outputs: Outputs) -> None:
        self._formulation = formulation
        self._outputs = outputs
        self.size = outputs.size

    @property
    def classes(self) -> int:
        """How many classes (labels, outputs) there are; 0 without a model."""
        return int(self._outputs.spread.shape[1]) if self._outputs.has("probs") else 0

    def all_sure(self) -> bool:
        """Whether the model is sure of every item (True as well where there is no model)."""
        return not self.classes or not np.any(self._outputs.doubt > 0)

    def feature_norm(self) -> float:
        """The mean of ||h_j||^2."""
        sums = feature_norm_sums(self._features(), segments_of(self.size))
        return float(sums.sum()) / self.size

    def feature_rows(self, indices: np.ndarray) -> np.ndarray:
        """The features of some items, in float64."""
        return to_host(take_rows(self._features(), indices))

    def _features(self) -> Array:
        return self._formulation.features(self._outputs)
