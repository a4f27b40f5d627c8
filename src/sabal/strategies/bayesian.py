"""BALD and its stochastic form: how much a label would say about the model's parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.core.arrays import top_k
from sabal.core.checks import check_choice, check_number
from sabal.errors import InputError
from sabal.pools.outputs import Outputs
from sabal.predictions.uncertainty import entropy, margin, most_informative
from sabal.selection import Selection
from sabal.strategies.base import selection_of

NOTHING = 1e-12
"""Scores up to this size (nats, or probability) are rounding, and count as zero."""

SCORES = ("mutual-information", "entropy", "margin")


@dataclass(frozen=True)
class Bald:
    """The items whose labels would each say most about the parameters: I(y; theta | x).

    Each item is judged on its own, so near-copies of one informative item are all taken; see
    `BatchBald` for the joint information of a batch.
    """

    name: ClassVar[str] = "bald"
    needs: ClassVar[tuple[str, ...]] = ("log_probs",)
    paper: ClassVar[str] = "Houlsby et al. 2011, eq. 2"
    cost: ClassVar[str] = "O(n K C)"
    streams: ClassVar[bool] = True

    def select(self, outputs: Outputs, budget: int, rng: np.random.Generator) -> Selection:
        """Top b of the mutual information; of equal ones, the first in the pool."""
        items, information = most_informative(outputs.log_probs, budget, rank=lambda score: score)
        best = top_k(information, budget)
        warnings: tuple[str, ...] = ()
        if information.max() <= NOTHING:
            warnings = (f"{_why_zero(outputs)}: the batch is simply the first {budget} items",)
        return selection_of(
            self,
            outputs,
            items[best],
            information[best],
            evidence={"posterior_samples": int(outputs.log_probs.shape[1])},
            warnings=warnings,
        )


@dataclass(frozen=True, kw_only=True)
class PowerBald:
    """Draws b items without replacement, an item with probability proportional to score^power.

    The top b of `log score + Gumbel noise / power` is such a draw (the Gumbel-top-k trick): a
    batch as cheap as BALD's and less redundant. `scores` of the answer are the plain scores.

    power: large values approach the top b of the score, small ones a uniform draw.
    score: "mutual-information" (PowerBALD proper; needs log_probs), "entropy" or "margin".
    """

    name: ClassVar[str] = "power-bald"
    needs: ClassVar[tuple[str, ...]] = ("log_probs|probs",)
    paper: ClassVar[str] = "Kirsch et al. 2023, Stochastic Batch Acquisition"
    cost: ClassVar[str] = "O(n K C + n log n)"

    power: float = 1.0
    score: str = "mutual-information"

    def __post_init__(self) -> None:
        check_number(self.power, "power", above=0.0)
        check_choice(self.score, "score", SCORES)

    def select(self, outputs: Outputs, budget: int, rng: np.random.Generator) -> Selection:
        """Top b of the perturbed scores; items of score 0 come last, in random order."""
        # log s + g / power, multiplied by power where power < 1: the order is the same, and
        # neither a very small nor a very large power overflows.
        scale = max(self.power, 1.0)
        noise_N = rng.gumbel(size=outputs.size) / scale

        def perturbed(score_N: np.ndarray) -> np.ndarray:
            log_N = np.log(score_N, out=np.full(score_N.size, -np.inf), where=score_N > NOTHING)
            return noise_N + self.power / scale * log_N

        items, score = self._scores(outputs, budget, perturbed)
        score_N = np.zeros(outputs.size)
        score_N[items] = score
        key_N = perturbed(score_N)[items]
        chosen = items[np.lexsort((-noise_N[items], -key_N))[:budget]]
        filled = int(np.count_nonzero(score_N[chosen] <= NOTHING))

        warnings: tuple[str, ...] = ()
        if filled:
            reason = f"only {budget - filled} items have a score above 0"
            if filled == budget and self.score == "mutual-information":
                reason = _why_zero(outputs)
            warnings = (f"{reason}: {filled} of the {budget} items are a uniform draw",)
        return selection_of(
            self,
            outputs,
            chosen,
            score_N[chosen],
            evidence={"score": self.score, "zero_score_items": filled},
            warnings=warnings,
        )

    def _scores(
        self, outputs: Outputs, budget: int, rank: Callable[[np.ndarray], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Items among which the best by `rank` are, and their scores."""
        if self.score == "entropy":
            return np.arange(outputs.size), entropy(outputs.probs)
        if self.score == "margin":
            return np.arange(outputs.size), margin(outputs.probs)
        if not outputs.has("log_probs"):
            raise InputError(
                "log_probs (posterior samples) for score='mutual-information'",
                "outputs without",
                "pass log_probs=, or score='entropy' or 'margin' for a model without a posterior",
            )
        return most_informative(outputs.log_probs, budget, rank)


def _why_zero(outputs: Outputs) -> str:
    samples = int(outputs.log_probs.shape[1])
    if samples == 1:
        return "the mutual information is 0 everywhere, as there is only one posterior sample"
    return f"the mutual information is 0 everywhere: all {samples} posterior samples agree"
