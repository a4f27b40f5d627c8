"""One measurement of the suite, and how to find some among many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from research.bench.process import OK, Outcome
from research.bench.suite.scales import Shape


@dataclass(frozen=True)
class Measurement:
    """A method at a shape, and how it went.

    part: of the suite. status: "ok", or why there are no figures; `note` says more.
    limit: the seconds that it was killed after, if it was.
    facts: what else was found out, such as passes and the objective; it depends on the part.
    """

    part: str
    method: str
    shape: Shape
    status: str
    note: str = ""
    seconds: float | None = None
    peak_bytes: int | None = None
    limit: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, part: str, method: str, shape: Shape, outcome: Outcome) -> Measurement:
        """What came of a job."""
        return cls(
            part=part,
            method=method,
            shape=shape,
            status=outcome.status,
            note=outcome.note,
            seconds=outcome.seconds,
            peak_bytes=outcome.peak_bytes,
            limit=outcome.limit,
            facts=outcome.facts,
        )

    @property
    def key(self) -> tuple[str, str, Shape]:
        """What tells it from all others."""
        return self.part, self.method, self.shape

    @property
    def ok(self) -> bool:
        """Whether it has figures to go by."""
        return self.status == OK

    def fact(self, name: str) -> Any:
        """A fact by name; None where there is none."""
        return self.facts.get(name)

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, entries: dict[str, Any]) -> Measurement:
        """Out of JSON."""
        return cls(**{**entries, "shape": Shape(**entries["shape"])})


class Found:
    """Measurements by part, method and shape."""

    def __init__(self, rows: Sequence[Measurement]) -> None:
        self.rows = list(rows)
        self._by_key = {row.key: row for row in rows}

    def get(self, part: str, method: str, shape: Shape) -> Measurement | None:
        """The measurement, if it was made."""
        return self._by_key.get((part, method, shape))

    def ok(self, part: str, method: str, shape: Shape) -> Measurement | None:
        """The measurement, if it went well."""
        row = self.get(part, method, shape)
        return row if row is not None and row.ok else None

    def of(self, part: str, method: str | None = None) -> list[Measurement]:
        """All of a part, or of a method in it."""
        return [row for row in self.rows if row.part == part and method in (None, row.method)]
