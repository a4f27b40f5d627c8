"""PowerBALD: a batch sampled by a power of a score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sabal.core.checks import check_choice, check_number
from sabal.errors import InputError
from sabal.pools.pool import ArrayPool
from sabal.predictions.uncertainty import entropy, margin, most_informative
from sabal.selection import Selection
from sabal.strategies.bald import MIN_SCORE, why_zero
from sabal.strategies.base import Strategy, make_selection

SCORES = ("mutual-information", "entropy", "margin")


@dataclass(frozen=True, kw_only=True)
class PowerBald(Strategy):
    """Draws b items without replacement, with probabilities proportional to score^power.

    The top b of `log score + Gumbel noise / power` is such a draw (the Gumbel-top-k trick). It is
    as cheap as BALD and less redundant. The `scores` of the selection are the plain scores.

    Parameters
    ----------
    power : float
        Large values approach the top b of the score, small ones a uniform draw.
    score : {"mutual-information", "entropy", "margin"}
        "mutual-information" is PowerBALD proper, and needs log_probs. Scores that are given with
        the pool take its place.
    """

    name: ClassVar[str] = "power-bald"
    needs: ClassVar[tuple[str, ...]] = ("log_probs|probs|scores",)
    paper: ClassVar[str] = "Kirsch et al. 2023, Stochastic Batch Acquisition"
    cost: ClassVar[str] = "O(n K C + n log n)"

    power: float = 1.0
    score: str = "mutual-information"

    def __post_init__(self) -> None:
        check_number(self.power, "power", above=0.0)
        check_choice(self.score, "score", SCORES)

    def select(self, pool: ArrayPool, budget: int, rng: np.random.Generator) -> Selection:
        """Return the top b of perturbed scores; items of score 0 come last, in random order."""
        # log s + g / power, multiplied by power if power < 1: the order is the same, without
        # overflow for very small or very large powers.
        scale = max(self.power, 1.0)
        noise_N = rng.gumbel(size=pool.size) / scale

        def perturbed(score_N: np.ndarray) -> np.ndarray:
            log_N = np.log(score_N, out=np.full(score_N.size, -np.inf), where=score_N > MIN_SCORE)
            return noise_N + self.power / scale * log_N

        items, score = self._scores(pool, budget, perturbed)
        score_N = np.zeros(pool.size)
        score_N[items] = score
        key_N = perturbed(score_N)[items]
        chosen = items[np.lexsort((-noise_N[items], -key_N))[:budget]]
        filled = int(np.count_nonzero(score_N[chosen] <= MIN_SCORE))

        kind = "given" if pool.has("scores") else self.score
        warnings: tuple[str, ...] = ()
        if filled:
            reason = f"only {budget - filled} items have a score above 0"
            if filled == budget and kind == "mutual-information":
                reason = why_zero(int(pool.log_probs.shape[1]))
            warnings = (f"{reason}: {filled} of the {budget} items are a uniform draw",)
        return make_selection(
            self,
            pool,
            chosen,
            score_N[chosen],
            evidence={"score": kind, "zero_score_items": filled},
            warnings=warnings,
        )

    def _scores(
        self, pool: ArrayPool, budget: int, rank: Callable[[np.ndarray], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return items that include the best by `rank`, and their scores."""
        if pool.has("scores"):
            return np.arange(pool.size), pool.uncertainty()
        if self.score == "entropy":
            return np.arange(pool.size), entropy(pool.probs)
        if self.score == "margin":
            return np.arange(pool.size), margin(pool.probs)
        if not pool.has("log_probs"):
            raise InputError(
                "log_probs (posterior samples) for score='mutual-information'",
                "outputs without",
                "pass log_probs=, or score='entropy' or 'margin' for a model without a posterior",
            )
        return most_informative(pool.log_probs, budget, rank)
