"""Sparse approximation: a weighted batch whose loss approximates the loss of the pool.

The strategies of the paper, `sabal-greedy` and `sabal-iht`, and `sabal-kernel`, the same problem
over random-feature atoms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from sabal.core.checks import check_choice, check_flag, check_number
from sabal.errors import InputError
from sabal.pools.pool import NO_FEATURES, Pool, TopRows
from sabal.selection import Selection
from sabal.sparse.greedy import Greedy
from sabal.sparse.iht import ProximalIHT
from sabal.sparse.items import most_uncertain_items
from sabal.sparse.problem import Problem, ProblemSpec, Solution, Solver
from sabal.sparse.refit import refit
from sabal.strategies.base import Strategy, make_selection

MIN_SHARE = 1e-3  # of the representation term; a smaller bonus has next to no say in a batch
MIN_TERM = 1e-300  # a smaller representation term has vanished
INERT = (
    "the uncertainty term is {:.1g} of the representation term: alpha has next to no effect, and "
    "the optimal step prefers items with short atoms, of which the model is certain; raise alpha, "
    "or use scale='free' or score='first-order'"
)
RANDOM_BATCHES = 5  # the number of random batches in the evidence
IHT_CANDIDATES = 3.0  # the default number of candidates per item of a batch by `sabal-iht`


@dataclass(frozen=True, kw_only=True)
class SparseApproximation(Strategy):
    """Builds a Problem from the pool, and solves it.

    Parameters
    ----------
    atoms : str
        The kind of atoms (see `kinds` of each strategy).
    uncertainty : str, optional
        "variance", "margin", "entropy", "mutual-information" or "predictive-variance"; the default
        depends on the atoms and the loss.
    alpha, beta : float
        The weight of uncertainty, and of weights near 1.
    candidates : float or "auto", optional
        Use only the candidates * budget most uncertain items; all by default. "auto", the default
        of `sabal-iht`, is 3 there in scale-free units, and all elsewhere.
    bias : bool
        Whether gradients include the last layer's bias.
    temperature : float, optional
        Derives the label distribution from the prediction if `label_probs` is not given.
    refit : bool
        Whether the weights of the chosen items are optimised at the end (NNLS).
    """

    streams: ClassVar[bool] = True
    losses: ClassVar[tuple[str, ...]] = ("softmax", "sigmoid", "squared")
    kinds: ClassVar[tuple[str, ...]]

    atoms: str
    uncertainty: str | None = None
    alpha: float = 1.0
    beta: float = 1.0
    candidates: float | str | None = None
    bias: bool = True
    temperature: float | None = None
    refit: bool = False

    def __post_init__(self) -> None:
        self._check_atoms()
        check_flag(self.refit, "refit")
        if isinstance(self.candidates, str):
            check_choice(self.candidates, "candidates", ("auto",))
        elif self.candidates is not None:
            check_number(self.candidates, "candidates", above=0.0)
            if self.candidates < 1:
                raise InputError(
                    "`candidates` of at least 1 (a multiple of the budget)",
                    str(self.candidates),
                    "pass for instance candidates=10",
                )
        self.spec("gradient" if self.atoms == "auto" else self.atoms)
        self.solver()

    def _check_atoms(self) -> None:
        check_choice(self.atoms, "atoms", self.kinds)

    def candidates_per_pick(self) -> float | None:
        """Return the number of candidates per item of the batch; None for all items."""
        return None if isinstance(self.candidates, str) else self.candidates

    def spec(self, kind: str) -> ProblemSpec:
        """Return the options of the Problem with atoms of `kind`."""
        return ProblemSpec(
            atoms=kind,
            uncertainty=self.uncertainty,
            alpha=self.alpha,
            beta=self.beta,
            bias=self.bias,
            temperature=self.temperature,
        )

    def spec_for(self, pool: Pool, kind: str) -> ProblemSpec:
        """Return the options of the Problem of a pool with atoms of `kind`."""
        return self.spec(kind)

    def solver(self) -> Solver:
        """Return the solver with this strategy's options."""
        raise TypeError(f"{type(self).__name__} has no solver")

    def select(self, pool: Pool, budget: int, rng: np.random.Generator) -> Selection:
        """Build the problem, solve it, and report."""
        kind = self.atoms
        if kind == "auto":
            kind = "posterior" if pool.has("log_probs") else "gradient"
        spec = self.spec_for(pool, kind)
        rows, part = None, pool
        per_pick = self.candidates_per_pick()
        if per_pick is not None and per_pick * budget < pool.size:
            count = int(per_pick * budget)
            top = TopRows.merge(pool.map(most_uncertain_items, spec, count), count)
            rows = np.sort(top.rows)
            part = pool.take(rows)
        problem = spec.problem(part, budget, rng)
        if kind == "kernel" and not pool.has("features"):
            problem = replace(problem, warnings=(*problem.warnings, NO_FEATURES))
        solution = self.solver().solve(problem)
        if self.refit:
            solution = refit(problem, solution)
        return make_selection(
            self,
            pool,
            solution.indices if rows is None else rows[solution.indices],
            solution.scores,
            weights=solution.weights,
            evidence=self.evidence(problem, solution, kind, rng),
            warnings=(*problem.warnings, *self.solution_warnings(problem, solution)),
        )

    def solution_warnings(self, problem: Problem, solution: Solution) -> tuple[str, ...]:
        """Return what to warn of in a solution."""
        return ()

    def evidence(
        self, problem: Problem, solution: Solution, kind: str, rng: np.random.Generator
    ) -> dict[str, Any]:
        """Return the figures of a solution, and of random batches for comparison."""
        return {
            "atoms": kind,
            "candidates": problem.size,
            "objective": solution.objective,
            "bias": solution.bias,
            "variance": solution.variance,
            "regulariser": solution.objective - solution.bias + solution.variance,
            "random_batch": random_batch_figures(problem, rng),
            "zero_weights": int(np.sum(solution.weights == 0)),
            "passes": solution.passes,
            "iterations": solution.iterations,
        }


