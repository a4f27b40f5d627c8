"""Presets: one data set of one table of the paper, with the decisions the paper leaves open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Options = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class MeanAndStd:
    """A mean and a standard deviation over seeds."""

    mean: float
    std: float


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One data set of one table.

    Parameters
    ----------
    dataset, title : str
        Name of the data set, and its name in the paper.
    model, recipe, initial, batch, rounds, seeds, strategies, options, validation, pool
        As in `Experiment`; every setting that the paper gives is written out.
    paper : dict of str to MeanAndStd
        The printed figures by strategy.
    source : str
        Where they are printed.
    laptop : dict
        Changes for small machines by field; a dot leads into a dictionary.
    notes : tuple of str
        What the paper leaves open and how it was decided.
    """

    dataset: str
    title: str
    model: str
    recipe: dict[str, Any]
    initial: int
    batch: int
    rounds: int
    seeds: int
    strategies: tuple[str, ...]
    options: Options
    paper: dict[str, MeanAndStd]
    source: str
    validation: int = 0
    pool: int | None = None
    laptop: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


CORRECTED = (
    "alpha and beta are those printed, in the paper's units (scale='literal'); the solvers are the "
    "corrected ones (optimal-step greedy, exact proximal step), not the printed lines"
)
VALIDATION = (
    "temperature scaling is fitted on 1,000 items held out of the training set; the paper has a "
    "validation set and does not give its size"
)
POSTERIOR = (
    "the schedule is a cosine and the loss is summed over a batch, after Pinsler et al. 2019, "
    "whose settings the paper says it keeps; it names neither"
)
SAMPLES = (
    "one number of posterior samples serves projections, predictions and BALD alike; the paper "
    "predicts with 100"
)
BATCHBALD = (
    "batchbald draws 100 joint outcomes and goes over to BALD order once the batch holds 95 % of "
    "the log K nats that K samples can tell (with 100 synthetic samples, after 50 to 320 items)"
)
FULL_BATCH = "bayesian-coreset goes on until it has a full batch, as in the paper"


AS_PRINTED = (
    "greedy-as-printed and iht-as-printed follow the paper's printed lines (first-order score with "
    "a pass per pick; the appendix's proximal step) at the same alpha and beta; the figures of the "
    "paper stand beside the corrected ones"
)


def printed(alpha: float, beta: float) -> dict[str, Any]:
    """Return options of `sabal-greedy` and `sabal-iht` in the units of the paper."""
    return {"alpha": alpha, "beta": beta, "scale": "literal"}


CORRECTED_SCORE: dict[str, Any] = {"score": "optimal-step", "refresh": "auto"}
"""The corrected score in literal units, where the algorithm as printed is the default."""


def both_ways(greedy: dict[str, Any], iht: dict[str, Any]) -> Options:
    """Return the options of both solvers, corrected and as printed."""
    return {
        "sabal-greedy": {**greedy, **CORRECTED_SCORE},
        "sabal-iht": iht,
        "greedy-as-printed": {
            "strategy": "sabal-greedy",
            **greedy,
            "score": "first-order",
            "refresh": 1,
        },
        "iht-as-printed": {"strategy": "sabal-iht", **iht, "prox": "appendix"},
    }
