"""A logistic regression on frozen features, trained in seconds and kept as safetensors.

It is the learner of `sabal simulate`, so that the app and the simulation are one engine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sabal.core.files import write_whole
from sabal.errors import FileError
from sabal.learners.estimator_learner import EstimatorLearner, logistic


class LinearHead(EstimatorLearner):
    """Learns from rows of the pool, and is measured on others of its rows."""

    def __init__(self, features_ND: np.ndarray, class_names: Sequence[str]) -> None:
        # Nothing is held out yet: the one test row is there for its shape, until `measure`.
        super().__init__(
            logistic, features_ND, features_ND[:1], np.zeros(1, dtype=np.int64), len(class_names)
        )
        self.class_names = tuple(class_names)

    @property
    def trained(self) -> bool:
        """Whether it has learnt anything."""
        return self.model is not None

    def measure(self, items: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        """Accuracy and log loss on rows that were not trained on."""
        self.x_test, self.y_test = self.x_pool[items], labels
        return self.metrics()

    def probs(self, items: np.ndarray) -> np.ndarray:
        """(items, classes): what the model says of rows of the pool."""
        return self._probs(self.x_pool[items])

    def space(self, items: np.ndarray) -> np.ndarray:
        """(items, d): rows of the pool as the last layer sees them."""
        return self._features(items) if self.trained else self.x_pool[items]

    def save(self, path: Path) -> bool:
        """Store the trained model as safetensors."""
        from safetensors.numpy import save_file

        width = self.x_pool.shape[1]
        arrays: dict[str, np.ndarray] = {"classes": np.asarray(self.model.classes_, dtype=np.int64)}
        if hasattr(self.model, "steps"):
            scaler, regression = (step for _, step in self.model.steps)
            arrays |= {
                "coef": regression.coef_,
                "intercept": regression.intercept_,
                "mean": scaler.mean_,
                "scale": scaler.scale_,
            }
        else:
            # A single class so far.
            arrays |= {
                "coef": np.zeros((1, width)),
                "intercept": np.zeros(1),
                "mean": np.zeros(width),
                "scale": np.ones(width),
            }
        contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        names = {"class_names": json.dumps(self.class_names)}
        write_whole(path, lambda target: save_file(contiguous, target, metadata=names))
        return True


@dataclass(frozen=True, eq=False)
class StoredHead:
    """A head as it was kept; it needs nothing but NumPy to speak again."""

    class_names: tuple[str, ...]
    classes: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    mean: np.ndarray
    scale: np.ndarray

    def probs(self, features_ND: np.ndarray) -> np.ndarray:
        """(n, classes): a column for every class of the project, seen in training or not."""
        scores = (features_ND - self.mean) / self.scale @ self.coef.T + self.intercept
        if len(self.classes) == 2:
            # Two classes have one score between them.
            scores = np.hstack([np.zeros_like(scores), scores])
        scores -= scores.max(axis=1, keepdims=True)
        seen = np.exp(scores)
        probs_NC = np.zeros((len(features_ND), len(self.class_names)))
        probs_NC[:, self.classes] = seen / seen.sum(axis=1, keepdims=True)
        return probs_NC


def read_head(path: Path) -> StoredHead:
    """The head in a .safetensors file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            names = tuple(json.loads((file.metadata() or {})["class_names"]))
        return StoredHead(names, **arrays)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise FileError(f"a model of a project in {path}", str(error), "train it again") from None