def random_batch_figures(problem: Problem, rng: np.random.Generator) -> dict[str, float]:
    """Return the mean objective, bias and variance of random batches with weights of 1."""
    batches = [
        rng.choice(problem.size, size=problem.budget, replace=False) for _ in range(RANDOM_BATCHES)
    ]
    figures = [problem.figures(batch, np.ones(problem.budget)) for batch in batches]
    return {key: float(np.mean([each[key] for each in figures])) for key in figures[0]}


@dataclass(frozen=True, kw_only=True)
class PaperMethod(SparseApproximation):
    """The paper's realisation: gradient atoms, or posterior atoms if there is a posterior.

    Parameters
    ----------
    atoms : {"auto", "gradient", "posterior"}
        "auto" is "posterior" if `log_probs` is given.
    scale : {"free", "literal"}
        Scale-free units, or those of the paper.
    uncertainty : str, optional
        In scale-free units that of `sabal` by default: the margin, or the predictive variance of a
        regression. With scale="literal" the variance of the atoms, as in the paper.

    Notes
    -----
    The margin, the default alpha and the default candidates of `sabal-iht` were chosen by mean rank
    over the tasks of the study. With the variance of the atoms no alpha, beta or number of
    candidates that was tried reached BADGE.
    """

    needs: ClassVar[tuple[str, ...]] = ("features|log_probs", "probs")
    kinds: ClassVar[tuple[str, ...]] = ("auto", "gradient", "posterior")

    atoms: str = "auto"
    scale: str = "free"

    def spec_for(self, pool: Pool, kind: str) -> ProblemSpec:
        """Return the options of the Problem, with the default uncertainty of its units."""
        spec = self.spec(kind)
        if self.scale == "literal" or self.uncertainty is not None:
            return spec
        return replace(spec, uncertainty=pool.prediction_type.default_uncertainty)

    def _check_atoms(self) -> None:
        if self.atoms in SabalKernel.kinds:
            raise InputError(
                f"`atoms` as one of {', '.join(self.kinds)}",
                repr(self.atoms),
                f"pass strategy={SabalKernel.name!r} for these",
            )
        super()._check_atoms()

    def spec(self, kind: str) -> ProblemSpec:
        """Return the options of the Problem with atoms of `kind`."""
        return replace(super().spec(kind), scale=self.scale)


