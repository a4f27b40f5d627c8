"""The measurements of the strategies, and their comparison with other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from research.bench.process import MEMORY, NOT_TRIED, OVER, JobOutcome

OURS = "sabal"
MEGABYTE = 1e6


@dataclass(frozen=True)
class StrategyMeasurement:
    """One measured selection.

    Attributes
    ----------
    job : str
        Name of Sabal's strategy.
    tool, method : str
        "sabal" or another library, and its name for the method.
    n, b : int
        Size of the pool and of the batch.
    status, note : str
        "ok", or why there are no complete figures; the note says more.
    seconds, peak_bytes : float, int
        Time and memory, if measured.
    limit : float or None
        The seconds after which it was killed, if it was.
    versions : dict
        Versions of the libraries.
    """

    job: str
    tool: str
    method: str
    n: int
    b: int
    status: str
    note: str = ""
    seconds: float | None = None
    peak_bytes: int | None = None
    limit: float | None = None
    versions: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the measurement in a form that JSON can represent."""
        return asdict(self)


def beaten_before(
    rows: Sequence[StrategyMeasurement], tool: str, method: str, n: int, b: int
) -> JobOutcome | None:
    """Return the outcome to record without a run: a limit was exceeded at a smaller size."""
    for row in rows:
        same = row.tool == tool and row.method == method
        if same and row.status in (OVER, MEMORY) and row.n <= n and row.b <= b:
            return JobOutcome(NOT_TRIED, f"not tried: {row.status} at n={row.n}, b={row.b}")
    return None


@dataclass(frozen=True)
class RivalComparison:
    """Sabal and another library on the same job and size; no peer if no library does it."""

    ours: StrategyMeasurement
    peer: StrategyMeasurement | None

    @property
    def time_ratio(self) -> float | None:
        """The time of the other library in multiples of ours."""
        if self.peer is None or self.peer.seconds is None or not self.ours.seconds:
            return None
        return self.peer.seconds / self.ours.seconds

    @property
    def memory_ratio(self) -> float | None:
        """Its memory in multiples of ours; less than a megabyte counts as one."""
        if self.peer is None or self.peer.peak_bytes is None or self.ours.peak_bytes is None:
            return None
        return max(self.peer.peak_bytes, MEGABYTE) / max(self.ours.peak_bytes, MEGABYTE)


def comparisons(rows: Sequence[StrategyMeasurement]) -> list[RivalComparison]:
    """Return the comparison with every other library, by job, then by size."""
    result = []
    ours = [row for row in rows if row.tool == OURS]
    jobs = list(dict.fromkeys(row.job for row in ours))
    for own in sorted(ours, key=lambda row: (jobs.index(row.job), row.n, row.b)):
        size = (own.job, own.n, own.b)
        peers = [r for r in rows if r.tool != OURS and (r.job, r.n, r.b) == size]
        result += [RivalComparison(own, peer) for peer in peers] or [RivalComparison(own, None)]
    return result
