"""A pool in shards: every question goes to all of them at once, and few numbers come back.

Sums come back by segment and are added up in the order of the segments, and of equally good items
the lower row is taken: so the answers are those of a pool in memory, to the last digit.
"""

from __future__ import annotations

from itertools import count as counting
from typing import Any

import numpy as np

from sabal.core.arrays import to_numpy
from sabal.errors import InputError
from sabal.pools.outputs import Outputs
from sabal.pools.ray.crew import Crew, Rows
from sabal.pools.ray.items import ClusterItems
from sabal.pools.ray.keys import refuse_repeated
from sabal.pools.ray.messages import Built, Description, Setup, Top
from sabal.pools.sampling import Drawn, drawn
from sabal.predictions import SOFTMAX
from sabal.sparse.formulate import Draws, Formulation
from sabal.strategies.scores import Scored


class ClusterPool:
    """The pool whose shards a crew holds: a `formulate.Pool`."""

    loss = SOFTMAX
    """Shards know of no other: some of what others ask takes the whole pool to answer."""

    def __init__(self, crew: Crew, labeled_features: np.ndarray | None = None) -> None:
        self._crew = crew
        self._labeled_features = labeled_features
        self._keys = counting()
        self.size = crew.ranges[-1][1]
        self._description = _agreed(crew.ask("describe"), crew)
        self._check_labeled()
        if self._description.ids and len(crew.ranges) > 1:
            suspects = crew.suspects()
            if suspects.size:
                refuse_repeated(crew.ask("ids_with_keys", suspects))
        self.ids = ClusterIds(crew, self.size)

    def _check_labeled(self) -> None:
        """Look at labelled features that were given here as `Outputs` looks at its own."""
        part = self._description.parts.get("features")
        if self._labeled_features is not None and part is not None:
            one_row = np.zeros((1, *part.row), dtype=part.dtype)
            given = Outputs(features=one_row, labeled_features=self._labeled_features)
            self._labeled_features = to_numpy(given.labeled_features)

    @property
    def classes(self) -> int:
        """How many classes there are; 0 without a model."""
        return self._description.classes

    def given(self) -> list[str]:
        """The parts that the outputs have, by name."""
        return list(self._description.parts)

    def has(self, name: str) -> bool:
        """Whether the output `name` is there, or follows from what is."""
        here = name == "labeled_features" and self._labeled_features is not None
        return here or name in self._description.has

    @property
    def labeled_features(self) -> np.ndarray:
        """Features of what is labelled already: those given here, or those in the pool's files."""
        if self._labeled_features is None:
            return self._crew.ask_each("labeled_features", {0: ()})[0]
        return self._labeled_features

    def facts(self, formulation: Formulation) -> ClusterFacts:
        """What the draws of a formulation need to know."""
        return ClusterFacts(self._crew, formulation, self.size, self.classes)

    def items(self, formulation: Formulation, draws: Draws) -> ClusterItems:
        """The items with their atoms."""
        setup = Setup(next(self._keys), formulation, draws)
        shared = self._crew.share(setup)
        built: list[Built] = self._crew.ask("build", shared)
        names = tuple(name for name in ("features", "probs") if self.has(name))
        return ClusterItems(self._crew, setup, shared, built, names)

    def most_uncertain(self, formulation: Formulation, count: int) -> np.ndarray:
        """The rows of the most uncertain items, in rising order."""
        parts: list[Top] = self._crew.ask("most_uncertain", formulation, count)
        return np.sort(Top.merge(parts, count).rows)

    def sample(self, formulation: Formulation, count: int, seed: int) -> Drawn:
        """At most `count` rows, drawn by their uncertainty; all alike where there is none."""
        everyone = self.facts(formulation).all_sure()
        parts: list[Top] = self._crew.ask("priorities", formulation, everyone, count + 1, seed)
        best = Top.merge(parts, count + 1)
        return drawn(best.rows, best.scores, count, seed)

    def features_of(self, formulation: Formulation, rows: np.ndarray) -> np.ndarray:
        """What some items are told apart by, brought here."""
        name = "features" if self.has("features") else "probs"
        return taken(self._crew, rows, (name,))[name]

    def top(self, strategy: Scored, count: int) -> tuple[Top, int]:
        """The best rows of a strategy that scores each, and how many score as the last of them."""
        best = Top.merge(self._crew.ask("top", strategy, count), count)
        return best, sum(self._crew.ask("level_with", strategy, float(best.scores[-1])))

    def take(self, rows: np.ndarray) -> Outputs:
        """The outputs of some items, brought here."""
        parts: dict[str, Any] = taken(self._crew, rows, tuple(self.given()))
        return Outputs(**parts, ids=self.ids[rows].tolist())


class ClusterIds:
    """The ids of a pool in shards, looked up for the few that are asked for."""

    def __init__(self, crew: Crew, size: int) -> None:
        self._crew = crew
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        wanted = Rows(self._crew, rows)
        answers = self._crew.ask_each("ids", wanted.args())
        # Strings are as long as the longest of a shard.
        kind = np.result_type(*answers.values())
        return wanted.together({k: ids.astype(kind) for k, ids in answers.items()})


class ClusterFacts:
    """The facts of features in shards: a `draws.PoolFacts`."""

    def __init__(self, crew: Crew, formulation: Formulation, size: int, classes: int) -> None:
        self._crew = crew
        self._formulation = formulation
        self.size = size
        self.classes = classes

    def all_sure(self) -> bool:
        """Whether the model is sure of every item (True as well where there is no model)."""
        return not any(self._crew.ask("undecided"))

    def feature_norm(self) -> float:
        """The mean of ||h_j||^2."""
        sums = np.concatenate(self._crew.ask("feature_norm_sums", self._formulation))
        return float(sums.sum()) / self.size

    def feature_rows(self, indices: np.ndarray) -> np.ndarray:
        """The features of some items, in float64."""
        wanted = Rows(self._crew, indices)
        return wanted.together(self._crew.ask_each("feature_rows", wanted.args(self._formulation)))


def taken(crew: Crew, rows: np.ndarray, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Some rows of the outputs called `names`, from all shards."""
    wanted = Rows(crew, rows)
    answers = crew.ask_each("take", wanted.args(after=(names,)))
    return {
        name: wanted.together({k: parts[name] for k, parts in answers.items()}) for name in names
    }


def _agreed(descriptions: list[Description], crew: Crew) -> Description:
    """What all shards hold; they must hold the same."""
    first = descriptions[0]
    for other, (start, stop) in zip(descriptions, crew.ranges, strict=True):
        if other != first:
            names = sorted({*first.parts, *other.parts})
            odd = next((n for n in names if first.parts.get(n) != other.parts.get(n)), "id")
            raise InputError(
                f"rows of one shape and kind all over the pool ({odd}: {first.parts.get(odd)})",
                f"{other.parts.get(odd)} in rows {start} to {stop}",
                "write every part of the pool in the same way",
            )
    return first
