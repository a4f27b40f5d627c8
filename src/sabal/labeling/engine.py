"""The engine: what a worker does for a project, one step at a time, every step a row.

Features, then the first batch; whenever enough of the latest batch is answered: train, measure,
choose the next. The choosing and the seeds are those of `sabal.loop.rounds`. With `choose_at` = 1 and
`check_share` = 0 the rounds are those of a simulation with the same seed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np

from sabal.core.files import make_folder
from sabal.errors import FileError
from sabal.labeling.choosing import choose_for_people
from sabal.labeling.features import Features
from sabal.labeling.learner_choice import LENET, make_learner, name_of_head
from sabal.labeling.project import Project
from sabal.labeling.store import ImportedLabel, Lesson, Training
from sabal.labeling.store.records import CHECK, TRAIN
from sabal.learners.learner import Learner
from sabal.loop.rounds import round_seed

ROUNDING = 1e-9


class Engine:
    """Does what is due in one project. One engine at a time is enough; two do no harm."""

    def __init__(self, project: Project) -> None:
        self.project, self.store, self.settings = project, project.store, project.settings
        self._features: Features | None = None
        self._features_ND: np.ndarray | None = None
        self._head_name = ""
        self._keys: list[str] = []
        self._head: Learner | None = None
        self._head_of: int | None = None
        self._nothing_due_at: int | None = None

    def step(self) -> str | None:
        """Do one thing and say which ("features", "train", "choose"); None if nothing is due."""
        try:
            return self._step()
        except Exception as error:
            self.store.set_state("failed", self._progress(), str(error) or type(error).__name__)
            raise

    def _step(self) -> str | None:
        if self._features_ND is None and self._compute_features():
            return "features"
        last = self.store.last_answer()
        if last == self._nothing_due_at:
            return None
        done = self._round_step(last)
        if done is None:
            finished = self.store.status().finished
            # An answer that came in meanwhile may have finished it, and is not learnt yet.
            if self.store.last_answer() == last:
                self._nothing_due_at = last
                self.store.set_state("idle" if finished else "waiting")
        return done

    def _progress(self) -> float:
        """The share of the features that is computed."""
        if self._features_ND is not None:
            return 1.0
        return 0.0 if self._features is None else self._features.progress

    def _compute_features(self) -> bool:
        """Compute a chunk; False once all are there and loaded."""
        if self._features is None:
            self._features = Features(self.project)
        features = self._features
        if features.complete:
            self._head_name = name_of_head(self.settings, features.backbone)
            # A network takes single precision; it would only take twice the room.
            dtype = np.float32 if self._head_name == LENET else np.float64
            features_ND = np.array(features.load(), dtype=dtype)
            self._keys = [item.key for item in self.project.items]
            self._skip_unreadable(features_ND)
            self._features_ND = features_ND
            return False
        self.store.set_state("features", self._progress())
        features.compute_next()
        self.store.set_state("features", self._progress())
        return True

    def _skip_unreadable(self, features_ND: np.ndarray) -> None:
        """Items that cannot be read are skipped, and the history says so: nobody is asked."""
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
            enough = math.ceil(self.settings.choose_at * counts["chosen"] - ROUNDING)
            if counts["chosen"] - counts["open"] < enough:
                return None
            if self._lessons(TRAIN, last):
                return self._train(number, last)
        if self._room():
            return self._choose(number + 1, training)
        if training is not None and training.last_answer < last and not self.store.counts()["open"]:
            # The end: the last model knows every label.
            return self._train(number, last)
        return None

    def _training_of(self, number: int) -> Training | None:
        """The last training that went well after round `number` was chosen."""
        for training in reversed(self.store.trainings()):
            if training.round == number and training.finished_at and training.error is None:
                return training
        return None

    def _room(self) -> int:
        """How many more items the budget and the pool allow."""
        counts = self.store.counts()
        left = self.settings.budget - counts["labelled"] - counts["open"]
        return max(0, min(left, len(self._keys) - counts["chosen"]))

    def _lessons(self, role: str, until: int) -> list[Lesson]:
        return [lesson for lesson in self.store.lessons(until) if lesson.role == role]

    def _train(self, number: int, last: int) -> str:
        """Train on all labels, measure on the check labels, and keep the model."""
        self.store.set_state("training")
        lessons = self._lessons(TRAIN, last)
        training_id = self.store.add_training(number, len(lessons), last)
        started = time.perf_counter()
        try:
            head = self._taught(lessons, number)
            checks = self._lessons(CHECK, last)
            metrics: dict[str, float] = {}
            if checks:
                metrics = {**head.measure_items(*self._as_arrays(checks)), "checks": len(checks)}
            name = f"models/training-{training_id:06d}.safetensors"
            make_folder(self.project.folder / "models")
            head.save(self.project.folder / name)
        except Exception as error:
            seconds = time.perf_counter() - started
            self.store.finish_training(training_id, seconds=seconds, error=str(error))
            raise
        seconds = time.perf_counter() - started
        self.store.finish_training(training_id, seconds=seconds, model=name, metrics=metrics)
        self._head, self._head_of = head, training_id
        return "train"

    def _taught(self, lessons: Sequence[Lesson], number: int) -> Learner:
        """A new head that has learnt `lessons` as round `number` decides every draw."""
        head = self._new_head()
        weights = np.asarray([lesson.weight for lesson in lessons])
        seed = round_seed(self.settings.seed, number, "train")
        items, labels = self._as_arrays(lessons)
        head.train(items, labels, weights if self.settings.weighted else None, seed)
        return head

    def _new_head(self) -> Learner:
        if self._features_ND is None:
            raise RuntimeError("features come first")
        return make_learner(self._head_name, self._features_ND, self.settings.classes)

    def _as_arrays(self, lessons: Sequence[Lesson]) -> tuple[np.ndarray, np.ndarray]:
        index = {name: k for k, name in enumerate(self.settings.classes)}
        for lesson in lessons:
            if lesson.label not in index:
                raise FileError(
                    "every class that labels have in sabal.toml",
                    f"no {lesson.label!r}",
                    "add it to the classes again",
                )
        items = np.asarray([lesson.item for lesson in lessons], dtype=np.int64)
        return items, np.asarray([index[lesson.label] for lesson in lessons], dtype=np.int64)

    def _choose(self, number: int, training: Training | None) -> str | None:
        """Choose a batch with the model of a training, or without one by the first strategy."""
        room = self._room()
        if not room:
            return None
        self.store.set_state("choosing")
        started = time.perf_counter()
        lessons = [] if training is None else self._lessons(TRAIN, training.last_answer)
        head = self._new_head() if training is None else self._head_after(training, lessons)
        batch, chosen = choose_for_people(
            self.settings,
            head,
            number,
            lessons,
            self.store.chosen(),
            room,
            self._keys.__getitem__,
        )
        # Another engine may have been quicker: then its batch is the one.
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

    def _head_after(self, training: Training, lessons: Sequence[Lesson]) -> Learner:
        """The head of a training: still there, or taught the same again."""
        if self._head is None or self._head_of != training.id:
            self._head, self._head_of = self._taught(lessons, training.round), training.id
        return self._head