@dataclass(frozen=True, kw_only=True)
class SabalGreedy(PaperMethod):
    """The paper's method with greedy selection (Algorithm 1).

    Parameters
    ----------
    score, step, refresh
        See `sabal.Greedy`. By default the optimal step and few passes; with scale="literal" the
        algorithm as printed, score="first-order" and refresh=1, for which the printed alpha and
        beta were chosen.
    """

    name: ClassVar[str] = "sabal-greedy"
    paper: ClassVar[str] = "Shen et al. 2022, Algorithm 1"
    cost: ClassVar[str] = "O(n m) a pass, about 12 passes"

    alpha: float = 10.0
    score: str | None = None
    step: float = 1.0
    refresh: int | str | None = None

    def solver(self) -> Greedy:
        """Return Greedy with this strategy's options."""
        score, refresh = ("first-order", 1) if self.scale == "literal" else ("optimal-step", "auto")
        return Greedy(
            score=score if self.score is None else self.score,
            step=self.step,
            refresh=refresh if self.refresh is None else self.refresh,
        )

    def solution_warnings(self, problem: Problem, solution: Solution) -> tuple[str, ...]:
        """Warn if the uncertainty has next to no say under the optimal step."""
        if not self.alpha or self.solver().score == "first-order":
            return ()
        share = solution.variance / max(problem.bias(problem.target), MIN_TERM)
        return (INERT.format(share),) if share < MIN_SHARE else ()


@dataclass(frozen=True, kw_only=True)
class SabalIHT(PaperMethod):
    """The paper's method with proximal iterative hard thresholding (Algorithm 2).

    Parameters
    ----------
    prox, iterations, tol
        See `sabal.ProximalIHT`.
    """

    name: ClassVar[str] = "sabal-iht"
    paper: ClassVar[str] = "Shen et al. 2022, Algorithm 2"
    cost: ClassVar[str] = "O(n m) per iteration"

    candidates: float | str | None = "auto"
    prox: str = "exact"
    iterations: int = 300
    tol: float = 1e-5

    def candidates_per_pick(self) -> float | None:
        """Return the number of candidates per item of the batch; None for all items.

        In scale-free units the longest atoms outweigh the uncertainty where that differs little, as
        with texts, and these are of items that the model is certain of.
        """
        if self.candidates == "auto" and self.scale == "free":
            return IHT_CANDIDATES
        return super().candidates_per_pick()

    def solver(self) -> Solver:
        """Return ProximalIHT with this strategy's options."""
        return ProximalIHT(prox=self.prox, iterations=self.iterations, tol=self.tol)


@dataclass(frozen=True, kw_only=True)
class SabalKernel(SparseApproximation):
    """The mean of the pool matched in a kernel: the paper's problem over random-feature atoms.

    Parameters
    ----------
    atoms : {"kernel", "curvature"}
        Random Fourier features weighted by uncertainty, or random features of the curvature of the
        last layer's loss.
    width : int, optional
        The length of an atom (kernel 1,024 and curvature 2,048 by default).
    score, step, refresh
        See `sabal.Greedy`.
    """

    name: ClassVar[str] = "sabal-kernel"
    needs: ClassVar[tuple[str, ...]] = ("features|probs",)
    paper: ClassVar[str] = "Shen et al. 2022, over random features"
    cost: ClassVar[str] = "O(n d m) a pass, about 3 passes"
    kinds: ClassVar[tuple[str, ...]] = ("kernel", "curvature")

    atoms: str = "kernel"
    width: int | None = None
    score: str = "optimal-step"
    step: float = 1.0
    refresh: int | str = "auto"

    def spec(self, kind: str) -> ProblemSpec:
        """Return the options of the Problem with atoms of `kind`."""
        return replace(super().spec(kind), width=self.width)

    def solver(self) -> Solver:
        """Return Greedy with this strategy's options."""
        return Greedy(score=self.score, step=self.step, refresh=self.refresh)
