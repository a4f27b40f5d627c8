"""What goes into the store and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LABEL, SKIP, UNDO = "label", "skip", "undo"
TRAIN, CHECK = "train", "check"
IMPORTED = -1
"""The round of items that were labelled elsewhere and never chosen here."""


@dataclass(frozen=True)
class Submission:
    """One answer of one person, named by an id of its own so that it may be sent twice."""

    submission: str
    annotator: str
    item: str
    label: str | None = None
    skip: bool = False
    seconds: float | None = None


@dataclass(frozen=True)
class Answer:
    """A row of the history: a label, a skip, or the undoing of one (`undoes`: its id)."""

    id: int
    submission: str
    annotator: str
    item: str
    round: int
    action: str
    label: str | None
    undoes: int | None
    answered_at: str
    seconds: float | None = None


@dataclass(frozen=True)
class Item:
    """An item of the pool: its row, its key, and its text or the path of its image."""

    id: int
    key: str
    kind: str
    content: str


@dataclass(frozen=True)
class Leased:
    """An item that is one person's to answer until `expires_at`."""

    item: str
    kind: str
    content: str
    rank: int
    round: int
    weight: float
    expires_at: str


@dataclass(frozen=True)
class BatchItem:
    """An item of a batch; `label` is what people say of it together, None while open or skipped."""

    item: str
    kind: str
    content: str
    rank: int
    round: int
    weight: float
    score: float
    role: str
    why: dict[str, Any]
    label: str | None
    answered_by: tuple[str, ...]


@dataclass(frozen=True)
class Chosen:
    """An item (its row in the pool) on its way into a batch."""

    item: int
    weight: float = 1.0
    score: float = 0.0
    role: str = TRAIN
    why: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LabelRow:
    """An answer that stands, as it is exported; a skip has no label."""

    id: str
    label: str | None
    annotator: str
    round: int
    weight: float
    time: str
    role: str


@dataclass(frozen=True)
class Lesson:
    """What people say of an item (its row in the pool) together: what a model may learn."""

    item: int
    label: str
    weight: float
    role: str


@dataclass(frozen=True)
class Status:
    """Where a project is.

    labelled, skipped: items. remaining: items of open batches that still want answers.
    partly: of these, the ones that somebody has answered, and others are to answer, too.
    training: what the worker does. progress: of the features, 0 to 1.
    finished: nothing is open and nothing more will be chosen.
    batch_size, batch_answered: of the latest batch.
    """

    round: int | None
    labelled: int
    skipped: int
    remaining: int
    partly: int
    overlap: int
    budget: int
    classes: tuple[str, ...]
    items: int
    training: str
    progress: float
    error: str | None
    metrics: dict[str, float]
    finished: bool
    batch_size: int
    batch_answered: int

    @property
    def ended(self) -> str | None:
        """Why nothing more will be asked, in words; None while there is something to do."""
        if not self.finished:
            return None
        if self.labelled + self.skipped == self.items:
            return f"all {self.items} items of the pool are answered"
        return (
            f"the budget of {self.budget} labels is used up; "
            "with a larger one in sabal.toml it goes on"
        )

    @property
    def waits_for(self) -> str | None:
        """What nobody can do who has answered everything already, in words; None if nothing."""
        if not self.partly:
            return None
        items = "1 item waits" if self.partly == 1 else f"{self.partly} items wait"
        whom = "a second annotator" if self.overlap == 2 else "another annotator"
        return f"{items} for {whom}: {self.overlap} people answer every item"


@dataclass(frozen=True)
class CurvePoint:
    """The accuracy of one training on the check labels of its day, with a 95 % Wilson interval."""

    round: int
    labels: int
    accuracy: float
    low: float
    high: float
    checks: int


@dataclass(frozen=True)
class PersonPace:
    """How fast one person labels."""

    labels: int
    median_seconds: float | None
    labels_per_hour: float | None


@dataclass(frozen=True)
class Pace:
    """How fast labels come in: of everyone together, and by annotator."""

    median_seconds: float | None
    labels_per_hour: float | None
    by_annotator: dict[str, PersonPace]


@dataclass(frozen=True)
class Agreement:
    """Where two people labelled the same item: the share of equal labels, and Cohen's kappa.

    kappa is the mean over pairs of people, weighted by the items they share; None where every
    label is of one class, so that agreement says nothing.
    """

    share: float
    kappa: float | None
    pairs: int


@dataclass(frozen=True)
class Advice:
    """Whether more labels still help: "helping", "unclear", "not-helping" or "too-early"."""

    verdict: str
    text: str


@dataclass(frozen=True)
class Training:
    """One training; `last_answer` is the last row of the history that it knew of."""

    id: int
    round: int
    labels: int
    last_answer: int
    started_at: str
    finished_at: str | None
    seconds: float | None
    model: str | None
    error: str | None


@dataclass(frozen=True)
class Round:
    """One selection, as it was made."""

    number: int
    strategy: str
    seed: int | None
    chosen_at: str
    seconds: float
    evidence: dict[str, Any]
    training_id: int | None


@dataclass(frozen=True)
class ImportedLabel:
    """A label or a skip from elsewhere; what is None is taken from this project, or is now.

    weight, role: for items that are in no batch here.
    """

    id: str
    label: str | None
    annotator: str
    round: int | None = None
    time: str | None = None
    skip: bool = False
    weight: float | None = None
    role: str = TRAIN


@dataclass(frozen=True)
class ImportReport:
    """What an import did: answers added (`skipped` of them skips), there already, ids unknown."""

    added: int
    already: int
    skipped: int
    unknown: list[str]
