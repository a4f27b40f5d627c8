"""The engine: computes features, trains and chooses batches for a project, one step at a time.

The first batch follows the features. Whenever enough of the latest batch is answered, the engine
trains, measures and chooses the next one. Selection and seeds are those of `sabal.loop.rounds`:
with `choose_at` = 1 and `check_share` = 0 the rounds are those of a simulation with the same seed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from sabal.core.files import make_folder
from sabal.errors import FileError
from sabal.labeling.assessing import assess, fold_numbers
from sabal.labeling.choosing import choose_batch_with_checks
from sabal.labeling.explanations import predicted
from sabal.labeling.features.feature_files import FeatureFiles, plan_of
from sabal.labeling.learner_choice import LENET, make_learner, name_of_head
from sabal.labeling.predicting import describe_model
from sabal.labeling.project import Project
from sabal.labeling.store.records import (
    CHECK,
    TRAIN,
    Assessment,
    ImportedLabel,
    TrainingLabel,
    TrainingRecord,
)
from sabal.learners.learner import Learner
from sabal.loop.rounds import round_seed
from sabal.loop.stopping import MIN_POINTS

ROUNDING = 1e-9


class Engine:
    """Does what is due in one project; a second engine beside it does no harm."""

    def __init__(self, project: Project) -> None:
        self.project, self.store, self.settings = project, project.store, project.settings
        self._features: FeatureFiles | None = None
        self._features_ND: np.ndarray | None = None
        self._head_name = ""
        self._keys: list[str] = []
        self._head: Learner | None = None
        self._head_training_id: int | None = None
        self._nothing_due_at: tuple[int, ...] | None = None
        self._assessing: tuple[int, tuple[str, ...]] | None = None
        self._stages: Iterator[Assessment] = iter(())
        self._assessed: Assessment | None = None

    def step(self) -> str | None:
        """Do what is due: "features", "train", "choose", "predict" or "assess"; else None."""
        try:
            return self._step()
        except Exception as error:
            self.store.set_state("failed", self._progress(), str(error) or type(error).__name__)
            raise

    def _step(self) -> str | None:
        last, revision = self.store.last_answer(), self.store.revision()
        if revision == self._nothing_due_at:
            return None
        if self._features_ND is not None and self._were_added():
            self._forget_features()
        if self._features_ND is None and self._compute_features():
            return "features"
        done = self._round_step(last) or self._predict() or self._assess()
        if done is None:
            finished = self.store.status().finished
            # An answer that came in meanwhile may have finished the project and is not trained on.
            if self.store.revision() == revision:
                self._nothing_due_at = revision
                self.store.set_state("idle" if finished else "waiting")
        return done

    def _were_added(self) -> bool:
        sources = self.store.added_sources()
        return bool(sources) and sources[-1].first_item >= len(self._keys)

    def _forget_features(self) -> None:
        """Begin again after items were added; what is computed is on the disk."""
        self._features = self._features_ND = self._head = None

    def _progress(self) -> float:
        """Return the share of the features that is computed."""
        if self._features_ND is not None:
            return 1.0
        return 0.0 if self._features is None else self._features.progress

    def _compute_features(self) -> bool:
        """Compute a chunk; return False once all chunks are computed and loaded."""
        if self._features is None:
            self._features = FeatureFiles(self.project)
        features = self._features
        if features.complete:
            self._head_name = name_of_head(self.settings, features.backbone)
            # A network computes in single precision; double would only need twice the memory.
            dtype = np.float32 if self._head_name == LENET else np.float64
            features_ND = np.array(features.load(), dtype=dtype)
            # Items may have been added since the features were begun.
            self._keys = [item.key for item in self.project.items[: len(features_ND)]]
            self._skip_unreadable(features_ND)
            self._features_ND = features_ND
            return False
        self.store.set_state("features", self._progress())
        features.compute_next()
        self.store.set_state("features", self._progress())
        return True

    def _skip_unreadable(self, features_ND: np.ndarray) -> None:
        """Record a skip for items that cannot be read, so that they are never shown."""
        unreadable = np.flatnonzero(np.isnan(features_ND).any(axis=1))
        features_ND[unreadable] = 0.0
        self.store.import_labels(
            ImportedLabel(self._keys[row], None, f"sabal {vote + 1}", skip=True)
            for row in unreadable.tolist()
            for vote in range(self.settings.overlap)
        )

    def _round_step(self, last: int) -> str | None:
        rounds = [each.number for each in self.store.rounds() if each.number >= 0]
        if not rounds:
            return self._choose(0, None)
        number = rounds[-1]
        training = self._training_of(number)
        if training is None:
            counts = self.store.counts(number)
            enough = math.ceil(self.settings.choose_at * counts.chosen - ROUNDING)
            if counts.chosen - counts.open < enough:
                return None
            if self._labels(TRAIN, last):
                return self._train(number, last)
        if self._capacity():
            return self._choose(number + 1, training)
        if training is not None and not self.store.counts().open:
            changes = self.store.class_changes()
            outdated = changes and changes[-1].recorded_at >= training.started_at
            if training.last_answer < last or outdated:
                # The end: the last model is trained on all labels, with the classes as they are.
                return self._train(number, last)
        return None

    def _training_of(self, number: int) -> TrainingRecord | None:
        """Return the last successful training after round `number` was chosen."""
        found = [each for each in self._successful_trainings() if each.round == number]
        return found[-1] if found else None

    def _successful_trainings(self) -> list[TrainingRecord]:
        return [each for each in self.store.trainings() if each.model is not None]

    def _capacity(self) -> int:
        """Return how many more items the budget and the pool allow."""
        counts = self.store.counts()
        left = self.settings.budget - counts.labeled - counts.open
        return max(0, min(left, len(self._keys) - counts.chosen))

    def _labels(self, role: str, until: int) -> list[TrainingLabel]:
        # An item may have been added, and its label imported, after the features were loaded.
        return [
            label
            for label in self.store.training_labels(until)
            if label.role == role and label.item < len(self._keys)
        ]

    def _train(self, number: int, last: int) -> str:
        """Train on all labels, measure on the check labels, and save the model."""
        self.store.set_state("training")
        labels = self._labels(TRAIN, last)
        training_id = self.store.add_training(number, len(labels), last)
        started = time.perf_counter()
        try:
            head = self._trained_head(labels, number)
            checks = self._labels(CHECK, last)
            metrics: dict[str, float] = {}
            if checks:
                metrics = {
                    **head.measure_items(*self._as_arrays(head, checks)),
                    "checks": len(checks),
                }
            name = f"models/training-{training_id:06d}.safetensors"
            make_folder(self.project.folder / "models")
            head.save(self.project.folder / name)
            plan = plan_of(self.project) or {}
            describe_model(self.project.folder / name, self._head_name, head.class_names, plan)
        except Exception as error:
            seconds = time.perf_counter() - started
            self.store.finish_training(training_id, seconds=seconds, error=str(error))
            raise
        seconds = time.perf_counter() - started
        self.store.finish_training(training_id, seconds=seconds, model=name, metrics=metrics)
        self._head, self._head_training_id = head, training_id
        return "train"

    def _predict(self) -> str | None:
        """Store what the latest model says of all items in batches, for people who review.

        A model has learned the labels that it is trained on, also the wrong ones. What it says of
        an item is therefore said by a model without the label of this item, and a fifth of others.
        """
        trainings = self._successful_trainings()
        if not trainings:
            return None
        training = trainings[-1]
        rows = [row for row in self.store.unpredicted_rows(training.id) if row < len(self._keys)]
        if not rows:
            return None
        self.store.set_state("waiting")  # nobody waits for this
        now = self.store.database.now_text()
        labels = self._labels(TRAIN, training.last_answer)
        # A network takes too long to be trained five times.
        folds = fold_numbers(labels) if self._head_name != LENET else np.full(len(labels), -1)
        fold_of = {label.item: fold for label, fold in zip(labels, folds.tolist(), strict=True)}
        # One fold at a time: a batch that is due in the meantime does not wait for all of them.
        fold = min(fold_of.get(row, -1) for row in rows)
        kept = [label for label in labels if fold < 0 or fold_of[label.item] != fold]
        whole = fold < 0 or not kept
        head = (
            self._head_after(training, labels)
            if whole
            else self._trained_head(kept, training.round)
        )
        self.store.set_predictions(
            training.id, now, _guesses(head, [r for r in rows if fold_of.get(r, -1) == fold])
        )
        return "predict"

    def _assess(self) -> str | None:
        """Score one of the models so far, if that was not done for the latest training.

        One at a time: a batch that is due in the meantime does not wait for all of them.
        """
        trainings = self._successful_trainings()
        latest = self.store.latest_assessment()
        if len(trainings) < MIN_POINTS or (latest and latest[0] == trainings[-1].id):
            return None
        current = trainings[-1].id, self.store.classes
        if self._assessing != current:
            self.store.set_state("waiting")
            self._assessing, self._assessed = current, None
            self._stages = self._assessments(trainings)
        found = next(self._stages, None)
        if found is not None:
            self._assessed = found
        elif self._assessed is not None:
            self.store.add_assessment(trainings[-1].id, self._assessed)
        else:
            return None
        return "assess"

    def _assessments(self, trainings: Sequence[TrainingRecord]) -> Iterator[Assessment]:
        last = trainings[-1].last_answer
        labels, checks = self._labels(TRAIN, last), self._labels(CHECK, last)
        sizes = [min(each.labels, len(labels)) for each in trainings]

        def train(some: Sequence[TrainingLabel]) -> Learner | None:
            return self._trained_head(some, trainings[-1].round) if some else None

        # A network takes seconds to train: five more for each number would take minutes.
        linear = self._head_name != LENET
        return assess(train, labels, checks, sizes, cross_validate=linear)

    def _trained_head(self, labels: Sequence[TrainingLabel], number: int) -> Learner:
        """Return a new head, trained on `labels` with the seed of round `number`."""
        head = self._new_head()
        weights = np.asarray([label.weight for label in labels])
        seed = round_seed(self.settings.seed, number, "train")
        items, targets = self._as_arrays(head, labels)
        head.train(items, targets, weights if self.settings.weighted else None, seed)
        return head

    def _new_head(self) -> Learner:
        if self._features_ND is None:
            raise RuntimeError("the features are not computed yet")
        return make_learner(self._head_name, self._features_ND, self.store.classes)

    def _as_arrays(
        self, head: Learner, labels: Sequence[TrainingLabel]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of the items and the indices of their classes."""
        index = {name: k for k, name in enumerate(head.class_names)}
        for each in labels:
            if each.label not in index:
                raise FileError(
                    f"labels out of the classes {', '.join(index)}",
                    repr(each.label),
                    "if the classes have just changed, wait: it is tried again",
                )
        items = np.asarray([each.item for each in labels], dtype=np.int64)
        return items, np.asarray([index[each.label] for each in labels], dtype=np.int64)

    def _choose(self, number: int, training: TrainingRecord | None) -> str | None:
        """Choose a batch with the model of a training, or without one by the first strategy."""
        capacity = self._capacity()
        if not capacity:
            return None
        self.store.set_state("choosing")
        started = time.perf_counter()
        labels = [] if training is None else self._labels(TRAIN, training.last_answer)
        head = self._new_head() if training is None else self._head_after(training, labels)
        batch, chosen = choose_batch_with_checks(
            self.settings,
            head,
            self._part_sizes(),
            number,
            labels,
            self.store.chosen_rows(),
            capacity,
            self._keys.__getitem__,
        )
        # If another engine has added this round in the meantime, its batch is kept.
        self.store.add_round(
            number,
            chosen,
            strategy=batch.strategy,
            seed=batch.seed,
            evidence=batch.evidence,
            seconds=time.perf_counter() - started,
            training_id=None if training is None else training.id,
        )
        return "choose"

    def _part_sizes(self) -> list[int]:
        """Return how many items the project began with, and how many were added at a time."""
        starts = [source.first_item for source in self.store.added_sources()]
        ends = [each for each in starts if each < len(self._keys)]
        return [stop - start for start, stop in pairwise([0, *ends, len(self._keys)])]

    def _head_after(self, training: TrainingRecord, labels: Sequence[TrainingLabel]) -> Learner:
        """Return the head of a training: the one in memory, or one trained the same way again."""
        head = self._head if self._head_training_id == training.id else None
        if head is None or head.class_names != self.store.classes:
            head = self._trained_head(labels, training.round)
        self._head, self._head_training_id = head, training.id
        return head


def _guesses(head: Learner, rows: Sequence[int]) -> dict[int, tuple[str, float]]:
    """Return the predicted class and its probability by row."""
    guesses = [each["guess"] for each in predicted(head, np.asarray(rows))]
    return {
        row: (each["label"], each["probability"]) for row, each in zip(rows, guesses, strict=True)
    }
