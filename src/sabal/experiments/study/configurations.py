"""The configurations of the study as data: what `sabal` has to beat, and what it could become."""

from __future__ import annotations

from typing import Any

from sabal.experiments.reproduce_preset import both_ways, printed
from sabal.experiments.study.definitions import Configuration

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

SABAL = Configuration(name=DEFAULT, strategy="sabal", role="sabal")


def _candidate(name: str, weighted: bool = False, **options: Any) -> Configuration:
    """Every option that the study is about is written out: the defaults may change.

    Where it says what `sabal` does by default, the two are one run. Atoms are kernel atoms unless
    it says otherwise: all learners here give features.
    """
    whole = {"alpha": 1.0, "beta": 1.0, "candidates": None, **options}
    return Configuration(
        name=name, strategy="sabal", role="candidate", options=whole, weighted=weighted
    )


_RESTRICTED: tuple[tuple[str, int | None], ...] = (("", None), ("-c10", 10), ("-c3", 3))

CANDIDATES = (
    *(
        _candidate(f"kernel{suffix}-a{alpha:g}", candidates=candidates, alpha=alpha)
        for suffix, candidates in _RESTRICTED
        for alpha in (0.3, 1.0, 3.0, 10.0)
    ),
    *(
        _candidate(f"kernel{suffix}-beta{beta:g}", candidates=candidates, beta=beta)
        for suffix, candidates in _RESTRICTED
        for beta in (0.3, 3.0)
    ),
    *(
        _candidate(f"curvature-a{alpha:g}", atoms="curvature", uncertainty="margin", alpha=alpha)
        for alpha in (1.0, 10.0)
    ),
    *(
        _candidate(f"kernel{suffix}-entropy", candidates=candidates, uncertainty="entropy")
        for suffix, candidates in _RESTRICTED[:2]
    ),
    # The gradient's variance under the label distribution that a temperature makes.
    _candidate("kernel-variance", uncertainty="variance"),
    *(_candidate(f"kernel-w{width}", width=width) for width in (256, 4096)),
    *(
        _candidate(f"kernel{suffix}-weighted", weighted=True, candidates=candidates)
        for suffix, candidates in _RESTRICTED[:2]
    ),
)

CONFIGURATIONS = (*BASELINES, SABAL, *PAPER, *CANDIDATES)
