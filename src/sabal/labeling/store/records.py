"""The records that go into the store and come out of it.

They are plain dataclasses, and the HTTP interface serialises them as they are: their field names
are part of its contract.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from sabal.errors import InputError

LABEL, SKIP, UNDO = "label", "skip", "undo"
TRAIN, CHECK = "train", "check"
IMPORTED = -1  # the round of items that were labelled elsewhere and never chosen here
MAX_NAME_LENGTH = 200

LEAD, ANNOTATOR, READER = "lead", "annotator", "reader"
ANSWER, REVIEW, MANAGE = "answer", "review", "manage"
ROLES: dict[str, frozenset[str]] = {
    LEAD: frozenset({ANSWER, REVIEW, MANAGE}),
    ANNOTATOR: frozenset({ANSWER}),
    READER: frozenset({REVIEW}),
}
"""What people may do: answer items; see everybody's answers, the dashboard and exports; and change
classes, guidelines and the labels of others."""


@dataclass(frozen=True)
class Person:
    """Somebody with a personal link."""

    name: str
    role: str

    @property
    def rights(self) -> frozenset[str]:
        """What the person may do."""
        return ROLES[self.role]


@dataclass(frozen=True)
class Submission:
    """One answer of one person; its id makes it safe to send twice."""

    submission: str
    annotator: str
    item: str
    label: str | None = None
    skip: bool = False
    seconds: float | None = None


@dataclass(frozen=True)
class Answer:
    """An answer as it is stored: a label, a skip, or an undo of the answer with id `undoes`."""

    id: int
    submission: str
    annotator: str
    item: str
    round: int
    action: str
    label: str | None
    undoes: int | None
    answered_at: str
    decides: Annotated[
        bool, Field(description="It settles the label of the item, whatever others answered.")
    ] = False
    # How long a person took is not part of the HTTP interface.
    seconds: Annotated[float | None, Field(exclude=True)] = None


@dataclass(frozen=True)
class ClassChange:
    """A class that was added, renamed to `target` or merged into it, and by whom."""

    id: int
    action: str
    name: str
    target: str | None
    person: str
    # The answers up to this one were given before.
    after_answer: Annotated[int, Field(exclude=True)]
    recorded_at: str


@dataclass(frozen=True)
class Guidelines:
    """What annotators should know, in Markdown, about the project and about each class."""

    project: str
    classes: dict[str, str]


@dataclass(frozen=True)
class PoolItem:
    """An item of the pool: its row, its key, and its text or the path of its image.

    `details` are the other columns of its source; items from the store come without them.
    """

    id: int
    key: str
    kind: str
    content: str
    details: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AddedSource:
    """Data that was added later: its items have the ids from `first_item` on.

    `rows` are the rows of these items in the source.
    """

    path: str
    first_item: int
    rows: list[int]


@dataclass(frozen=True)
class AddReport:
    """How many items were added, and how many were there already."""

    added: int
    already: int


@dataclass(frozen=True)
class LeasedItem:
    """An item that is reserved for one person until `expires_at`."""

    item: str
    kind: str
    content: str
    rank: int
    round: int
    weight: float
    expires_at: str


@dataclass(frozen=True)
class NewBatchItem:
    """An item, by its row in the pool, that is about to be added to a batch."""

    item: int
    weight: float = 1.0
    score: float = 0.0
    role: str = TRAIN
    why: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BatchItem:
    """An item of a batch; `label` is the decided or majority label, None if there is none."""

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
class LabelRow:
    """A current answer as it is exported; a skip has no label."""

    id: str
    label: str | None
    annotator: str
    round: int
    weight: float
    time: str
    role: str
    decides: bool = False


@dataclass(frozen=True)
class Vote:
    """A person's current answer to an item; a skip has no label."""

    annotator: str
    label: str | None
    decides: bool = False


@dataclass(frozen=True)
class Disagreement:
    """An item that people gave different labels, and that nobody has decided yet."""

    item: str
    kind: str
    content: str
    rank: int
    round: int
    votes: tuple[Vote, ...]


@dataclass(frozen=True)
class TrainingLabel:
    """The label of an item, which is given by its row in the pool: decided, or the majority's."""

    item: int
    label: str
    weight: float
    role: str


@dataclass(frozen=True)
class AnswerCounts:
    """Numbers of items.

    `chosen` items are in a batch. Of these, `labeled` ones have a label, `skipped` ones were
    skipped by enough people, and `open` ones need more answers; `partly` counts the open ones that
    somebody has answered.
    """

    chosen: int = 0
    labeled: int = 0
    skipped: int = 0
    open: int = 0
    partly: int = 0


