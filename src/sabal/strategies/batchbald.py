"""BatchBALD: the batch with the largest joint mutual information of labels and parameters.

I(y_1..y_b; theta) = H(y_1..y_b) - sum_j E_k H(y_j | theta_k) (Kirsch et al. 2019, eq. 8 and 9),
built greedily. By the chain rule the gain of an item x, given the joint outcomes m of the batch, is

    I(y; theta | m) = sum_m w_m [ H(sum_k r_mk p_k(y | x)) - sum_k r_mk H(p_k(y | x)) ],

where r_m is the posterior over the K samples after outcome m and w_m the probability of m. For
drawn outcomes (w_m = 1/M) this is the authors' importance-weighted estimate: their ratio
p(m, y) / q(m) is the first mixture above. Not from the paper: the second term is weighted by the
same r_m rather than by 1/K. It has the same mean, and the gains are less noisy and never negative.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sabal.core.arrays import (
    CHUNK_BYTES,
    Array,
    namespace,
    row_chunks,
    take_rows,
    to_backend_of,
    to_float64_numpy,
    top_k,
)
from sabal.core.checks import check_number, check_whole
from sabal.errors import InputError
from sabal.pools.pool import ArrayPool
from sabal.predictions.uncertainty import mutual_information
from sabal.selection import Selection
from sabal.strategies.base import Strategy, make_selection

TIE = 1e-10  # gains (in nats) this close are ties; the lower row is taken
NOISE = 2.0  # a gain below this many standard errors counts as zero
MAX_AT_ONCE = 1024  # the maximum number of gains updated before the bounds are compared again
SLACK = 3.0  # standard errors added to an outdated gain to get an upper bound


@dataclass(frozen=True, kw_only=True)
class BatchBald(Strategy):
    """Greedy joint mutual information between a batch's labels and the parameters.

    Parameters
    ----------
    exact_configurations : int
        Up to this many joint outcomes are enumerated (at most C^picks). They are stored in float64
        for each of K posterior samples: 26 MB at the default and K = 100.
    samples : int
        The number of outcomes that are drawn if there are more.
    saturation : float
        K posterior samples hold log K nats. Once the batch has all but this share of them, further
        gains are artefacts of K, and the rest of the batch is in BALD order.

    Notes
    -----
    A gain costs O(M K C) for M outcomes. Gains never increase as the batch grows (the objective is
    submodular), so old ones are upper bounds and few are computed again (Minoux 1978); `evidence`
    counts them. `scores` are the gains at the time of the pick, and BALD scores for the rest.
    """

    name: ClassVar[str] = "batchbald"
    needs: ClassVar[tuple[str, ...]] = ("log_probs",)
    paper: ClassVar[str] = "Kirsch et al. 2019, Algorithm 1"
    cost: ClassVar[str] = "O(n K C M b) at most, for M joint outcomes"

    exact_configurations: int = 2**15
    samples: int = 10_000
    saturation: float = 0.01

    def __post_init__(self) -> None:
        check_whole(self.exact_configurations, "exact_configurations")
        check_whole(self.samples, "samples", minimum=2)
        if check_number(self.saturation, "saturation") >= 1:
            raise InputError(
                "`saturation` below 1 (a share of log K)",
                repr(self.saturation),
                "pass for instance saturation=0.01",
            )

    def select(self, pool: ArrayPool, budget: int, rng: np.random.Generator) -> Selection:
        """Pick by joint information until it is exhausted, then in BALD order."""
        log_probs_NKC = pool.log_probs
        samples = int(log_probs_NKC.shape[1])
        limit = float(np.log(samples))
        bald_N = mutual_information(log_probs_NKC)
        gains = _LazyGains(log_probs_NKC, bald_N)
        outcomes = Outcomes(np.zeros((1, samples)))
        chosen: list[int] = []
        scores: list[float] = []
        rows_KC: list[np.ndarray] = []
        exact_picks, information, stopped = 0, 0.0, ""

        while len(chosen) < budget:
            if limit - information <= self.saturation * limit:
                stopped = "all that they can tell"
                break
            item, gain, error = gains.best(outcomes)
            if gain <= max(TIE, NOISE * error):
                stopped = "and no item adds more than rounding or sampling noise"
                break
            chosen.append(item)
            scores.append(gain)
            rows_KC.append(_normalised_row(log_probs_NKC, item))
            exact_picks += outcomes.exact
            # After an exact pick the chain rule is exact, even if the next outcomes are drawn.
            if outcomes.exact:
                information = min(information + gain, limit)
                outcomes = self._extended(outcomes, rows_KC, rng)
            else:
                outcomes = outcomes.drawn_with(rows_KC[-1], rng)
                information = limit - outcomes.remaining

        picks = len(chosen)
        warnings: tuple[str, ...] = ()
        if picks < budget:
            left_N = bald_N.copy()
            left_N[chosen] = -np.inf
            rest = top_k(left_N, budget - picks)
            chosen.extend(rest.tolist())
            scores.extend(bald_N[rest].tolist())
            warnings = (
                f"after {picks} picks the batch holds {information:.3g} of the log K = {limit:.3g} "
                f"nats of {samples} posterior samples, {stopped}: a joint ranking would be noise, "
                f"so the other {budget - picks} of {budget} items are in BALD order",
            )
        return make_selection(
            self,
            pool,
            np.array(chosen),
            np.array(scores),
            evidence={
                "joint_mutual_information": information,
                "log_posterior_samples": limit,
                "exact_picks": exact_picks,
                "sampled_picks": picks - exact_picks,
                "bald_picks": budget - picks,
                "gains_computed": gains.computed,
            },
            warnings=warnings,
        )

    def _extended(
        self, outcomes: Outcomes, rows_KC: list[np.ndarray], rng: np.random.Generator
    ) -> Outcomes:
        """Return outcomes with the latest item: enumerated, or drawn if there are too many."""
        classes = rows_KC[-1].shape[1]
        if outcomes.log_likelihood_MK.shape[0] * classes <= self.exact_configurations:
            return outcomes.enumerated_with(rows_KC[-1])
        outcomes = Outcomes.undrawn(rows_KC[-1].shape[0], self.samples, rng)
        for row_KC in rows_KC:
            outcomes = outcomes.drawn_with(row_KC, rng)
        return outcomes


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Joint outcomes m of the chosen items, as log p(m | theta_k): all of them, or a sample.

    `theta_M` is the posterior sample that each outcome was drawn from; empty if all are listed.
    """

    log_likelihood_MK: np.ndarray
    theta_M: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def undrawn(cls, samples: int, draws: int, rng: np.random.Generator) -> Outcomes:
        """Return empty draws, spread evenly over the theta_k."""
        return cls(np.zeros((draws, samples)), np.resize(rng.permutation(samples), draws))

    @property
    def exact(self) -> bool:
        """Whether all outcomes are listed."""
        return self.theta_M.size == 0

    @cached_property
    def posterior_MK(self) -> np.ndarray:
        """r_mk = p(theta_k | m)."""
        return np.exp(_normalised(self.log_likelihood_MK))

    @cached_property
    def weight_M(self) -> np.ndarray:
        """w_m = p(m) = mean_k p(m | theta_k) if all are listed, 1/M if drawn from it."""
        outcomes = self.log_likelihood_MK.shape[0]
        if not self.exact:
            return np.full(outcomes, 1.0 / outcomes)
        return np.exp(self.log_likelihood_MK).mean(axis=1)

    @property
    def remaining(self) -> float:
        """Mean H(theta | m): log K minus the joint information, and a bound on any gain."""
        return float(self.weight_M @ _entropy(self.posterior_MK, np))

    def enumerated_with(self, row_KC: np.ndarray) -> Outcomes:
        """Return every possible outcome with every label of one more item."""
        joint_MCK = self.log_likelihood_MK[:, None, :] + row_KC.T[None, :, :]
        joint_MK = joint_MCK.reshape(-1, row_KC.shape[0])
        return Outcomes(joint_MK[joint_MK.max(axis=1) > -np.inf])

    def drawn_with(self, row_KC: np.ndarray, rng: np.random.Generator) -> Outcomes:
        """Return every draw with a label of one more item, drawn from its own theta_k."""
        cumulative_KC = np.cumsum(np.exp(row_KC), axis=1)
        cumulative_KC /= cumulative_KC[:, -1:]
        # The first class whose cumulative probability exceeds u never has probability zero.
        u_M = rng.random(self.theta_M.shape)
        label_M = (u_M[:, None] >= cumulative_KC[self.theta_M]).sum(axis=1)
        return Outcomes(self.log_likelihood_MK + row_KC.T[label_M], self.theta_M)

    def gains(self, log_probs_NKC: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return I(y; theta | m) of every row, and its standard error (0 if all are listed).

        Computed in float64 in the rows' own library, a chunk of outcomes at a time.
        """
        xp = namespace(log_probs_NKC)
        n, samples, classes = log_probs_NKC.shape
        probs_NKC = xp.exp(xp.astype(log_probs_NKC, xp.float64))
        probs_KX = xp.reshape(xp.permute_dims(probs_NKC, (1, 0, 2)), (samples, n * classes))
        entropy_KN = xp.matrix_transpose(_entropy(probs_NKC, xp))
        gain_N, square_N = np.zeros(n), np.zeros(n)
        for part in row_chunks(self.weight_M.size, 3 * 8 * n * classes):
            posterior_MK = to_backend_of(self.posterior_MK[part], probs_NKC)
            weight_M = to_backend_of(self.weight_M[part], probs_NKC)
            mixture_MNC = xp.reshape(posterior_MK @ probs_KX, (-1, n, classes))
            gain_MN = _entropy(mixture_MNC, xp) - posterior_MK @ entropy_KN
            # Never negative (Jensen) except for rounding.
            gain_MN = xp.clip(gain_MN, min=0.0)
            gain_N += to_float64_numpy(weight_M @ gain_MN)
            square_N += to_float64_numpy(weight_M @ gain_MN**2)
        if self.exact:
            return gain_N, np.zeros(n)
        variance_N = np.maximum(square_N - gain_N**2, 0.0)
        return gain_N, np.sqrt(variance_N / self.weight_M.size)


class _LazyGains:
    """The latest gain of every item, updated only for items that may be the best."""

    def __init__(self, log_probs_NKC: Array, bald_N: np.ndarray) -> None:
        self.log_probs_NKC = log_probs_NKC
        self.gain_N = bald_N.copy()
        self.error_N = np.zeros_like(bald_N)
        self.taken_N = np.zeros(bald_N.size, dtype=bool)
        self.computed = 0

    def best(self, outcomes: Outcomes) -> tuple[int, float, float]:
        """Take the item with the largest gain; return it with its gain and error."""
        bound_N = np.where(self.taken_N, -np.inf, self.gain_N + SLACK * self.error_N)
        order = np.argsort(-bound_N, kind="stable")[: np.count_nonzero(~self.taken_N)]
        _, samples, classes = self.log_probs_NKC.shape
        bytes_per_item = 3 * 8 * classes * (samples + outcomes.weight_M.size)
        step = min(max(8, CHUNK_BYTES // bytes_per_item), MAX_AT_ONCE)
        largest, done = -np.inf, 0
        while done < order.size and bound_N[order[done]] >= largest - TIE:
            block = order[done : done + step]
            rows_NKC = take_rows(self.log_probs_NKC, block)
            self.gain_N[block], self.error_N[block] = outcomes.gains(rows_NKC)
            largest = max(largest, float(self.gain_N[block].max()))
            done += block.size
        self.computed += done
        fresh = order[:done]
        item = int(fresh[self.gain_N[fresh] >= largest - TIE].min())
        self.taken_N[item] = True
        return item, float(self.gain_N[item]), float(self.error_N[item])


def _normalised_row(log_probs_NKC: Array, item: int) -> np.ndarray:
    """Return an item's log-probabilities, normalised, as errors accumulate over many picks."""
    return _normalised(to_float64_numpy(take_rows(log_probs_NKC, np.array([item])))[0])


def _normalised(log_weights: np.ndarray) -> np.ndarray:
    """Return log-weights with rows whose exponentials sum to 1."""
    from scipy.special import logsumexp

    return log_weights - logsumexp(log_weights, axis=1, keepdims=True)


def _entropy(probs: Array, xp: Any) -> Array:
    """Return -sum p log p over the last axis, with 0 log 0 = 0."""
    tiny = float(np.finfo(np.float64).tiny)
    return -xp.sum(probs * xp.log(xp.clip(probs, min=tiny)), axis=-1)
