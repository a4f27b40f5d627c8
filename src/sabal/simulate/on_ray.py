"""Runs spread over a Ray cluster; the run folder must be where all its machines can write."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sabal.pools.ray.tasks import run_on_ray
from sabal.simulate.curves import Point
from sabal.simulate.parallel import Run, once


def spread_on_ray(
    runs: Sequence[Run],
    jobs: int | None,
    on_round: Callable[[Point], None],
    address: str | None = None,
) -> list[Point]:
    """The points of all runs, of which `jobs` go on at a time (None: one for every CPU)."""
    found = run_on_ray(runs, once(on_round), jobs=jobs, address=address)
    return [point for points in found for point in points]