@dataclass(frozen=True)
class BatchProgress:
    """The size of the latest batch, and how many of its items are answered."""

    size: int
    answered: int


@dataclass(frozen=True)
class Status:
    """The state of a project: its labels, its latest batch, and what the worker is doing."""

    round: int | None
    labeled: int
    skipped: int
    remaining: Annotated[int, Field(description="Items of open batches that need more answers.")]
    partly: Annotated[
        int, Field(description="Items that somebody has answered and others still have to.")
    ]
    overlap: Annotated[int, Field(description="How many people answer an item.")]
    waits_for: Annotated[str | None, Field(description="What only another person can do.")]
    budget: int
    classes: tuple[str, ...]
    items: int
    training: Annotated[str, Field(description="What the worker is doing.")]
    progress: Annotated[float, Field(description="Share of the features computed, 0 to 1.")]
    error: str | None
    metrics: dict[str, float]
    finished: Annotated[bool, Field(description="Nothing is open, and no batch will follow.")]
    ended: Annotated[str | None, Field(description="Why no more items will be shown.")]
    batch: BatchProgress


@dataclass(frozen=True)
class CurvePoint:
    """The accuracy of one training on the check labels known then, with a 95 % interval."""

    round: int
    labels: int
    accuracy: float
    low: float
    high: float
    checks: int


@dataclass(frozen=True)
class Assessment:
    """How many of the same items the models of several numbers of labels predict right.

    Of the `items`, `checks` were drawn at random; the latest model is wrong about `wrong_checks`.
    """

    labels: tuple[int, ...]
    right: tuple[int, ...]
    items: int
    wrong_checks: int
    checks: int


@dataclass(frozen=True)
class Advice:
    """Whether more labels help: "helping", "unclear", "not-helping" or "too-early"."""

    verdict: str
    text: str


@dataclass(frozen=True)
class PersonPace:
    """How fast one person labels; `labels` counts their current labels, and no skips."""

    labels: int
    median_seconds: float | None
    labels_per_hour: float | None


@dataclass(frozen=True)
class Pace:
    """How fast labels come in, in all and by annotator."""

    median_seconds: float | None
    labels_per_hour: float | None
    by_annotator: dict[str, PersonPace]


@dataclass(frozen=True)
class Agreement:
    """Agreement on items that two people labelled, over `pairs` of labels.

    `share` is the share of equal labels. `kappa` is Cohen's kappa, averaged over pairs of people
    and weighted by the number of items they share; it is None where all labels are of one class.
    """

    share: float
    kappa: float | None
    pairs: int


@dataclass(frozen=True)
class TrainingRecord:
    """One training; `last_answer` is the id of the last answer that it used."""

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
class RoundRecord:
    """One selection of a batch."""

    number: int
    strategy: str
    seed: int | None
    chosen_at: str
    seconds: float
    evidence: dict[str, Any]
    training_id: int | None


@dataclass(frozen=True)
class ImportedLabel:
    """A label or a skip from elsewhere.

    A round of None means the round of the item in this project, and a time of None means now.
    `weight` and `role` apply to items that are in no batch yet. An answer that `decides` settles
    the label of its item.
    """

    id: str
    label: str | None
    annotator: str
    round: int | None = None
    time: str | None = None
    skip: bool = False
    weight: float | None = None
    role: str = TRAIN
    decides: bool = False


@dataclass(frozen=True)
class ImportReport:
    """What an import did.

    `labels` and `skips` were added, `already` answers were in the project before, `waiting` rows
    have no answer, and `unknown` ids are not in the project.
    """

    labels: int
    skips: int
    already: int
    waiting: int
    unknown: list[str]


@dataclass(frozen=True)
class ReviewItem:
    """An item for somebody who reviews; `round` and `rank` are None unless it is in a batch.

    `label` is the decided one or that of the majority. `guess` is what the latest model predicts;
    it is None until somebody has answered.
    """

    item: str
    kind: str
    content: str
    round: int | None
    rank: int | None
    role: str | None
    label: str | None
    votes: tuple[Vote, ...]
    guess: dict[str, Any] | None


@dataclass(frozen=True)
class OwnAnswer:
    """A person's current answer with its id, and the item; a skip has no label."""

    id: int
    item: str
    kind: str
    content: str
    rank: int
    round: int
    label: str | None


def check_name(value: Any, name: str) -> None:
    """Refuse a name that is not a non-empty text of reasonable length."""
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME_LENGTH:
        got = f"{len(value)} characters" if isinstance(value, str) else type(value).__name__
        raise InputError(
            f"`{name}` as a text of 1 to {MAX_NAME_LENGTH} characters", got, f"give a {name}"
        )
