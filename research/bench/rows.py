"""The rows of a benchmark, and what is not worth trying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from research.bench.process import MEMORY, NOT_TRIED, OVER, Outcome

OURS = "sabal"
MEGABYTE = 1e6


@dataclass(frozen=True)
class Row:
    """One selection: who did which job at which size, and how it went.

    job: the name of Sabal's strategy. tool: "sabal" or a rival. method: as the tool calls it.
    status: "ok", or why there are no (or not quite the right) figures; `note` says more.
    limit: the seconds that it was killed after, if it was.
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
        """The row as JSON has it."""
        return asdict(self)


def beaten_before(rows: Sequence[Row], tool: str, method: str, n: int, b: int) -> Outcome | None:
    """What to record without trying: the method went over a limit at no larger n and b before."""
    for row in rows:
        same = row.tool == tool and row.method == method
        if same and row.status in (OVER, MEMORY) and row.n <= n and row.b <= b:
            return Outcome(NOT_TRIED, f"not tried: {row.status} at n={row.n}, b={row.b}")
    return None


@dataclass(frozen=True)
class Comparison:
    """Ours beside a rival on the same job at the same size; no rival where nobody does it."""

    ours: Row
    peer: Row | None

    @property
    def time_ratio(self) -> float | None:
        """How many times as long the rival takes."""
        if self.peer is None or self.peer.seconds is None or not self.ours.seconds:
            return None
        return self.peer.seconds / self.ours.seconds

    @property
    def memory_ratio(self) -> float | None:
        """How many times as much memory the rival adds; less than a megabyte counts as one."""
        if self.peer is None or self.peer.peak_bytes is None or self.ours.peak_bytes is None:
            return None
        return max(self.peer.peak_bytes, MEGABYTE) / max(self.ours.peak_bytes, MEGABYTE)


def comparisons(rows: Sequence[Row]) -> list[Comparison]:
    """Every rival's row beside ours, job by job, then by size."""
    result = []
    ours = [row for row in rows if row.tool == OURS]
    jobs = list(dict.fromkeys(row.job for row in ours))
    for own in sorted(ours, key=lambda row: (jobs.index(row.job), row.n, row.b)):
        size = (own.job, own.n, own.b)
        peers = [r for r in rows if r.tool != OURS and (r.job, r.n, r.b) == size]
        result += [Comparison(own, peer) for peer in peers] or [Comparison(own, None)]
    return result
