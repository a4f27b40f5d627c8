"""Predictions of the latest model of a project for other data of its kind."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sabal.core.files import write_text_whole
from sabal.errors import FileError
from sabal.labeling.features.backbone import Backbone, make_backbone
from sabal.labeling.features.feature_files import plan_of, readable_rows
from sabal.labeling.learner_choice import LINEAR, make_learner
from sabal.labeling.project import Project
from sabal.labeling.sources import ItemSource, has_features, read_features, read_source
from sabal.labeling.store.class_history import ClassHistory
from sabal.labeling.store.records import PoolItem, TrainingRecord
from sabal.learners.linear import read_linear_model

ITEMS_AT_A_TIME = 500
NO_ITEMS = np.array([], dtype=np.int64)


def describe_model(path: Path, head: str, classes: Sequence[str], plan: dict[str, Any]) -> None:
    """Write what is needed to use a model beside it: its kind, its classes and its features."""
    about = {
        "model": head,
        "classes": list(classes),
        "backbone": plan["backbone"],
        "side": plan["side"],
    }
    text = json.dumps(about, ensure_ascii=False, indent=1)
    write_text_whole(path.with_suffix(".json"), text + "\n")


def predict(
    project: Project,
    data: str | Path,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
) -> list[dict[str, Any]]:
    """Return id, predicted label and its probability for every item of `data`.

    The probability of every class follows as `p: CLASS`. An image that cannot be read has no label.
    The columns of a file are by default those of the settings.
    """
    path, settings = Path(data).absolute(), project.settings
    source = read_source(
        path,
        text_column=text_column or settings.text_column,
        id_column=id_column or settings.id_column,
    )
    if source.kind != settings.kind:
        raise FileError(f"{settings.kind}s, as the project has", f"{source.kind}s", "pass others")
    training = latest_model(project)
    plan = plan_of(project)
    if training is None or plan is None:
        raise FileError(
            f"a trained model in {project.folder}", "none yet", "label the first batch first"
        )
    backbone = _backbone(project, path, plan)
    rows: list[dict[str, Any]] = []
    for start in range(0, len(source.items), ITEMS_AT_A_TIME):
        part = source.items[start : start + ITEMS_AT_A_TIME]
        rows += _predictions(project, training, backbone, ItemSource(source.kind, part))
    return rows


def latest_model(project: Project) -> TrainingRecord | None:
    """Return the latest training that stored a model."""
    for training in reversed(project.store.trainings()):
        if training.model is not None and (project.folder / training.model).is_file():
            return training
    return None


def prediction_columns(project: Project) -> tuple[str, ...]:
    """Return the columns of predictions."""
    return ("id", "label", "probability", *(f"p: {name}" for name in project.classes))


class _TableFeatures:
    """The features in a table, by row."""

    def __init__(self, path: Path) -> None:
        self.rows_ND = read_features(path)

    def rows(self, items: Sequence[PoolItem]) -> np.ndarray:
        return self.rows_ND[[item.id for item in items]]


def _backbone(project: Project, path: Path, plan: dict[str, Any]) -> Backbone:
    """Return what computes features of `path` as it did of the pool."""
    if plan["backbone"] == "own":
        if not has_features(path):
            raise FileError(
                "a .parquet file with a column `features`, as the project has",
                str(path),
                "compute the features in the same way",
            )
        return _TableFeatures(path)
    root = path if path.is_dir() else path.parent
    first = project.items[: plan["items"]]
    return make_backbone(plan["backbone"], project, first, plan["side"], lambda name: root / name)


def _predictions(
    project: Project, training: TrainingRecord, backbone: Backbone, source: ItemSource
) -> list[dict[str, Any]]:
    readable, features_ND = readable_rows(backbone, source.items)
    rows: list[dict[str, Any]] = [{"id": item.key} for item in source.items]
    if not readable:
        return rows
    classes, probs_NC = _probabilities(project, training, features_ND)
    for k, probs_C in zip(readable, probs_NC, strict=True):
        best = int(probs_C.argmax())
        rows[k] |= {"label": classes[best], "probability": float(probs_C[best])}
        rows[k] |= {f"p: {name}": float(p) for name, p in zip(classes, probs_C, strict=True)}
    return rows


def _probabilities(
    project: Project, training: TrainingRecord, features_ND: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Return the present classes, and the probabilities of rows of features."""
    path = project.folder / str(training.model)
    head, names = _about(project, path)
    learner = make_learner(head, features_ND, names)
    learner.load(path, NO_ITEMS, NO_ITEMS, None)
    probs_NK = learner.probs(np.arange(len(features_ND)))
    history, classes = ClassHistory(project.store.class_changes()), list(project.classes)
    probs_NC = np.zeros((len(features_ND), len(classes)))
    for k, name in enumerate(names):
        # A class that was merged since adds to the one that it was merged into.
        present = history.present_name_since(name, training.started_at)
        probs_NC[:, classes.index(present)] += probs_NK[:, k]
    return classes, probs_NC


def _about(project: Project, path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the kind of a model and its classes; nothing describes those of version 0.1."""
    beside = path.with_suffix(".json")
    if not beside.exists():
        return LINEAR, read_linear_model(path)[1]
    try:
        about = json.loads(beside.read_text(encoding="utf-8"))
        return str(about["model"]), tuple(about["classes"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise FileError(f"a readable {beside}", str(error), "train the model again") from None
