"""The configurations of the study as data: what `sabal` has to beat, and what it could become."""

from __future__ import annotations

from typing import Any

from research.reproduce.preset import both_ways, printed
from research.study.definitions import Configuration

DEFAULT = "sabal"
"""What the others are compared with."""

CHANCE = "random"

SMALL_BATCH = 40
"""Beyond, the top of a ranking by mutual information is many times the same item."""

_PAPER = both_ways(printed(1e-8, 0.1), printed(1e-8, 1e-4))
"""The settings that the paper prints for LeNet-5 on MNIST."""


def _baseline(name: str, **more: Any) -> Configuration:
    return Configuration(name=name, strategy=name, role="baseline", **more)


BASELINES = (
    *map(_baseline, (CHANCE, "margin", "entropy", "badge", "kcenter", "typiclust")),
    _baseline("bald", most_batch=SMALL_BATCH),
    _baseline("batchbald", most_batch=10, options={"samples": 1_000}),
    _baseline("bayesian-coreset"),
    _baseline("bait", cheap_only=True),
)

PAPER = tuple(
    Configuration(
        name=name,
        strategy=str(options.get("strategy", name)),
        role="paper",
        options={option: value for option, value in options.items() if option != "strategy"},
    )
    for name, options in _PAPER.items()
)
"""Either solver with the printed settings, corrected and as printed."""

FREE = tuple(
    Configuration(name=name, strategy=strategy, role="paper")
    for name, strategy in (("greedy-free", "sabal-greedy"), ("iht-free", "sabal-iht"))
)
"""The same in units that mean the same everywhere, as these strategies are by default."""

SABAL = Configuration(name=DEFAULT, strategy="sabal", role="sabal")


def _candidate(name: str, weighted: bool = False, **options: Any) -> Configuration:
    """A candidate with every option that makes it what it is written out: defaults may change."""
    return Configuration(
        name=name, strategy="sabal", role="candidate", options=options, weighted=weighted
    )


def _mean(name: str, weighted: bool = False, **options: Any) -> Configuration:
    """One that matches the mean of atoms: kernel atoms, unless it says otherwise."""
    whole = {"atoms": "kernel", "alpha": 1.0, "beta": 1.0, "candidates": None, **options}
    return _candidate(name, weighted, **whole)


COVERAGES = (
    *(
        _candidate(f"coverage-r{radius:g}", atoms="coverage", radius=radius)
        for radius in (0.5, 0.7, 1.4, 2.0)
    ),
    _candidate("coverage-entropy", atoms="coverage", uncertainty="entropy"),
    _candidate("coverage-weighted", weighted=True),
)
"""Around the default, which covers the pool item by item."""

CANDIDATES = (
    *COVERAGES,
    *(_mean(f"kernel-a{alpha:g}", alpha=alpha) for alpha in (0.3, 1.0, 3.0, 10.0)),
    *(_mean(f"kernel-c{multiple}-a1", candidates=multiple) for multiple in (10, 3)),
    *(_mean(f"kernel-beta{beta:g}", beta=beta) for beta in (0.3, 3.0)),
    *(
        _mean(f"curvature-a{alpha:g}", atoms="curvature", uncertainty="margin", alpha=alpha)
        for alpha in (1.0, 10.0)
    ),
    _mean("kernel-entropy", uncertainty="entropy"),
    # The gradient's variance under the label distribution that a temperature makes.
    _mean("kernel-variance", uncertainty="variance"),
    _mean("kernel-weighted", weighted=True),
)

CONFIGURATIONS = (*BASELINES, SABAL, *PAPER, *FREE, *CANDIDATES)
