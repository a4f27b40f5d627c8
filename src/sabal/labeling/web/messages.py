"""What goes over the wire, for OpenAPI and for whoever writes another front end."""

from __future__ import annotations

from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

LONGEST_NAME = 80
MOST_ITEMS = 100

Annotator = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_NAME)
]


class _Body(BaseModel):
    """A request; a misspelt field is refused, not ignored."""

    model_config = ConfigDict(extra="forbid")

    submission: UUID = Field(description="Made up by the client; sending it twice changes nothing.")
    annotator: Annotator = Field(description="Who answers.")


class LabelBody(_Body):
    """A label for an item, or a skip."""

    item: str
    label: str | None = Field(None, description="One of the classes; left out for a skip.")
    skip: bool = False
    seconds: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="From shown to answered."
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
    """The stored answer; `guess` only after a label, and where the project shows guesses."""

    answer: AnswerOut
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
    budget: int
    classes: list[str]
    items: int
    training: str
    progress: float
    error: str | None
    metrics: dict[str, float]
    finished: bool
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
