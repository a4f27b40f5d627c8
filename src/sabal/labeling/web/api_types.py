"""The requests and responses of the HTTP interface.

Requests are validated by pydantic. Responses are dataclasses; where a record of the store is the
response, FastAPI serialises it as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote
from uuid import UUID

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, model_validator

from sabal.errors import InputError
from sabal.labeling.sources import MAX_KEY_LENGTH
from sabal.labeling.store.classes import MAX_GUIDELINE_LENGTH
from sabal.labeling.store.records import (
    Answer,
    BatchItem,
    ClassChange,
    CurvePoint,
    Disagreement,
    Guidelines,
    LeasedItem,
    OwnAnswer,
    Person,
    ReviewItem,
    Vote,
)

MAX_ANNOTATOR_LENGTH = 80
MAX_SECONDS = 1e9
MAX_ITEMS = 100
UNBIASED_REASONS = ("uncertainty", "represents")  # hint at no class: shown before an answer

# The character NUL is not accepted by all databases.
Annotator = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True,
        min_length=1,
        max_length=MAX_ANNOTATOR_LENGTH,
        pattern=r"^[^\x00]*[^\s\x00][^\x00]*$",
    ),
]
Key = Annotated[str, StringConstraints(max_length=MAX_KEY_LENGTH, pattern=r"^[^\x00]*$")]

ONE_OF: list[JsonValue] = [
    {
        "title": "A label",
        "required": ["label"],
        "properties": {"label": {"type": "string"}, "skip": {"const": False}},
    },
    {
        "title": "A skip",
        "required": ["skip"],
        "properties": {"label": {"type": "null"}, "skip": {"const": True}},
    },
]


def refuse_repeated_parameters(request: Request) -> None:
    """Refuse a query with the same parameter twice: which one is meant would be a guess."""
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if names.count(name) > 1:
            raise InputError("every parameter once", f"{name!r} twice", "leave one of them out")


class _Body(BaseModel):
    """A request; an unknown field is refused, not ignored."""

    model_config = ConfigDict(extra="forbid")

    submission: UUID = Field(description="Made up by the client; sending it twice changes nothing.")
    annotator: Annotator = Field(description="The person who answers.")


class LabelBody(_Body):
    """A label for an item, or a skip."""

    model_config = ConfigDict(json_schema_extra={"oneOf": ONE_OF})

    item: Key
    label: Key | None = Field(None, description="One of the classes; left out for a skip.")
    skip: bool = Field(False, strict=True)
    seconds: float | None = Field(
        None,
        ge=0,
        le=MAX_SECONDS,
        strict=True,
        allow_inf_nan=False,
        description="The time from showing the item to the answer.",
    )

    @model_validator(mode="after")
    def _label_or_skip(self) -> Self:
        if (self.label is not None) == self.skip:
            raise ValueError("either a `label` or `skip: true`")
        return self


class BulkBody(_Body):
    """One label for several items."""

    items: list[Key] = Field(min_length=1, max_length=MAX_ITEMS)
    label: Key = Field(description="One of the classes.")


class UndoBody(_Body):
    """A request to undo the latest current answer of a person."""


@dataclass(frozen=True)
class ErrorReason:
    """What was expected, what was received, and what to do."""

    expected: str
    got: str
    fix: str


@dataclass(frozen=True)
class ErrorResponse:
    """The response to a request that failed."""

    error: ErrorReason


@dataclass(frozen=True)
class NextItem:
    """An item to answer: a text in `content`, or an image at `url`."""

    id: str
    kind: str
    content: str | None
    url: str | None
    rank: int
    round: int


@dataclass(frozen=True)
class NextItemsResponse:
    """Items that are leased to one person, in the order to answer them."""

    items: list[NextItem]


@dataclass(frozen=True)
class Guess:
    """The class that the model predicted for an item when it was chosen."""

    label: str
    probability: float | None = None


@dataclass(frozen=True)
class LabelResponse:
    """The stored answer, the same person's previous answer to the item, and the model's guess.

    A guess is given only after a label, and where the project shows guesses.
    """

    answer: Answer
    replaces: Answer | None
    guess: Guess | None


@dataclass(frozen=True)
class UndoResponse:
    """The undo as it is stored; None if there was nothing to undo."""

    answer: Answer | None


@dataclass(frozen=True)
class ShownBatchItem(NextItem):
    """An item of a batch; what could bias an answer is left out until the item is answered."""

    weight: float
    score: float
    role: str
    why: dict[str, Any]
    answered: bool
    label: str | None


@dataclass(frozen=True)
class DisputedItem(NextItem):
    """An item with different labels, and what everybody answered."""

    votes: list[Vote]


@dataclass(frozen=True)
class DisagreementsResponse:
    """The items to decide, in the order chosen."""

    items: list[DisputedItem]


@dataclass(frozen=True)
class ReviewedItem:
    """An item with what was answered; round and rank are None unless it is in a batch."""

    id: str
    kind: str
    content: str | None
    url: str | None
    rank: int | None
    round: int | None
    label: str | None
    votes: list[Vote]
    guess: Guess | None


@dataclass(frozen=True)
class ItemsResponse:
    """Items by row, and how many there are in all."""

    items: list[ReviewedItem]
    total: int


@dataclass(frozen=True)
class ItemResponse:
    """An item, all answers to it including undone ones, and its other columns."""

    item: ReviewedItem
    history: list[Answer]
    details: dict[str, str]


@dataclass(frozen=True)
class DetailsResponse:
    """The other columns of an item by name."""

    details: dict[str, str]


@dataclass(frozen=True)
class AnsweredItem(NextItem):
    """An item, and a person's answer with its id; a skip has no label."""

    answer: int
    label: str | None


