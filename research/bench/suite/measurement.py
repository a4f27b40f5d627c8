"""The measurements of the suite, and their index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from research.bench.process import OK, JobOutcome
from research.bench.suite.scales import PoolShape


@dataclass(frozen=True)
class SuiteMeasurement:
    """The measurement of a method at a shape.

    Attributes
    ----------
    part, method : str
        The part of the suite and the label of the method.
    shape : PoolShape
        The size of the pool and the batch.
    status, note : str
        "ok", or why there are no figures; the note says more.
    seconds, peak_bytes : float, int
        Time and memory, if measured.
    limit : float or None
        The seconds after which it was killed, if it was.
    facts : dict
        Further figures, such as passes and the objective, depending on the part.
    """

    part: str
    method: str
    shape: PoolShape
    status: str
    note: str = ""
    seconds: float | None = None
    peak_bytes: int | None = None
    limit: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, part: str, method: str, shape: PoolShape, outcome: JobOutcome) -> SuiteMeasurement:
        """Return the measurement that records the outcome of a job."""
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
    def key(self) -> tuple[str, str, PoolShape]:
        """The identity of the measurement."""
        return self.part, self.method, self.shape

    @property
    def ok(self) -> bool:
        """Whether it has figures."""
        return self.status == OK

    def fact(self, name: str) -> Any:
        """Return a fact by name, or None."""
        return self.facts.get(name)

    def as_dict(self) -> dict[str, Any]:
        """Return the measurement in a form that JSON can represent."""
        return asdict(self)

    @classmethod
    def from_dict(cls, entries: dict[str, Any]) -> SuiteMeasurement:
        """Restore what `as_dict` returned."""
        return cls(**{**entries, "shape": PoolShape(**entries["shape"])})


class MeasurementIndex:
    """Measurements by part, method and shape."""

    def __init__(self, rows: Sequence[SuiteMeasurement]) -> None:
        self.rows = list(rows)
        self._by_key = {row.key: row for row in rows}

    def get(self, part: str, method: str, shape: PoolShape) -> SuiteMeasurement | None:
        """Return the measurement, or None if it was not made."""
        return self._by_key.get((part, method, shape))

    def ok(self, part: str, method: str, shape: PoolShape) -> SuiteMeasurement | None:
        """Return the measurement if it succeeded, else None."""
        row = self.get(part, method, shape)
        return row if row is not None and row.ok else None

    def of(self, part: str, method: str | None = None) -> list[SuiteMeasurement]:
        """Return all measurements of a part, or of a method in it."""
        return [row for row in self.rows if row.part == part and method in (None, row.method)]
