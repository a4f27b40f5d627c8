"""The verdict of an experiment: whether active learning helps on its data set."""

from __future__ import annotations

from collections.abc import Sequence

from sabal.errors import counted
from sabal.simulate.curves import BASELINE, Summary

MIN_GAIN = 1.0  # points of area worth the effort; an interval that ends below shows no gain
MAX_ACCURACY = 0.99  # a final accuracy of random that leaves nothing to gain


def verdict(summaries: Sequence[Summary]) -> str:
    """Say in a sentence or two whether active learning helps, and claim no more than was seen."""
    compared = [s for s in summaries if s.difference is not None]
    if not compared:
        return "No verdict: run `random` beside the others, with the same seeds."
    best = max(compared, key=lambda s: s.difference or 0.0)
    seeds = counted(best.seeds, "seed")
    if best.low is None:
        return (
            f"No verdict from one seed: {best.strategy} is {best.difference:+.2f} points of area "
            "from random. Run at least 3 seeds."
        )
    figures = f"95 % interval {best.low:.2f} to {best.high:.2f}, {seeds}"
    if best.better:
        saved = ""
        if best.labels_to_match is not None:
            saved = (
                f" It reaches random's final accuracy with {best.labels_to_match:.0f} labels "
                f"instead of {best.labels:.0f}."
            )
        return (
            f"Active learning helps here: {best.strategy} beats random by {best.difference:.2f} "
            f"points of area ({figures}).{saved}"
        )
    if all(s.worse for s in compared):
        return f"Active learning hurts here: every strategy is worse than random ({figures})."
    among = f" among {len(compared)} strategies" if len(compared) > 1 else ""
    if (best.high or 0.0) > MIN_GAIN:
        return (
            f"It cannot be told yet whether active learning helps here: the best, {best.strategy}, "
            f"is {best.difference:+.2f} points of area from random ({figures}), which may be "
            f"chance{among}. Run more seeds."
        )
    found = (
        f"Active learning is not helping here: the best, {best.strategy}, is "
        f"{best.difference:+.2f} points of area from random ({figures})."
    )
    by_chance = next(s for s in summaries if s.strategy == BASELINE)
    if by_chance.final_accuracy >= MAX_ACCURACY:
        return (
            f"{found} Random ends at {by_chance.final_accuracy:.1%}: there is next to nothing to "
            "gain. Fewer labels, or a harder task, would tell."
        )
    return f"{found} Label at random."


def label_at_random(summaries: Sequence[Summary]) -> bool:
    """Return whether it was shown that nothing is gained over drawing at random.

    Not where random is right nearly always: a harder task could tell more.
    """
    compared = [s for s in summaries if s.difference is not None]
    by_chance = next((s for s in summaries if s.strategy == BASELINE), None)
    if not compared or by_chance is None or by_chance.final_accuracy >= MAX_ACCURACY:
        return False
    best = max(compared, key=lambda s: s.difference or 0.0)
    return not best.better and best.high is not None and best.high <= MIN_GAIN
