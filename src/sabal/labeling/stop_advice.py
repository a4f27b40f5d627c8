"""Whether more labels are worth it, in words."""

from __future__ import annotations

from sabal.errors import counted
from sabal.labeling.store.records import Advice, Assessment
from sabal.labeling.store.store import Store
from sabal.loop.stopping import (
    HELPING,
    MIN_POINTS,
    NOT_HELPING,
    TOO_EARLY,
    UNCLEAR,
    WORTHWHILE,
    project,
)

MORE = 200  # the number of labels whose gain is projected
MIN_CHECKS = 20  # items drawn at random without which nobody is told to stop
MEANINGS = {
    HELPING: "More labels still help.",
    UNCLEAR: "Whether they are worth it is not clear yet: label another batch, and look again.",
    NOT_HELPING: f"You can stop: that is hardly more than {100 * WORTHWHILE:.0f} point, if at all.",
}
TOO_EARLY_ADVICE = Advice(
    TOO_EARLY,
    f"Too early to say what more labels would bring: that takes {MIN_POINTS} trainings, and items "
    "to measure them on.",
)


def stop_advice(store: Store) -> Advice:
    """Return whether more labels still help, by the latest assessment of a project."""
    latest = store.latest_assessment()
    if latest is None:
        return TOO_EARLY_ADVICE
    left = store.status().items - latest[1].labels[-1]
    return advice_on(latest[1], max(1, min(MORE, left)))


def advice_on(found: Assessment, more: int = MORE) -> Advice:
    """Return what `more` labels would bring, in words."""
    if not found.items or len(found.labels) < MIN_POINTS:
        return TOO_EARLY_ADVICE
    accuracies = [right / found.items for right in found.right]
    checks = (found.wrong_checks, found.checks)
    expected = project(found.labels, accuracies, more, checks=checks)
    verdict = expected.verdict
    if verdict == NOT_HELPING and found.checks < MIN_CHECKS:
        # So few say too little about how large the error is.
        verdict = UNCLEAR
    summary = (
        f"{counted(more, 'more label')} would bring about {100 * expected.gain:+.1f} points of "
        f"accuracy ({100 * expected.low:.1f} to {100 * expected.high:.1f})."
    )
    return Advice(verdict, f"{summary} {MEANINGS[verdict]} {_basis(found)}")


def _basis(found: Assessment) -> str:
    chosen = found.items - found.checks
    basis = f"Measured at {len(found.labels)} numbers of labels on the same {found.items} items"
    if not chosen:
        return f"{basis}, drawn at random."
    return (
        f"{basis}: {found.checks} drawn at random, and {chosen} chosen ones by cross-validation, "
        "which are harder than the rest and tell only how the error falls."
    )
