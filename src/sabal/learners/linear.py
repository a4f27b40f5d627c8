"""A logistic regression on frozen features whose models are stored as safetensors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sabal.core.files import write_whole
from sabal.errors import FileError
from sabal.learners.estimator_learner import EstimatorLearner, logistic

ARRAYS = ("classes", "coef", "intercept", "mean", "scale")


class LinearLearner(EstimatorLearner):
    """The logistic regression of `sabal simulate`, with models that can be kept.

    Parameters
    ----------
    features_ND : numpy.ndarray
        The features of the pool.
    classes : int or sequence of str
        The number of classes, or their names.
    """

    def __init__(self, features_ND: np.ndarray, classes: int | Sequence[str]) -> None:
        super().__init__(logistic, features_ND, classes)

    def save(self, path: Path) -> bool:
        """Store the trained model and the names of the classes as safetensors.

        The probabilities of standardised features are softmax(coef @ x + intercept), with a row of
        coefficients for each of the `classes`, which are positions in the names of all classes.
        """
        from safetensors.numpy import save_file

        width = self.x_pool.shape[1]
        arrays = {
            # The values for a single class so far, which needs no coefficients.
            "coef": np.zeros((1, width)),
            "intercept": np.zeros(1),
            "mean": np.zeros(width),
            "scale": np.ones(width),
            "classes": np.asarray(self.model.classes_, dtype=np.int64),
        }
        if len(arrays["classes"]) > 1:
            scaler, regression = (step for _, step in self.model.steps)
            coef, intercept = regression.coef_, regression.intercept_
            if len(coef) == 1:
                # Two classes: softmax((0, s)) is the logistic function of s.
                coef = np.concatenate([np.zeros_like(coef), coef])
                intercept = np.concatenate([np.zeros_like(intercept), intercept])
            arrays |= {
                "coef": coef,
                "intercept": intercept,
                "mean": scaler.mean_,
                "scale": scaler.scale_,
            }
        contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        names = {"class_names": json.dumps(self.class_names)}
        write_whole(path, lambda target: save_file(contiguous, target, metadata=names))
        return True

    def load(
        self, path: Path, items: np.ndarray, labels: np.ndarray, weights: np.ndarray | None
    ) -> None:
        """Restore a stored model, whose classes are found by name among those of this learner."""
        arrays, names = read_linear_model(path)
        if unknown := set(names) - set(self.class_names):
            raise FileError(
                f"a model of the classes {', '.join(self.class_names)} in {path}",
                f"the class {min(unknown)!r}",
                "add the class, or train again",
            )
        numbers = np.array([self.class_names.index(names[k]) for k in arrays["classes"]])
        width = self.x_pool.shape[1]
        if arrays["mean"].shape != (width,):
            raise FileError(
                f"a model of {width} features in {path}",
                f"one of {arrays['mean'].size}",
                "train it again",
            )
        if len(numbers) == 1:
            from sklearn.dummy import DummyClassifier

            self.model = DummyClassifier(strategy="prior").fit(np.zeros((1, width)), numbers)
        else:
            self.model = logistic(0)
            scaler, regression = (step for _, step in self.model.steps)
            scaler.mean_, scaler.scale_, scaler.n_features_in_ = (
                arrays["mean"],
                arrays["scale"],
                width,
            )
            # Two classes have one row in scikit-learn, and had in files of version 0.1.
            rows = slice(-1, None) if len(numbers) == 2 else slice(None)
            regression.coef_ = arrays["coef"][rows]
            regression.intercept_ = arrays["intercept"][rows]
            regression.classes_ = numbers
        self._trained_on = (items, labels)


def read_linear_model(path: Path) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Return the arrays of a stored model and the names of its classes."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in ARRAYS}
            return arrays, tuple(json.loads((file.metadata() or {})["class_names"]))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise FileError(f"a model of a project in {path}", str(error), "train it again") from None
