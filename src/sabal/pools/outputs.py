"""Outputs: what a model says of a pool, computed and checked only when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

import numpy as np

from sabal.core.arrays import Array, namespace, row_chunks, take_rows
from sabal.core.checks import check_features, check_ids, check_same_classes, check_same_items
from sabal.core.rows import derived, is_stored, load
from sabal.errors import InputError
from sabal.predictions import SOFTMAX, check_parts, loss_named
from sabal.predictions.calibration import mean_probs
from sabal.sparse.atoms import Atoms, posterior_atoms

Part = Array | Callable[[], Array] | None
"""An array, or a function that computes it on first use."""

PARTS = ("features", *SOFTMAX.checks)
"""What a pool of classes may have; other losses know other parts."""
AGREEMENT = 0.01
"""How far probabilities may be from what logits say that are given beside them."""


class Outputs:
    """The outputs of a model over a pool of `size` items.

    Each part is an array with a row per item, or a function without arguments that returns one.
    Probabilities follow from logits or posterior samples where they are not given themselves.
    loss: what the model is trained on; it decides which parts there are, and what they mean.
    atoms: a function that computes the posterior atoms of the pool from less than all of
        `log_probs` at once; without it they are made from these.
    memory: bytes that a selection may take, where parts are on disk.
    """

    def __init__(
        self,
        *,
        features: Part = None,
        logits: Part = None,
        probs: Part = None,
        label_probs: Part = None,
        log_probs: Part = None,
        means: Part = None,
        variances: Part = None,
        label_means: Part = None,
        labeled_features: Part = None,
        loss: str = SOFTMAX.name,
        atoms: Callable[[], Atoms] | None = None,
        ids: Any = None,
        size: int | None = None,
        memory: int | None = None,
    ) -> None:
        given = {
            "features": features,
            "logits": logits,
            "probs": probs,
            "label_probs": label_probs,
            "log_probs": log_probs,
            "means": means,
            "variances": variances,
            "label_means": label_means,
        }
        self.loss = loss_named(loss)
        self._parts: dict[str, Part] = {
            name: part for name, part in given.items() if part is not None
        }
        check_parts(self.loss, self._parts)
        self._labeled_features = labeled_features
        self._make_atoms = atoms
        self._atoms: Atoms | None = None
        self.memory = memory
        self._doubt: np.ndarray | None = None
        self._checked: dict[str, Array] = {}
        self.size = self._find_size(size, ids)
        # Ids that are looked up when they are needed come as they are.
        self.ids: Any = ids if hasattr(ids, "look_up") else self._named(ids)

    def _named(self, ids: Any) -> np.ndarray:
        return np.arange(self.size) if ids is None else check_ids(ids, self.size)

    def _find_size(self, size: int | None, ids: Any) -> int:
        if size is not None:
            return size
        for name, part in self._parts.items():
            if not callable(part):
                return int(self._part(name).shape[0])
        if ids is not None:
            return len(ids)
        raise InputError(
            "something that describes the pool",
            "no array at all",
            "pass features=, probs=, logits= or log_probs= with one row per item",
        )

    def check(self) -> Outputs:
        """Look at everything now rather than on first use; raises when something is wrong."""
        for name in self._parts:
            self._part(name)
        if "logits" in self._parts and "probs" in self._parts:
            self._check_agreement()
        if self._labeled_features is not None:
            _ = self.labeled_features
        return self

    def given(self) -> list[str]:
        """The parts that were given, by name."""
        return list(self._parts)

    def has(self, name: str) -> bool:
        """Whether `name` is given, or follows from what is given.

        "probs" stands for a prediction, whatever the loss calls it.
        """
        if name == "labeled_features":
            return self._labeled_features is not None
        if name == "probs":
            return any(part in self._parts for part in self.loss.sources)
        return name in self._parts

    @property
    def features(self) -> Array:
        """(n, d): what the last layer sees."""
        return self._part("features")

    @property
    def logits(self) -> Array:
        """(n, classes): the prediction before the softmax."""
        return self._part("logits")

    @property
    def label_probs(self) -> Array:
        """(n, classes): the label distribution q."""
        return self._part("label_probs")

    @property
    def log_probs(self) -> Array:
        """(n, samples, classes): log-probabilities of posterior samples shared by all items."""
        return self._part("log_probs")

    @property
    def posterior_atoms(self) -> Atoms:
        """The atoms of the posterior, with its predictive mean as the label distribution."""
        if self._atoms is None:
            make = self._make_atoms
            self._atoms = posterior_atoms(self.log_probs, None) if make is None else make()
            if self._atoms.operator.size != self.size:
                raise InputError(
                    f"an atom for each of the {self.size} items",
                    f"{self._atoms.operator.size} atoms",
                    "compute them for the whole pool",
                )
        return self._atoms

    @property
    def probs(self) -> Array:
        """(n, classes): the prediction p; given, or from logits, or the mean over the posterior."""
        if "probs" in self._parts:
            return self._part("probs")
        if "derived probs" not in self._checked:
            if "logits" in self._parts:
                probs = derived(self.loss.probabilities, self._part("logits"))
            else:
                probs = derived(mean_probs, self.log_probs)
            self._checked["derived probs"] = probs
        return self._checked["derived probs"]

    @property
    def means(self) -> Array:
        """(n, outputs): the mean of the prediction."""
        return self._part("means")

    @property
    def variances(self) -> Array:
        """(n, outputs): the variance of the prediction."""
        return self._part("variances")

    @property
    def label_means(self) -> Array:
        """(n, outputs): the mean of the label distribution."""
        return self._part("label_means")

    @property
    def prediction(self) -> Array:
        """(n, classes or outputs): what the loss compares labels with."""
        return getattr(self, self.loss.prediction)

    @property
    def spread(self) -> Array:
        """(n, classes or outputs): what tells how undecided the prediction is."""
        return getattr(self, self.loss.spread)

    @property
    def doubt(self) -> np.ndarray:
        """(n,): how undecided the prediction is, for classes between the two best."""
        if self._doubt is None:
            self._doubt = self.loss.scores[self.loss.doubt](self.spread)
        return self._doubt

    @property
    def labeled_features(self) -> Array:
        """(labelled items, d): features of what is labelled already."""
        if "labeled_features" not in self._checked:
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
            self._checked["labeled_features"] = array
        return self._checked["labeled_features"]

    def take(self, indices: np.ndarray) -> Outputs:
        """The outputs for some of the items; what was not computed yet is computed for all."""
        parts = {name: take_rows(self._part(name), indices) for name in self._parts}
        ids = np.asarray(self.ids[indices]).tolist()
        return Outputs(
            **parts, labeled_features=self._labeled_features, ids=ids, loss=self.loss.name
        )

    @property
    def stored_bytes(self) -> dict[str, int]:
        """How much each part that is on disk would take in memory."""
        return {
            name: part.nbytes
            for name, part in self._parts.items()
            if part is not None and not callable(part) and is_stored(part)
        }

    def loaded(self, names: Iterable[str]) -> Outputs:
        """The same outputs with the parts `names` in memory."""
        parts = {name: self._part(name) for name in self._parts}
        for name in names:
            parts[name] = load(parts[name])
        return Outputs(
            **parts,
            labeled_features=self._labeled_features,
            ids=self.ids,
            size=self.size,
            loss=self.loss.name,
        )

    def with_labeled(self, features: Part) -> Outputs:
        """The same outputs beside other features of labelled items; None for those they have."""
        if features is None:
            return self
        other = copy(self)
        other._labeled_features = features
        other._checked = {k: v for k, v in self._checked.items() if k != "labeled_features"}
        return other

    def _check_agreement(self) -> None:
        """Two predictions that differ: which one the model makes is not for us to guess."""
        logits_NC, probs_NC = self._part("logits"), self._part("probs")
        xp = namespace(logits_NC, probs_NC)
        furthest = max(
            float(xp.max(xp.abs(self.loss.probabilities(logits_NC[rows]) - probs_NC[rows])))
            for rows in row_chunks(self.size, 24 * probs_NC.shape[1])
        )
        if furthest > AGREEMENT:
            raise InputError(
                "`logits` and `probs` that say the same",
                f"probabilities that differ by up to {furthest:.2g}",
                "pass one of them; a calibrated prediction goes into `label_probs`",
            )

    def _part(self, name: str) -> Array:
        if name not in self._parts:
            raise InputError(f"`{name}`", "outputs without it", f"pass {name}=")
        if name not in self._checked:
            part = self._parts[name]
            check = check_features if name == "features" else self.loss.checks[name]
            array = check(part() if callable(part) else part, name)
            others = {n: a for n, a in self._checked.items() if n in self._parts}
            namespace(array, *others.values())
            check_same_items(**others, **{name: array})
            if hasattr(self, "size") and array.shape[0] != self.size:
                raise InputError(
                    f"`{name}` with a row for each of the {self.size} items",
                    f"{array.shape[0]} rows",
                    "compute it for the whole pool",
                )
            if name != "features":
                same = {n: a for n, a in others.items() if n != "features"}
                check_same_classes(**same, **{name: array})
            self._checked[name] = array
        return self._checked[name]
