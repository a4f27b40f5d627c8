"""What goes over the wire, for OpenAPI and for whoever writes another front end."""

from __future__ import annotations

from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    model_validator,
)

LONGEST_NAME = 80
LONGEST_KEY = 1_000
LONGEST_SECONDS = 1e9
LARGEST_ROUND = 2**31 - 1
"""The largest whole number that every database takes."""
MOST_ITEMS = 100

# No database takes the character NUL in every place.
Annotator = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True,
        min_length=1,
        max_length=LONGEST_NAME,
        pattern=r"^[^\x00]*[^\s\x00][^\x00]*$",
    ),
]
Key = Annotated[str, StringConstraints(max_length=LONGEST_KEY, pattern=r"^[^\x00]*$")]


class Reason(BaseModel):
    """What was expected, what came, and what to do."""

    expected: str
    got: str
    fix: str


class Problem(BaseModel):
    """An answer that says no."""

    error: Reason


class _Body(BaseModel):
    """A request; a misspelt field is refused, not ignored."""

    model_config = ConfigDict(extra="forbid")

    submission: UUID = Field(description="Made up by the client; sending it twice changes nothing.")
    annotator: Annotator = Field(description="Who answers.")


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


class LabelBody(_Body):
    """A label for an item, or a skip."""

    model_config = ConfigDict(json_schema_extra={"oneOf": ONE_OF})

    item: Key
    label: Key | None = Field(None, description="One of the classes; left out for a skip.")
    skip: bool = Field(False, strict=True)
    seconds: float | None = Field(
        None,
        ge=0,
        le=LONGEST_SECONDS,
        strict=True,
        allow_inf_nan=False,
        description="From shown to answered.",
    )

    @model_validator(mode="after")
    def _label_or_skip(self) -> Self:
        if (self.label is not None) == self.skip:
            raise ValueError("either a `label` or `skip: true`")
        return self


class UndoBody(_Body):
    """Takes back the latest answer of a person that still stands."""


class NextItem(BaseModel):
    """An item to answer: a text in `content`, or an image at `url`."""

    id: str
    kind: str
    content: str | None = None
    url: str | None = None
    rank: int
    round: int


class NextItems(BaseModel):
    """Items that are leased to one person, in the order to answer them."""

    items: list[NextItem]


class AnswerOut(BaseModel):
    """An answer as it is stored."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    submission: str
    annotator: str
    item: str
    round: int
    action: str
    label: str | None
    undoes: int | None
    answered_at: str


class Guess(BaseModel):
    """What the model thought of an item when it was chosen."""

    label: str
    probability: float | None = None


class Answered(BaseModel):
    """The stored answer, what the same person had said of the item before, and the model's guess.

    A guess comes only after a label, and where the project shows guesses.
    """

    answer: AnswerOut
    replaces: AnswerOut | None = None
    guess: Guess | None = None


class Undone(BaseModel):
    """The undoing as it is stored; None if there was nothing to undo."""

    answer: AnswerOut | None


class BatchProgress(BaseModel):
    """The latest batch."""

    size: int
    answered: int


class StatusOut(BaseModel):
    """Where the project is."""

    model_config = ConfigDict(from_attributes=True)

    round: int | None
    labelled: int
    skipped: int
    remaining: int
    partly: int = Field(description="Items that somebody has answered, and others are to, too.")
    overlap: int = Field(description="How many people answer an item.")
    waits_for: str | None = Field(description="What only another person can do, in words.")
    budget: int
    classes: list[str]
    items: int
    training: str
    progress: float
    error: str | None
    metrics: dict[str, float]
    finished: bool
    ended: str | None = Field(description="Why nothing more will be asked, in words.")
    batch: BatchProgress


class BatchItemOut(BaseModel):
    """An item of a batch; what could sway whoever answers it is told once it is answered."""

    id: str
    kind: str
    content: str | None = None
    url: str | None = None
    rank: int
    round: int
    weight: float
    score: float
    role: str
    why: dict[str, Any]
    answered: bool
    label: str | None


class Batch(BaseModel):
    """A batch in the order of its ranks."""

    items: list[BatchItemOut]


class CurvePointOut(BaseModel):
    """One training: accuracy on the check labels of its day, with a 95 % interval."""

    model_config = ConfigDict(from_attributes=True)

    round: int
    labels: int
    accuracy: float
    low: float
    high: float
    checks: int


class Curve(BaseModel):
    """The learning curve, and what it says about going on."""

    points: list[CurvePointOut]
    verdict: str
    advice: str
