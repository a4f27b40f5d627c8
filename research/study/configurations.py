"""The configurations of the study: baselines, the paper's method, `sabal` and candidates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from research.reproduce.preset import both_ways, printed
from research.study.definitions import Configuration, OracleConfiguration
from sabal.strategies import coverage

DEFAULT = "sabal"
"""The configuration that all others are compared with."""

CHANCE = "random"

RIVALS = ("uncertainty-herding", "max-herding", "prob-cover", "drop-query")
"""Recent methods that are nearest to `sabal`."""

SMALL_BATCH = 40
"""In larger batches, a ranking by mutual information repeats nearly the same item."""

_PAPER = both_ways(printed(1e-8, 0.1), printed(1e-8, 1e-4))
"""The settings printed in the paper for LeNet-5 on MNIST."""


def _baseline(name: str, **more: Any) -> Configuration:
    return Configuration(name=name, strategy=name, role="baseline", **more)


BASELINES = (
    *map(_baseline, (CHANCE, "margin", "entropy", "badge", "kcenter", "typiclust")),
    *map(_baseline, RIVALS),
    _baseline("bald", max_batch=SMALL_BATCH),
    _baseline("batchbald", max_batch=10, options={"samples": 1_000}),
    _baseline("bayesian-coreset"),
    _baseline("bait", cheap_only=True),
)

PAPER = tuple(
    Configuration(
        name=name,
        strategy=str(options.get("strategy", name)),
        role="paper",
        options={option: value for option, value in options.items() if option != "strategy"},
        # The rule of the appendix was called "paper" when these runs were made. In literal units
        # all items are candidates.
        recorded_options={"candidates": None}
        | ({"prox": "paper"} if options.get("prox") == "appendix" else {}),
    )
    for name, options in _PAPER.items()
)
"""Both solvers with the printed settings, corrected and as printed."""

_FORMER: dict[str, Any] = {
    "uncertainty": "variance",
    "alpha": 1.0,
    "beta": 1.0,
    "candidates": None,
}

FREE = tuple(
    Configuration(
        name=name,
        strategy=strategy,
        role="paper",
        options=_FORMER,
        # This uncertainty was the default when these runs were made.
        recorded_options={"uncertainty": None},
    )
    for name, strategy in (("greedy-free", "sabal-greedy"), ("iht-free", "sabal-iht"))
)
"""Both solvers in scale-free units with the variance of the atoms, their former defaults."""

DEFAULTS = tuple(
    Configuration(
        name=f"{solver}-default",
        strategy=f"sabal-{solver}",
        role="paper",
        recorded_options={"uncertainty": "margin", "candidates": candidates},
    )
    for solver, candidates in (("greedy", None), ("iht", 3))
)
"""Both solvers without options."""


def _paper_candidate(
    solver: str,
    alpha: float,
    candidates: int | None = None,
    *,
    beta: float = 1.0,
    uncertainty: str = "variance",
    **more: Any,
) -> Configuration:
    """Return a candidate for the defaults of a solver, all in scale-free units."""
    options = {"uncertainty": uncertainty, "alpha": alpha, "beta": beta, **more}
    options["candidates"] = candidates
    name = f"a{alpha:g}" if uncertainty == "variance" else f"{uncertainty}-a{alpha:g}"
    if more:
        name = f"{more['score']}-{name}"
    if candidates is not None:
        name = f"{name}-c{candidates}"
    if beta != 1.0:
        name = f"{name}-beta{beta:g}"
    return Configuration(
        name=f"{solver}-{name}",
        strategy=f"sabal-{solver}",
        role="candidate",
        options=options,
        # This uncertainty was the default when these runs were made.
        recorded_options={"uncertainty": None} if uncertainty == "variance" else {},
    )


def _paper_candidates(solver: str) -> Iterator[Configuration]:
    for multiple in (None, 10, 3):
        for alpha in (1.0, 3.0, 10.0, 30.0):
            # alpha = 1 with all candidates is `greedy-free` or `iht-free`.
            if alpha > 1.0 or multiple is not None:
                yield _paper_candidate(solver, alpha, multiple)
        for alpha in (0.3, 1.0, 3.0, 10.0):
            if alpha >= 1.0 or multiple is None:
                yield _paper_candidate(solver, alpha, multiple, uncertainty="margin")
    for beta in (0.1, 3.0):
        yield _paper_candidate(solver, 3.0, 10, beta=beta)
    for beta in (0.3, 3.0):
        yield _paper_candidate(solver, 1.0, beta=beta, uncertainty="margin")


_PRINTED: dict[str, Any] = {"score": "first-order", "refresh": 1}

PAPER_CANDIDATES = (
    *_paper_candidates("greedy"),
    *_paper_candidates("iht"),
    *(
        _paper_candidate("greedy", alpha, multiple, uncertainty=uncertainty, **_PRINTED)
        for uncertainty, alpha, multiple in (
            ("variance", 1.0, None),
            ("variance", 1.0, 10),
            ("variance", 1.0, 3),
            ("variance", 0.0, 10),
            ("margin", 1.0, None),
            ("margin", 1.0, 10),
            ("margin", 3.0, 10),
        )
    ),
)
"""Candidates for the defaults of `sabal-greedy` and `sabal-iht`."""

SABAL = Configuration(
    name=DEFAULT,
    strategy="sabal",
    role="sabal",
    # The rule for this share is part of what determines a result.
    recorded_options={"share": "b/(b+m)", "radius": coverage.RADIUS},
)


COVERAGE_STRATEGY = "sabal"
KERNEL_STRATEGY = "sabal-kernel"
"""The strategy that matches the mean of kernel or curvature atoms."""


_FORMER_METRIC: dict[str, Any] = {"metric": "euclidean", "radius": 1.0}


def _coverage(name: str, **options: Any) -> Configuration:
    """Return a candidate that covers the pool item by item, with all items as candidates."""
    return Configuration(
        name=name,
        strategy=COVERAGE_STRATEGY,
        role="candidate",
        options={**_FORMER_METRIC, "share": 1.0, **options},
        # These runs were recorded with the first option, which the strategy implies, when all items
        # were candidates, and there was one metric and one default radius.
        recorded_options={
            "atoms": "coverage",
            "share": None,
            "metric": None,
            "radius": options.get("radius"),
        },
    )


def _mean(name: str, weighted: bool = False, **options: Any) -> Configuration:
    """Return a candidate that matches the mean of atoms: kernel atoms unless it says otherwise.

    All options that define it are written out, since defaults may change.
    """
    whole = {"atoms": "kernel", "alpha": 1.0, "beta": 1.0, "candidates": None, **options}
    return Configuration(
        name=name,
        strategy=KERNEL_STRATEGY,
        role="candidate",
        options=whole,
        weighted=weighted,
        recorded_strategy="sabal",
    )


COVERAGES = (
    Configuration(
        name="coverage-all",
        strategy=COVERAGE_STRATEGY,
        role="candidate",
        options={**_FORMER_METRIC, "share": 1.0},
        recorded_options={"share": None, "metric": None, "radius": None},
    ),
    Configuration(
        name="coverage-euclidean",
        strategy=COVERAGE_STRATEGY,
        role="candidate",
        options=_FORMER_METRIC,
        recorded_options={"share": "b/(b+m)", "metric": None, "radius": None},
    ),
    *(_coverage(f"coverage-r{radius:g}", radius=radius) for radius in (0.5, 0.7, 1.4, 2.0)),
    _coverage("coverage-entropy", uncertainty="entropy"),
    Configuration(
        name="coverage-weighted",
        strategy=COVERAGE_STRATEGY,
        role="candidate",
        options={**_FORMER_METRIC, "share": 1.0},
        recorded_options={"share": None, "metric": None, "radius": None},
        weighted=True,
    ),
)
"""Candidates around the default, which covers the pool item by item."""

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
    # The variance of the gradient under the temperature-scaled label distribution.
    _mean("kernel-variance", uncertainty="variance"),
    _mean("kernel-weighted", weighted=True),
)

ORACLE = OracleConfiguration(name="oracle", strategy="oracle", role="oracle")

CONFIGURATIONS = (
    *BASELINES,
    SABAL,
    *PAPER,
    *FREE,
    *DEFAULTS,
    *PAPER_CANDIDATES,
    *CANDIDATES,
    ORACLE,
)
