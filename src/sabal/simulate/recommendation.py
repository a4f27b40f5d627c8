"""The strategy to use on the data of an experiment, and the evidence for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sabal.errors import counted
from sabal.simulate.curves import BASELINE, Point, areas_of, interval, summarise
from sabal.simulate.verdict import label_at_random

DEFAULT = "sabal"
MIN_SEEDS = 5  # with fewer paired seeds, chance decides which strategy looks best


@dataclass(frozen=True)
class Recommendation:
    """A strategy and the reason for it."""

    strategy: str
    reason: str

    @property
    def text(self) -> str:
        """The recommendation as a sentence."""
        return f"Use {self.strategy} on these data: {self.reason}."


def recommend(points: Sequence[Point]) -> Recommendation:
    """Return the strategy to use on these data.

    It is the default, unless another has a significantly larger area under the learning curve
    (paired by seed, Student's t, allowing for the number of strategies), or nothing is gained over
    drawing at random.

    Parameters
    ----------
    points : sequence of Point
        The rounds of all runs.

    Returns
    -------
    Recommendation
        With the number of paired seeds in its reason.
    """
    areas = areas_of(points)
    seeds = sorted(set.intersection(*(set(found) for found in areas.values())))
    if len(seeds) < MIN_SEEDS:
        return Recommendation(
            DEFAULT,
            f"the default, since {counted(len(seeds), 'paired seed')} cannot tell strategies "
            f"apart; run at least {MIN_SEEDS}",
        )
    if label_at_random(summarise(points)):
        return Recommendation(
            BASELINE, f"nothing was gained by choosing, in {counted(len(seeds), 'paired seed')}"
        )
    values = {name: np.array([found[seed] for seed in seeds]) for name, found in areas.items()}
    return _by_area(values)


def _by_area(values: dict[str, np.ndarray]) -> Recommendation:
    """Return what is ahead of the default, or of random where the default was not run."""
    missing = "" if DEFAULT in values else f"; the default, {DEFAULT}, was not run"
    reference = DEFAULT if DEFAULT in values else BASELINE
    if reference not in values:
        return Recommendation(DEFAULT, f"the default, which was not run; add {DEFAULT} to compare")
    best = max(values, key=lambda name: (values[name].mean(), name == reference))
    if best == DEFAULT:
        return Recommendation(DEFAULT, _reason_for_default(values))
    low, high = _gap(values, best, reference)
    gap = values[best].mean() - values[reference].mean()
    seeds = len(values[best])
    figures = f"{gap:+.2f} points of area ({low:+.2f} to {high:+.2f}, {seeds} paired seeds)"
    if low > 0:
        return Recommendation(best, f"it is ahead of {reference} by {figures}{missing}")
    return Recommendation(
        DEFAULT,
        f"the default, since no difference was found: {best} is {figures} from {reference}",
    )


def _reason_for_default(values: dict[str, np.ndarray]) -> str:
    """Say which strategies the default is ahead of, and which not."""
    others = sorted((name for name in values if name != DEFAULT), key=lambda n: -values[n].mean())
    level = [name for name in others if _gap(values, DEFAULT, name)[0] <= 0]
    seeds = counted(len(values[DEFAULT]), "paired seed")
    if not others:
        return f"nothing else was run ({seeds})"
    if not level:
        return f"it is ahead of {', '.join(others)} ({seeds})"
    return f"it has the largest area; no difference was found to {', '.join(level)} ({seeds})"


def _gap(values: dict[str, np.ndarray], one: str, other: str) -> tuple[float, float]:
    """Return the interval of a paired difference that allows for all comparisons with one."""
    comparisons = max(1, len(values) - 1)
    paired = (values[one] - values[other]).tolist()
    _, low, high = interval(paired, 1.0 - 0.05 / comparisons)
    return low or 0.0, high or 0.0
