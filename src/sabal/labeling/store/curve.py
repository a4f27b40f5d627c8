"""The learning curve on the check labels, and what it says about more labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import sqlalchemy as sa

from sabal.labeling.store.records import Advice, CurvePoint
from sabal.labeling.store.rounds import all_metrics, all_trainings

NORMAL_95 = 1.959963984540054
SPAN = 3
"""The last point is compared with the one so many trainings before."""
LEAST_CHECKS = 10
NEGLIGIBLE = 0.02
"""A gain in accuracy that is not worth the labels of `SPAN` batches."""


def wilson(correct: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share by Wilson's score; all of [0, 1] when nothing was counted."""
    if count == 0:
        return 0.0, 1.0
    share, z2 = correct / count, NORMAL_95**2
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    spread = math.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    half = NORMAL_95 * spread / (1 + z2 / count)
    return max(0.0, middle - half), min(1.0, middle + half)


def curve(connection: sa.Connection) -> list[CurvePoint]:
    """A point for every training that was measured."""
    metrics = all_metrics(connection)
    points = []
    for training in all_trainings(connection):
        measured = metrics.get(training.id, {})
        if "accuracy" in measured:
            accuracy, checks = measured["accuracy"], int(measured["checks"])
            low, high = wilson(accuracy * checks, checks)
            points.append(CurvePoint(training.round, training.labels, accuracy, low, high, checks))
    return points


def difference(before: CurvePoint, after: CurvePoint) -> tuple[float, float]:
    """The 95 % interval of the gain between two points (Newcombe's, out of their own intervals).

    It takes the two for independent. They share check items, so the truth is rather narrower.
    """
    gain = after.accuracy - before.accuracy
    down = math.hypot(after.accuracy - after.low, before.high - before.accuracy)
    up = math.hypot(after.high - after.accuracy, before.accuracy - before.low)
    return gain - down, gain + up


def advice(points: Sequence[CurvePoint]) -> Advice:
    """Whether more labels still help, and no more than the interval allows to say."""
    if len(points) <= SPAN or min(points[-1].checks, points[-1 - SPAN].checks) < LEAST_CHECKS:
        return Advice(
            "too-early",
            "Too early to say whether more labels help: there are few trainings or few check "
            "labels to measure them on.",
        )
    before, after = points[-1 - SPAN], points[-1]
    low, high = difference(before, after)
    labels = after.labels - before.labels
    gain = f"{100 * (after.accuracy - before.accuracy):+.1f} points of accuracy"
    interval = f"95 % interval {100 * low:+.1f} to {100 * high:+.1f}, on {after.checks} checks"
    said = f"The last {labels} labels brought {gain} ({interval})."
    if low > 0:
        return Advice("helping", f"{said} More labels still help.")
    if high < NEGLIGIBLE:
        return Advice(
            "not-helping",
            f"{said} More labels of this kind hardly help: as many again would "
            f"bring less than {100 * NEGLIGIBLE:.0f} points.",
        )
    return Advice(
        "unclear", f"{said} That may be chance: whether more labels help cannot be told yet."
    )
