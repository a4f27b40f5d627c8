"""Where the advice when to stop would have ended the runs of an experiment, and at what cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sabal.loop.stopping import first_stop
from sabal.simulate.curves import Point, curves_of


@dataclass(frozen=True)
class EarlyStop:
    """The runs of one strategy that the advice would have stopped before their end.

    `labels`, `labels_saved` and `points_lost` (of test accuracy, in percent, against the end of the
    same run) are means over the `stopped` runs; None if there are none.
    """

    strategy: str
    runs: int
    stopped: int
    labels: float | None
    labels_saved: float | None
    points_lost: float | None

    @property
    def text(self) -> str:
        """The result as a sentence."""
        if self.labels is None:
            return f"The advice when to stop would have ended no run of {self.strategy} early."
        return (
            f"The advice when to stop would have ended {self.stopped} of {self.runs} runs of "
            f"{self.strategy} early, at {self.labels:.0f} labels on average: "
            f"{self.labels_saved:.0f} labels saved, {self.points_lost:.1f} points of accuracy lost."
        )


def early_stop(points: Sequence[Point], strategy: str) -> EarlyStop | None:
    """Return where the runs of a strategy would have been stopped; None if there are no runs."""
    runs = curves_of(points).get(strategy, {})
    if not runs:
        return None
    found = []
    for curve in runs.values():
        at = first_stop([p.labels for p in curve], [p.accuracy for p in curve])
        if at is not None:
            lost = 100.0 * (curve[-1].accuracy - curve[at].accuracy)
            found.append((curve[at].labels, curve[-1].labels - curve[at].labels, lost))
    if not found:
        return EarlyStop(strategy, len(runs), 0, None, None, None)
    labels, saved, lost = (float(mean) for mean in np.mean(found, axis=0))
    return EarlyStop(strategy, len(runs), len(found), labels, saved, lost)