@dataclass(frozen=True)
class OwnAnswersResponse:
    """Answers of one person, the latest first."""

    items: list[AnsweredItem]


@dataclass(frozen=True)
class SimilarResponse:
    """Items, the nearest first."""

    items: list[ReviewedItem]


@dataclass(frozen=True)
class BulkResponse:
    """How many items have the label now, and the ids of those that others have answered."""

    labeled: int
    left_out: list[str]


@dataclass(frozen=True)
class MeResponse:
    """The name and role of a personal link, None where there are none, and what it allows.

    The rights are `answer` (label items), `review` (see everybody's answers, the dashboard and
    exports) and `manage` (change classes, guidelines and the labels of others).
    """

    name: str | None
    role: str | None
    rights: list[str]


@dataclass(frozen=True)
class PeopleResponse:
    """The people who have personal links, by name."""

    people: list[Person]


class PersonBody(BaseModel):
    """A person to give a link, another link, or none."""

    model_config = ConfigDict(extra="forbid")

    action: Literal["add", "renew", "remove"]
    name: Annotator
    role: Literal["lead", "annotator", "reader"] | None = Field(
        None, description="Left out: annotator, or as before."
    )


@dataclass(frozen=True)
class PersonResponse:
    """The people who have links now, and the token of a new link, which is not told again."""

    people: list[Person]
    token: str | None


class ClassChangeBody(BaseModel):
    """A class to add, to rename to `target`, or to merge into `target`."""

    model_config = ConfigDict(extra="forbid")

    action: Literal["add", "rename", "merge"]
    name: Key
    target: Key | None = Field(None, description="The new name, or the class that remains.")


class GuidelineBody(BaseModel):
    """The new guideline of the project, or of one class."""

    model_config = ConfigDict(extra="forbid")

    class_name: Key | None = Field(None, description="Left out: of the whole project.")
    text: Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")] = Field(
        max_length=MAX_GUIDELINE_LENGTH, description="Markdown; empty to remove it."
    )


@dataclass(frozen=True)
class ClassesResponse:
    """The classes in their order, the guidelines of all, and how the classes were changed."""

    classes: list[str]
    guidelines: Guidelines
    changes: list[ClassChange]


@dataclass(frozen=True)
class DecisionResponse:
    """A decision as it is stored."""

    answer: Answer


@dataclass(frozen=True)
class BatchResponse:
    """A batch in the order of its ranks."""

    items: list[ShownBatchItem]


@dataclass(frozen=True)
class CurveResponse:
    """The learning curve, and whether more labels help."""

    points: list[CurvePoint]
    verdict: str
    advice: str


def next_item(item: LeasedItem | BatchItem | Disagreement | OwnAnswer) -> NextItem:
    """Return an item as the page shows it."""
    return NextItem(item.item, item.kind, *_text_or_url(item), item.rank, item.round)


def _text_or_url(
    item: LeasedItem | BatchItem | Disagreement | OwnAnswer | ReviewItem,
) -> tuple[str | None, str | None]:
    if item.kind == "image":
        return None, f"/media/{quote(item.item, safe='')}"
    return item.content, None


def own_answer(given: OwnAnswer) -> AnsweredItem:
    """Return an answer of the person who asks."""
    return AnsweredItem(**vars(next_item(given)), answer=given.id, label=given.label)


def reviewed_item(item: ReviewItem, only: str | None = None) -> ReviewedItem:
    """Return an item for a review; with `only`, the answer of that person and no guess."""
    votes = [vote for vote in item.votes if only in (None, vote.annotator)]
    guess = None if item.guess is None or only is not None else Guess(**item.guess)
    label = item.label if only is None else next((vote.label for vote in votes), None)
    return ReviewedItem(
        item.item, item.kind, *_text_or_url(item), item.rank, item.round, label, votes, guess
    )  # fmt: skip


def disputed_item(item: Disagreement) -> DisputedItem:
    """Return an item to decide."""
    return DisputedItem(**vars(next_item(item)), votes=list(item.votes))


def shown_batch_item(item: BatchItem, overlap: int) -> ShownBatchItem:
    """Return an item of a batch; it is answered once `overlap` people have answered it."""
    answered = len(item.answered_by) >= overlap
    return ShownBatchItem(
        **vars(next_item(item)),
        weight=item.weight,
        score=item.score,
        role=item.role,
        why={k: v for k, v in item.why.items() if answered or k in UNBIASED_REASONS},
        answered=answered,
        label=item.label if answered else None,
    )
